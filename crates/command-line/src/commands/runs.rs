//! `choir runs`: lists runs of agents, prints one as a tree with its steps, and steers it.

use std::process::ExitCode;

use anyhow::Result;
use computer::client;
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::{Request, RunRequest, RunResponse};
use shared_types::wire::{
    Agent, AgentState, RunControl, RunCost, RunDetails, RunLine, RunState, Step, StepDetail,
};
use shared_types::{Seq, TaskId};

use super::Context;
use super::approve::{show as show_question, watched};
use super::revert::choices;
use crate::cli::{RevertRun, Runs, RunsAction};
use crate::render::{Style, count, done, json, line, safe, time};

/// The number of steps printed of one run; --before lists older ones.
const PRINTED_STEPS: usize = 40;

pub(crate) fn run(context: &Context, args: Runs) -> Result<ExitCode> {
    let Runs { run, step, before, watch, action } = args;
    if let Some(action) = action {
        return act(context, action);
    }
    match (run, step) {
        (None, _) => list(context, before)?,
        (Some(run), Some(seq)) => {
            let request = RunRequest::StepDetail { run: run.clone(), seq };
            let RunResponse::StepDetail(mut parts) = context.about_runs(request)? else {
                return Err(unexpected_answer());
            };
            let id = details(context, &run)?.line.run;
            agent_host::prompts::add_prompt(&context.reading()?, id, &mut parts)
                .map_err(ComputerError::from)?;
            print_parts(context, &parts);
        }
        (Some(run), None) if watch => {
            return watched(context, |context| Ok(details(context, &run)?.line));
        }
        (Some(run), None) => show(context, &run, before)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn act(context: &Context, action: RunsAction) -> Result<ExitCode> {
    let (run, control, verb) = match action {
        RunsAction::Stop { run } => (run, RunControl::Stop, "stopped"),
        RunsAction::Pause { run, take_over: false } => (run, RunControl::Pause, "paused"),
        RunsAction::Pause { run, take_over: true } => (run, RunControl::TakeOver, "taken over"),
        RunsAction::Resume { run, budget, watch } => {
            let resume = RunControl::Resume { budget };
            if watch {
                return watched(context, |context| control_run(context, &run, resume));
            }
            (run, resume, "resumed")
        }
        RunsAction::Steer { run, words, task } => {
            let task = task.map(|task| agent(context, &run, &task)).transpose()?;
            (run, RunControl::Steer { task, words: words.join(" ") }, "told")
        }
        RunsAction::Trust { run, task } => {
            let task = agent(context, &run, &task)?;
            (run, RunControl::Trust { task }, "trusted")
        }
        RunsAction::Undo(args) => return revert(context, &args, RevertKind::Undo),
        RunsAction::Redo(args) => return revert(context, &args, RevertKind::Redo),
        RunsAction::Retry { of, step, watch: false } => return revert(context, &of, RevertKind::Retry(step)),
        RunsAction::Retry { of, step, watch: true } => {
            revert(context, &of, RevertKind::Retry(step))?;
            return watched(context, |context| Ok(details(context, &of.run)?.line));
        }
    };
    let line = control_run(context, &run, control)?;
    print_change(context, verb, &line)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Clone, Copy)]
enum RevertKind {
    Undo,
    Redo,
    Retry(Seq),
}

fn revert(context: &Context, args: &RevertRun, kind: RevertKind) -> Result<ExitCode> {
    let (run, preview) = (args.run.clone(), args.preview);
    let choices = choices(context, &args.as_revert())?;
    let (request, verb) = match (kind, preview) {
        (RevertKind::Undo, true) => (RunRequest::Undo { run, choices, preview }, "undo"),
        (RevertKind::Undo, false) => (RunRequest::Undo { run, choices, preview }, "undone"),
        (RevertKind::Redo, true) => (RunRequest::Redo { run, choices, preview }, "redo"),
        (RevertKind::Redo, false) => (RunRequest::Redo { run, choices, preview }, "redone"),
        (RevertKind::Retry(step), true) => (RunRequest::Retry { run, step, choices, preview }, "go back"),
        (RevertKind::Retry(step), false) => (RunRequest::Retry { run, step, choices, preview }, "went back"),
    };
    let answer = context.change(Request::AgentRuns(request), &mut std::io::empty())?;
    done(context.style, verb, &answer);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn control_run(context: &Context, run: &str, control: RunControl) -> Result<RunLine> {
    line_of(context.about_runs(RunRequest::Control { run: run.to_owned(), control })?)
}

pub(crate) fn details(context: &Context, run: &str) -> Result<RunDetails> {
    let answer = context.about_runs(RunRequest::Show { run: run.to_owned() })?;
    if let RunResponse::Details(details) = answer { Ok(*details) } else { Err(unexpected_answer()) }
}

/// An agent of a run, by a part of its id.
fn agent(context: &Context, run: &str, text: &str) -> Result<TaskId> {
    let agents = details(context, run)?.agents;
    let fits = |agent: &&Agent| {
        let id = agent.id.to_string();
        text.len() >= 4 && (id.starts_with(text) || id.ends_with(text))
    };
    match agents.iter().filter(fits).collect::<Vec<_>>().as_slice() {
        [agent] => Ok(agent.id),
        [] => Err(ComputerError::new(
            ErrorCode::NoTask,
            format!("no agent of this run matches {text}; list them with: choir runs {run}"),
        )
        .into()),
        _ => Err(ComputerError::new(
            ErrorCode::BadRequest,
            format!("several agents match {text}; give more digits"),
        )
        .into()),
    }
}

pub(crate) fn line_of(answer: RunResponse) -> Result<RunLine> {
    if let RunResponse::Line(line) = answer { Ok(line) } else { Err(unexpected_answer()) }
}

pub(crate) fn unexpected_answer() -> anyhow::Error {
    ComputerError::new(ErrorCode::Failed, "unexpected answer from the computer").into()
}

/// The last digits of an id, as lists print it.
pub(crate) fn short(id: impl ToString) -> String {
    let text = id.to_string();
    text[text.len().saturating_sub(8)..].to_owned()
}

/// Prints the new state of a run after a command.
pub(crate) fn print_change(context: &Context, verb: &str, run: &RunLine) -> Result<()> {
    if context.style.is_json() {
        json(&serde_json::json!({ "run": run }));
        return Ok(());
    }
    let style = context.style;
    let id = short(run.run);
    line(&format!("{} {} {}", style.bold(verb), id, style.dim(&format!("({})", word(run.state)))));
    let idle = run.state == RunState::Running && !client::is_held(&context.paths()?)?;
    if idle {
        line(
            &style
                .dim(&format!("  no process is working on it: choir runs resume {id} --watch, or choir up")),
        );
    }
    Ok(())
}

fn list(context: &Context, before: Option<shared_types::Seq>) -> Result<()> {
    let RunResponse::List(list) = context.about_runs(RunRequest::List { before })? else {
        return Err(unexpected_answer());
    };
    if context.style.is_json() {
        list.runs.iter().for_each(json);
        return Ok(());
    }
    if list.runs.is_empty() {
        line("no runs; choir ask starts one");
    }
    list.runs.iter().for_each(|run| headline(context.style, run));
    if let Some(before) = list.before {
        line(&context.style.dim(&format!("older runs: choir runs --before {before}")));
    }
    Ok(())
}

fn headline(style: Style, run: &RunLine) {
    let undone = if run.undone { " (undone)" } else { "" };
    let when = style.dim(&time(run.started));
    let state = style.paint(colour(run.state), &format!("{:<9}", word(run.state)));
    let what = safe(&run.title);
    line(&format!(
        "{} {when} {state} {what}{undone}  {}",
        style.bold(&short(run.run)),
        style.dim(&cost(&run.cost))
    ));
    if let Some(reason) = &run.reason {
        line(&format!("         {}", safe(reason)));
    }
}

pub(crate) fn word(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Waiting => "waits",
        RunState::Paused => "paused",
        RunState::Cancelled => "stopped",
        RunState::Failed => "failed",
        RunState::Completed => "completed",
    }
}

fn colour(state: RunState) -> &'static str {
    match state {
        RunState::Running => "36",
        RunState::Waiting | RunState::Paused => "33",
        RunState::Cancelled => "2",
        RunState::Failed => "31",
        RunState::Completed => "32",
    }
}

