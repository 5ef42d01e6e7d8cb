//! Cards: what agents ask the person.

use super::plural;

pub(crate) const WAITING_FOR_YOU: &str = "Waiting for you";
pub(crate) const CANNOT_BE_UNDONE: &str = "cannot be undone";
pub(crate) const SEE_RUN: &str = "See the run";
pub(crate) const ARGUMENTS: &str = "Arguments";

pub(crate) fn more_questions(n: u64) -> String {
    format!("{} after this", plural(n, "more question"))
}

/// The title: `Writer wants to change a file`.
pub(crate) fn title(role: &str, wants: &str) -> String {
    format!("{role} {wants}")
}

pub(crate) fn has_read(origins: &str) -> String {
    format!("It has read untrusted text from {origins}. Make sure that this is what you want.")
}

// What an agent wants, after its role.
pub(crate) const ASKS: &str = "asks";
pub(crate) const RUN_COMMAND: &str = "wants to run a command";
pub(crate) const REACH_WEB: &str = "wants to reach the web";
pub(crate) const READ_FILE: &str = "wants to read files";
pub(crate) const SEARCH_WORKSPACE: &str = "wants to search the workspace";
pub(crate) const CHANGE_FILE: &str = "wants to change a file";
pub(crate) const USE_TOOL: &str = "wants to use a tool";
pub(crate) const ACTS_OUTSIDE: &str = "is about to act outside";
pub(crate) const WAS_INTERRUPTED: &str = "was interrupted";

// Answers.
pub(crate) const YOUR_ANSWER: &str = "Your answer";
pub(crate) const ANSWER: &str = "Answer";
pub(crate) const ALLOW_ONCE: &str = "Allow once";
pub(crate) const ALLOW_IN_RUN: &str = "This run";
pub(crate) const ALLOW_ALWAYS: &str = "Always";
pub(crate) const DENY: &str = "Deny";
pub(crate) const WHY_NOT: &str = "Why not, if you want to say";
/// Before the pattern of the calls that are allowed.
pub(crate) const ALLOWS_MORE: &str = "For more than once it allows ";

// A call that was interrupted.
pub(crate) const INTERRUPTED: &str =
    "The computer stopped while this ran. It may have reached the outside. Should it be done again?";
pub(crate) const DO_AGAIN: &str = "Do it again";
pub(crate) const LEAVE_IT: &str = "Leave it";

// The outbox.
pub(crate) const CALL_OFF: &str = "Call it off";
pub(crate) const LET_GO: &str = "Let it go now";
/// What the agent is told.
pub(crate) const CALLED_OFF: &str = "the person called it off";
pub(crate) const GOES_WITH_RUN: &str = "It goes out after the run goes on.";

pub(crate) fn goes_in(duration: &str) -> String {
    format!("It goes out in {duration}.")
}
