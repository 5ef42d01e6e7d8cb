//! `choir run`: a command in a cell, over a copy of the workspace.

use std::io::{Read, Write, stderr, stdin, stdout};
use std::process::ExitCode;

use anyhow::Result;
use isolation::Stream;
use shared_types::payload::tool::{StopReason, ToolStatus};
use shared_types::wire::{CellCommand, CommandLimits, CommandNetwork, CommandResult};

use super::Context;
use crate::cli::Run;
use crate::render::{ProgressReport, changes, count, json, line, safe, short};
use computer::client;
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::{Answer, Request};

/// The exit code that `timeout` uses for a command that it ended.
const ENDED: u8 = 124;

pub(crate) fn run(context: &Context, args: &Run) -> Result<ExitCode> {
    let paths = context.paths()?;
    let request = match (&args.accept, &args.discard) {
        (Some(call), _) => Request::Accept { call: call.clone() },
        (None, Some(call)) => Request::Discard { call: call.clone() },
        (None, None) => Request::RunCommand(command(context, args)?),
    };
    let mut body: Box<dyn Read> = if args.stdin { Box::new(stdin()) } else { Box::new(std::io::empty()) };
    let bar = ProgressReport::new(context.style);
    let mut tell = |from, bytes: &[u8]| write_output(context, from, bytes);
    let progress = |phase: &str, done, total| bar.update(phase, done, total);
    let ran = match client::request_with_output(&paths, request, &mut body, &progress, &mut tell)? {
        Answer::CommandResult(ran) => *ran,
        Answer::Done(_)
        | Answer::AgentRuns(_)
        | Answer::RunUpdate(_)
        | Answer::Status(_)
        | Answer::Parts(_)
        | Answer::Progress { .. }
        | Answer::Output { .. }
        | Answer::Failure(_) => {
            return Err(ComputerError::new(ErrorCode::Failed, "unexpected answer from the computer").into());
        }
    };
    if context.style.is_json() {
        json(&serde_json::json!({ "ran": ran }));
    } else {
        report(context, &ran);
    }
    Ok(code(&ran))
}

fn command(context: &Context, args: &Run) -> Result<CellCommand> {
    let paths = context.paths()?;
    let here = std::env::current_dir().ok();
    let inside = here.filter(|here| here.starts_with(&paths.workspace) && *here != paths.workspace);
    let folder = inside.map(|here| paths.path(&here)).transpose()?;
    let network = match args.net.as_slice() {
        [] => CommandNetwork::None,
        [one] if one == "open" => CommandNetwork::Open,
        [one] if one == "none" => CommandNetwork::None,
        hosts => CommandNetwork::Hosts(hosts.to_vec()),
    };
    let limits = CommandLimits {
        memory: args.mem,
        processes: args.processes,
        seconds: args.time,
        disk: args.disk,
        ..CommandLimits::default()
    };
    Ok(CellCommand { argv: args.command.clone(), folder, dry: args.dry, network, limits })
}

/// Passes the command's output on, or prints it as a line of JSON.
fn write_output(context: &Context, from: Stream, bytes: &[u8]) {
    if context.style.is_json() {
        let stream = if from == Stream::Out { "stdout" } else { "stderr" };
        json(&serde_json::json!({ stream: String::from_utf8_lossy(bytes) }));
        return;
    }
    // A closed pipe does not end the command, because its changes are still wanted.
    let _ = match from {
        Stream::Out => stdout().lock().write_all(bytes).and_then(|()| stdout().flush()),
        Stream::Err => stderr().lock().write_all(bytes),
    };
}

fn report(context: &Context, ran: &CommandResult) {
    let style = context.style;
    let id = short(&ran.op);
    let many = count(ran.done.total, "change");
    match &ran.status {
        None => {
            changes(style, &ran.done.changes, ran.done.total);
            let how = exit_code(ran.code);
            eprintln!("{}", style.dim(&format!("dry run {id}: {many}, not applied{how}")));
            eprintln!(
                "{}",
                style.dim(&format!("  choir run --accept {id}    or    choir run --discard {id}"))
            );
        }
        Some(ToolStatus::Exited { code }) if ran.done.total > 0 => {
            let how = exit_code(Some(*code));
            eprintln!("{}", style.dim(&format!("{many} in operation {id}{how}; undo with: choir undo {id}")));
        }
        Some(ToolStatus::Exited { .. }) => {}
        Some(ToolStatus::Killed { signal }) => {
            eprintln!("killed by signal {signal}; nothing was changed");
        }
        Some(ToolStatus::Stopped { why }) => eprintln!("{}; nothing was changed", reason(*why)),
        Some(ToolStatus::Failed { reason } | ToolStatus::Interrupted { reason }) => eprintln!("{reason}"),
        Some(ToolStatus::Discarded) => line(&format!("discarded {id}")),
    }
    for note in ran.report.notes.iter().map(|note| &**note).chain(ran.done.notes.iter().map(String::as_str)) {
        eprintln!("{}", style.dim(&format!("note: {}", safe(note))));
    }
}

/// Text for an exit code that is not zero.
fn exit_code(code: Option<i32>) -> String {
    code.filter(|code| *code != 0).map(|code| format!(" (exit code {code})")).unwrap_or_default()
}

fn reason(why: StopReason) -> &'static str {
    match why {
        StopReason::Cancelled => "stopped",
        StopReason::Time => "it exceeded its time limit (--time SECONDS raises it)",
        StopReason::Memory => "it exceeded its memory limit (--mem raises it)",
        StopReason::Processes => "it exceeded its limit of processes (--processes raises it)",
        StopReason::Disk => "it exceeded its disk limit (--disk raises it)",
        StopReason::Output => "it printed too much",
        StopReason::Files => "it made too many files",
    }
}

/// The command's own exit code.
fn code(ran: &CommandResult) -> ExitCode {
    match &ran.status {
        None | Some(ToolStatus::Discarded) => ExitCode::SUCCESS,
        Some(ToolStatus::Exited { code }) => ExitCode::from(u8::try_from(*code).unwrap_or(1)),
        Some(ToolStatus::Killed { signal }) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)),
        Some(ToolStatus::Stopped { .. }) => ExitCode::from(ENDED),
        Some(ToolStatus::Failed { .. } | ToolStatus::Interrupted { .. }) => ExitCode::FAILURE,
    }
}