/// The cost as text.
pub(crate) fn cost(cost: &RunCost) -> String {
    let mut words = vec![count(cost.turns, "turn"), count(cost.tokens, "token")];
    if cost.micros > 0 || cost.unpriced == 0 {
        words.push(format!("${}.{:04}", cost.micros / 1_000_000, cost.micros % 1_000_000 / 100));
    }
    if cost.unpriced > 0 && cost.micros > 0 {
        words.push(format!("{} without a known price", cost.unpriced));
    }
    words.join(", ")
}

fn show(context: &Context, run: &str, before: Option<shared_types::Seq>) -> Result<()> {
    if let Some(before) = before {
        let request = RunRequest::Steps { run: run.to_owned(), before: Some(before) };
        let RunResponse::Steps(steps) = context.about_runs(request)? else { return Err(unexpected_answer()) };
        steps.iter().for_each(|step| print_step(context.style, step, ""));
        return Ok(());
    }
    let details = details(context, run)?;
    if context.style.is_json() {
        json(&details);
        return Ok(());
    }
    let style = context.style;
    headline(style, &details.line);
    for text in details.objective.lines().take(20) {
        line(&format!("  {}", safe(text)));
    }
    tree(style, &details.agents, None, 1);
    let skipped = details.steps.len().saturating_sub(PRINTED_STEPS);
    let earlier = details.earlier + skipped as u64;
    if earlier > 0 {
        let first = details.steps.get(skipped).map(|step| step.seq).unwrap_or_default();
        let id = short(details.line.run);
        line(&style.dim(&format!("  {} before: choir runs {id} --before {first}", count(earlier, "step"))));
    }
    for step in &details.steps[skipped..] {
        print_step(style, step, role(&details.agents, step.task));
    }
    details.questions.iter().for_each(|question| show_question(style, question));
    ending(style, &details);
    Ok(())
}

