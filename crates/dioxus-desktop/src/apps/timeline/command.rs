//! A command in the timeline: its exit, its output, its network requests, and the buttons that stop, accept or discard it.

use std::cell::RefCell;
use std::rc::Rc;

use dioxus::prelude::*;
use shared_types::payload::tool::{RequestVerdict, StopReason, ToolStatus};
use shared_types::wire::{
    CallDetails, CallLine, CallStatus, CellCommand, FromClient, StartCommand, StartedCommand,
};
use shared_types::{OpId, TerminalId};

use crate::api::{self, ApiResult, Method};
use crate::connection::{self, FromTerminal};
use crate::icons::Icon;
use crate::state::{AppState, ToastAction, app_state};
use crate::widgets::choose_text;
use crate::words;

/// Lines of output that are shown at first.
const FIRST_LINES: usize = 14;
/// Bytes of live output that are kept.
const LIVE: usize = 64 << 10;

/// The state of a command, as a chip.
#[component]
pub(super) fn CallBadge(call: CallLine) -> Element {
    let class = match call.status {
        CallStatus::Running => "chip run",
        CallStatus::Held => "chip warn",
        CallStatus::Exited if call.code == Some(0) => "chip ok",
        CallStatus::Exited if call.code.is_none() => "chip",
        CallStatus::Discarded => "chip",
        CallStatus::Exited
        | CallStatus::Killed
        | CallStatus::Stopped
        | CallStatus::Failed
        | CallStatus::Interrupted => "chip bad",
    };
    let text = match call.status {
        CallStatus::Exited => call.code.map_or_else(|| words::timeline::EXITED.into(), words::timeline::exit),
        CallStatus::Held => {
            call.code.map_or_else(|| words::timeline::DRY_RUN.into(), words::timeline::dry_run_exit)
        }
        CallStatus::Running => words::timeline::RUNNING.into(),
        CallStatus::Killed => words::timeline::KILLED.into(),
        CallStatus::Stopped => words::timeline::STOPPED.into(),
        CallStatus::Failed => words::FAILED.into(),
        CallStatus::Interrupted => words::timeline::INTERRUPTED.into(),
        CallStatus::Discarded => words::timeline::DISCARDED.into(),
    };
    rsx! {
        span { class, {text} }
    }
}

/// The name of a limit; a cancelled command met none.
fn limit_name(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::Cancelled => None,
        StopReason::Time => Some(words::timeline::TIME),
        StopReason::Memory => Some(words::timeline::MEMORY),
        StopReason::Processes => Some(words::timeline::PROCESSES),
        StopReason::Disk => Some(words::timeline::DISK_SPACE),
        StopReason::Output => Some(words::timeline::OUTPUT_LIMIT),
        StopReason::Files => Some(words::timeline::FILES),
    }
}

/// How a command ended, as a sentence.
fn ending(call: &CallDetails) -> String {
    match &call.status {
        None if call.dry_run_changes.is_some() => {
            call.code.map_or_else(|| words::timeline::TRIED.into(), words::timeline::tried_with_exit)
        }
        None => words::timeline::RUNS.into(),
        Some(ToolStatus::Exited { code }) => words::timeline::exit_code(*code),
        Some(ToolStatus::Killed { signal }) => words::timeline::killed_by(*signal),
        Some(ToolStatus::Stopped { why }) => match limit_name(*why) {
            None => words::timeline::YOU_STOPPED_IT.into(),
            Some(limit) => words::timeline::stopped_at(limit),
        },
        Some(ToolStatus::Failed { reason }) => words::timeline::did_not_run(reason),
        Some(ToolStatus::Interrupted { reason }) => words::timeline::interrupted(reason),
        Some(ToolStatus::Discarded) => words::timeline::YOU_DISCARDED_IT.into(),
    }
}

/// The result and the output of a command; its changes are shown apart.
#[component]
pub(super) fn CallInfo(op: OpId, call: CallDetails) -> Element {
    let report = call.report.clone().unwrap_or_default();
    let mut facts = vec![ending(&call)];
    if report.millis > 0 {
        facts.push(match report.millis {
            short @ ..1000 => format!("{short} ms"),
            long => format!("{}.{} s", long / 1000, long % 1000 / 100),
        });
    }
    let limits: Vec<&str> = report.limits.iter().filter_map(|limit| limit_name(*limit)).collect();
    if !limits.is_empty() && !matches!(call.status, Some(ToolStatus::Stopped { .. })) {
        facts.push(words::timeline::met_limits(&limits));
    }
    facts.push(choose_text(call.network, words::timeline::WITH_NETWORK, words::timeline::NO_NETWORK).into());
    let running = call.status.is_none() && call.dry_run_changes.is_none();
    rsx! {
        p { class: "quiet", {facts.join(" · ")} }
        for note in &report.notes {
            p { class: "note-line", Icon { name: "info" } "{note}" }
        }
        if running {
            Live { op }
        } else if let Some(output) = &report.output {
            Printed { key: "{output.hash}", hash: output.hash.to_string() }
        } else {
            p { class: "quiet", {words::timeline::PRINTED_NOTHING} }
        }
        if call.request_count > 0 {
            h4 { {words::timeline::requests(call.request_count)} }
            ul { class: "asked",
                for request in &call.requests {
                    li {
                        span { class: if request.verdict == RequestVerdict::Allowed { "chip ok" } else { "chip bad" },
                            {choose_text(request.verdict == RequestVerdict::Allowed, words::timeline::ALLOWED, words::timeline::REFUSED)}
                        }
                        code { "{request.method} {request.host}:{request.port}" }
                        if let Some(reason) = &request.reason { span { class: "quiet", "{reason}" } }
                    }
                }
            }
        }
    }
}

