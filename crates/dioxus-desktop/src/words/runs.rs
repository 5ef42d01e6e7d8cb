//! Runs: the list, one run with its agents and steps, and how runs and budgets are written.

use super::plural;

// The list.
pub(crate) const RUNS: &str = "Runs";
pub(crate) const NONE_YET: &str = "Nothing has been asked yet";
pub(crate) const NONE_YET_MORE: &str =
    "Say what the choir should do. It works in the open: each step can be seen, stopped and undone.";
pub(crate) const ASK: &str = "Ask the choir";
pub(crate) const OLDER: &str = "Older runs";
pub(crate) const NOT_A_RUN: &str = "This is not a run";
pub(crate) const ALL_RUNS: &str = "All runs";

pub(crate) fn questions(n: u64) -> String {
    plural(n, "question")
}

// States of runs and agents.
pub(crate) const WORKING: &str = "working";
pub(crate) const WAITING: &str = "waits for you";
pub(crate) const PAUSED: &str = "paused";
pub(crate) const STOPPED: &str = "stopped";
pub(crate) const DONE: &str = "done";

// Toasts.
pub(crate) const RUN_DONE: &str = "Done";
pub(crate) const RUN_FAILED: &str = "Failed";
pub(crate) const RUN_PAUSED: &str = "Paused";
pub(crate) const SENT_LATER: &str = "The computer does not answer. This is sent when it does.";

/// `Failed: tidy the notes. No model answered`
pub(crate) fn ended(state: &str, title: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{state}: {title}. {reason}"),
        None => format!("{state}: {title}"),
    }
}

// The top of a run.
pub(crate) const GO_ON: &str = "Go on";
pub(crate) const PAUSE: &str = "Pause";
pub(crate) const TAKE_OVER: &str = "Take over";
pub(crate) const UNDO_RUN: &str = "Undo the run";
pub(crate) const REDO_RUN: &str = "Redo the run";
pub(crate) const BUDGET: &str = "Budget";
pub(crate) const SPENT: &str = "Spent";
pub(crate) const RESULT: &str = "Result";

pub(crate) fn spent_of(percent: u64, budget: &str) -> String {
    format!("{percent}% of {budget}")
}

// Agents.
pub(crate) const AGENTS: &str = "Agents";
pub(crate) const FIRST_AGENT_COMES: &str = "The first agent is on its way.";
pub(crate) const ONLY_ITS_STEPS: &str = "Show only its steps";
pub(crate) const READ_UNTRUSTED_TEXT: &str = "Has read untrusted text.";
pub(crate) const TRUST: &str = "Trust";

pub(crate) fn have_read(origins: &str) -> String {
    format!("They have read untrusted text from {origins}.")
}

pub(crate) fn have_read_and_work(origins: &str) -> String {
    format!(
        "They have read untrusted text from {origins}, which may try to steer them. What cannot be undone is asked about first."
    )
}

// Where untrusted text came from.
pub(crate) const FROM_WEB: &str = "a web page";
pub(crate) const FROM_IMPORT: &str = "an import";
pub(crate) const FROM_COMMAND: &str = "a command with the network";
pub(crate) const FROM_MCP: &str = "a tool of an MCP server";

// Steering.
pub(crate) const STEER: &str = "Steer";
pub(crate) const STEER_EXAMPLE: &str = "Steer: say something while they work";
pub(crate) const TO_WHOM: &str = "To whom";
pub(crate) const TO_LEAD: &str = "to the leading agent";

pub(crate) fn to_role(role: &str) -> String {
    format!("to the {role}")
}

// Steps.
pub(crate) const STEPS: &str = "Steps";
pub(crate) const STEPS_OF_ONE: &str = "Steps of one agent";
pub(crate) const STEPS_LIST: &str = "Steps, newest first";
pub(crate) const STEP: &str = "Step";
pub(crate) const CLOSE_STEP: &str = "Close the step";
pub(crate) const INPUT: &str = "Input";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const IN_TIMELINE: &str = "In the timeline";
/// The author of a step that no agent took.
pub(crate) const RUN: &str = "Run";

pub(crate) fn show_earlier(steps: u64) -> String {
    format!("Show {} earlier", super::steps(steps))
}

/// What follows the time of a step.
pub(crate) fn at_event(seq: shared_types::Seq) -> String {
    format!(" · {}", super::event(seq))
}

// Money and budgets.
pub(crate) const UNDER_A_CENT: &str = "under 1¢";
pub(crate) const FREE: &str = "free";
pub(crate) const PRICE_UNKNOWN: &str = "price unknown";
pub(crate) const NO_LIMIT: &str = "no limit";

pub(crate) fn tokens(count: &str) -> String {
    format!("{count} tokens")
}

pub(crate) fn price(read: &str, written: &str) -> String {
    format!("{read} in, {written} out per million")
}
