//! `choir ask`: an objective for agents.

use std::process::ExitCode;

use anyhow::Result;
use computer::ids;
use computer::protocol::RunRequest;
use sandbox::computer_host::ComputerHost;
use shared_types::wire::{RunLine, StartRun};

use super::follow_run::{FollowMode, follow_run};
use super::runs::line_of;
use super::{Context, services};
use crate::cli::Ask;
use crate::render::{ProgressReport, json, line, safe};

pub(crate) fn run(context: &Context, args: &Ask) -> Result<ExitCode> {
    let paths = context.paths()?;
    let attached = args.attach.iter().map(|path| paths.path(path)).collect::<Result<_>>()?;
    let start = StartRun {
        command: ids::new_command(),
        run: ids::new_run(),
        objective: args.objective.join(" "),
        attached,
        model: args.model.clone(),
        budget: args.budget.unwrap_or_default(),
    };
    let (bar, agent_services) = (ProgressReport::new(context.style), context.agent_services()?);
    let host = ComputerHost::open_unless_held(&paths, &agent_services, &|phase, done, total| {
        bar.update(phase, done, total)
    })?;
    drop(bar);
    let ended = services::announce_model(context, &agent_services, args.model.as_deref())
        .and_then(|()| follow(context, start, args.watch, host.is_some()));
    if let Some(host) = host {
        host.close();
    }
    ended
}

fn follow(context: &Context, start: StartRun, watch: bool, hosted: bool) -> Result<ExitCode> {
    let started = line_of(context.about_runs(RunRequest::Start(start))?)?;
    let mode = match (watch, hosted) {
        (true, _) => FollowMode::AllSteps,
        (false, true) => FollowMode::ResultOnly,
        (false, false) => {
            print_started(context, &started);
            return Ok(ExitCode::SUCCESS);
        }
    };
    if !context.style.is_json() {
        line(&format!("{} {}", context.style.bold(&short(&started)), safe(&started.title)));
    }
    follow_run(context, &started, mode, hosted)
}

fn print_started(context: &Context, started: &RunLine) {
    if context.style.is_json() {
        return json(&serde_json::json!({ "run": started }));
    }
    let id = short(started);
    line(&format!("{} {}", context.style.bold(&id), safe(&started.title)));
    line(
        &context
            .style
            .dim(&format!("  follow with: choir runs {id} --watch    stop with: choir runs stop {id}")),
    );
}

fn short(line: &RunLine) -> String {
    super::runs::short(line.run)
}