/// What the person can do with a command that runs, or with a dry run that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandAction {
    Accept,
    Discard,
    Stop,
}

impl CommandAction {
    fn route(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Discard => "discard",
            Self::Stop => "stop",
        }
    }
}

/// The buttons for these actions.
#[component]
pub(super) fn CommandButtons(op: OpId, held: bool) -> Element {
    let app_state = app_state();
    let act = move |action: CommandAction| {
        api::run(async move {
            let path = format!("/commands/{op}/{}", action.route());
            match (api::send_json(Method::Post, &path, &api::Empty {}).await, action) {
                (Ok(()), CommandAction::Accept) => {
                    app_state.toast(words::timeline::KEPT, false, ToastAction::Undo(op))
                }
                (Ok(()), CommandAction::Discard) => {
                    app_state.toast(words::timeline::THROWN_AWAY, false, ToastAction::Nothing)
                }
                (Ok(()), CommandAction::Stop) => {}
                (Err(failure), _) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        if held {
            button { class: "btn pri", onclick: move |_| act(CommandAction::Accept), Icon { name: "check" } {words::timeline::ACCEPT} }
            button { class: "btn", onclick: move |_| act(CommandAction::Discard), Icon { name: "x" } {words::timeline::DISCARD} }
        } else {
            button { class: "btn", onclick: move |_| act(CommandAction::Stop), Icon { name: "square" } {words::STOP} }
        }
    }
}

/// The stored output of a command.
#[component]
fn Printed(hash: String) -> Element {
    let mut all = use_signal(|| false);
    let mut text = use_signal(|| None::<String>);
    use_hook(move || {
        spawn(async move {
            let read = api::bytes(&format!("/content?hash={hash}")).await;
            text.set(Some(match read {
                Ok((bytes, _)) => plain(&bytes),
                Err(failure) => failure.text(),
            }));
        });
    });
    let Some(text) = text() else { return rsx! { pre { class: "output" } } };
    let lines = text.lines().count();
    let shown =
        if all() { text.clone() } else { text.lines().take(FIRST_LINES).collect::<Vec<_>>().join("\n") };
    rsx! {
        pre { class: "output scroll", tabindex: "0", "aria-label": words::timeline::OUTPUT, "{shown}" }
        if lines > FIRST_LINES && !all() {
            button { class: "btn small", onclick: move |_| all.set(true), {words::timeline::show_all_lines(lines)} }
        }
    }
}

/// The live output of a command.
#[component]
fn Live(op: OpId) -> Element {
    let mut text = use_signal(String::new);
    let terminal = TerminalId::from_bytes(*op.as_bytes());
    use_hook(move || {
        let kept = Rc::new(RefCell::new((0u64, Vec::<u8>::new())));
        connection::listen(terminal, move |said| {
            let (heard, bytes) = &mut *kept.borrow_mut();
            match said {
                FromTerminal::Live => {
                    connection::send(&FromClient::AttachCommand { op, offset: *heard });
                }
                FromTerminal::Attached { offset, .. } => *heard = offset,
                FromTerminal::Output(more) => {
                    *heard += more.len() as u64;
                    bytes.extend_from_slice(&more);
                    let excess = bytes.len().saturating_sub(LIVE);
                    bytes.drain(..excess);
                    text.set(plain(bytes));
                    connection::send(&FromClient::Acknowledged { terminal, bytes: more.len() as u64 });
                }
                FromTerminal::Ended => {}
            }
        });
    });
    use_drop(move || {
        connection::ignore(terminal);
        connection::send(&FromClient::Detach { terminal });
    });
    rsx! {
        // Turned over, so that the newest line stays in sight without anybody scrolling.
        div { class: "output live scroll", tabindex: "0", "aria-label": words::timeline::OUTPUT,
            pre { if text.read().is_empty() { {words::timeline::PRINTED_NOTHING_YET} } else { "{text}" } }
        }
    }
}

/// Output as text: colours and other orders to a terminal are left out.
fn plain(bytes: &[u8]) -> String {
    let mut out = String::new();
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                if rest.next() == Some('[') {
                    let _ = rest.find(|c| ('@'..='~').contains(c));
                }
            }
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}

/// Runs a line of shell in a cell and shows it here.
pub(crate) fn start(app_state: AppState, line: &str, dry: bool) {
    let op = crate::ids::op();
    let argv = ["sh", "-c", line].map(str::to_owned).to_vec();
    let run = CellCommand { argv, dry, ..CellCommand::default() };
    let body = StartCommand { run, command: Some(crate::ids::command()), op: Some(op) };
    api::run(async move {
        let answer: ApiResult<StartedCommand> = api::post("/commands", &body).await;
        match (answer, crate::app_list::find("timeline")) {
            (Ok(_), Some(app)) => app_state.open(app, Some(&op.to_string())),
            (Ok(_), None) => {}
            (Err(failure), _) => app_state.report_failure(&failure),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_text_without_orders_to_a_terminal() {
        assert_eq!(plain(b"a\x1b[1;31mred\x1b[0m\r\nb\xff"), "ared\nb\u{fffd}");
        assert_eq!(plain(b"cut\x1b[3"), "cut");
    }
}