/// Prints the summary and the results of a run.
pub(crate) fn ending(style: Style, details: &RunDetails) {
    if let Some(summary) = &details.summary {
        summary.lines().for_each(|text| line(&safe(text)));
    }
    for path in &details.results {
        line(&format!("  {} {}", style.paint("32", "→"), safe(path.as_str())));
    }
}

pub(crate) fn role(agents: &[Agent], task: Option<TaskId>) -> &str {
    agents.iter().find(|agent| Some(agent.id) == task).map_or("", |agent| agent.role.as_str())
}

fn tree(style: Style, agents: &[Agent], parent: Option<TaskId>, depth: usize) {
    for agent in agents.iter().filter(|agent| agent.parent == parent) {
        let code = match agent.state {
            AgentState::Working => "36",
            AgentState::Done => "32",
            AgentState::Failed => "31",
            AgentState::Cancelled => "2",
        };
        let id = style.dim(&short(agent.id));
        let (role, doing) = (style.bold(&safe(&agent.role)), style.paint(code, &safe(&agent.doing)));
        line(&format!("{}{id} {role} {doing}: {}", "  ".repeat(depth), safe(&agent.title)));
        tree(style, agents, Some(agent.id), depth + 1);
    }
}

pub(crate) fn print_step(style: Style, step: &Step, role: &str) {
    if style.is_json() {
        return json(step);
    }
    let seq = style.paint("33", &format!("{:>6}", step.seq));
    let who = style.paint("36", &format!("{role:<10}"));
    let label = safe(&step.label);
    let label = if step.failed { style.paint("31", &label) } else { label };
    let mut ends = Vec::new();
    if step.files > 0 {
        ends.push(count(step.files, "file"));
    }
    if step.undone {
        ends.push("undone".to_owned());
    }
    let end = if ends.is_empty() { String::new() } else { style.dim(&format!("  ({})", ends.join(", "))) };
    line(&format!("{seq} {who} {label}{end}"));
}

fn print_parts(context: &Context, parts: &StepDetail) {
    if context.style.is_json() {
        return json(parts);
    }
    let style = context.style;
    print_step(style, &parts.step, "");
    for (name, text) in [("in", &parts.input), ("out", &parts.output)] {
        if let Some(text) = text {
            line(&style.bold(&format!("{name}:")));
            text.lines().for_each(|text| line(&format!("  {}", safe(&text.replace('\t', "    ")))));
        }
    }
    parts.notes.iter().for_each(|note| line(&style.dim(&safe(note))));
}
