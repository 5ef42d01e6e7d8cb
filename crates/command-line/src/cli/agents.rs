//! The arguments of the agent commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use shared_types::Seq;
use shared_types::payload::run::Budget;

use super::Revert;

#[derive(Debug, Args)]
pub struct Ask {
    /// The objective, in your own words
    #[arg(required = true, value_name = "OBJECTIVE")]
    pub objective: Vec<String>,
    /// A model from the catalog, for all agents of this run
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The budget: dollars, or steps=, tokens=, seconds= and dollars= separated by commas
    #[arg(long, value_name = "BUDGET", value_parser = budget)]
    pub budget: Option<Budget>,
    /// A file for the agents to read (repeatable)
    #[arg(long, value_name = "PATH")]
    pub attach: Vec<PathBuf>,
    /// Print every step as it happens, and ask questions here
    #[arg(short, long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct Mcp {
    /// Only this server, with the description of each tool
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Models {
    #[command(subcommand)]
    pub action: Option<ModelsAction>,
}

#[derive(Debug, Subcommand)]
pub enum ModelsAction {
    /// Download the local model; shows its name and size first
    #[command(after_help = "Example:\n  choir models fetch\n\n\
        An interrupted download resumes where it stopped. CHOIR_WEIGHTS sets another folder for it.")]
    Fetch,
    /// Decline that download and do not be asked again
    #[command(after_help = "Example:\n  choir models decline")]
    Decline,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    /// The run to inspect: its id, or four or more digits of it
    pub run: Option<String>,
    /// Show the input and output of this step
    #[arg(long, value_name = "SEQ", requires = "run")]
    pub step: Option<Seq>,
    /// Only runs (or steps, of one run) before this event
    #[arg(long, value_name = "SEQ", conflicts_with = "step")]
    pub before: Option<Seq>,
    /// Print every step as it happens, and ask questions here
    #[arg(short, long, requires = "run", conflicts_with_all = ["step", "before"])]
    pub watch: bool,
    #[command(subcommand)]
    pub action: Option<RunsAction>,
}

#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// Stop a run; its changes stay until they are undone
    #[command(after_help = "Example:\n  choir runs stop 3f2a9c1b")]
    Stop { run: String },
    /// Pause a run
    #[command(after_help = "Example:\n  choir runs pause 3f2a9c1b")]
    Pause {
        run: String,
        /// Work on it yourself; when the run resumes, agents learn what you changed
        #[arg(long)]
        take_over: bool,
    },
    /// Resume a run, optionally with another budget
    #[command(after_help = "Examples:\n  choir runs resume 3f2a9c1b --watch\n  \
        choir runs resume 3f2a9c1b --budget steps=200")]
    Resume {
        run: String,
        /// The budget, counted from the start of the run: dollars, or steps=, tokens=, seconds= and dollars=
        #[arg(long, value_name = "BUDGET", value_parser = budget)]
        budget: Option<Budget>,
        /// Print every step as it happens, and ask questions here
        #[arg(short, long)]
        watch: bool,
    },
    /// Send a message to the agents while they work
    #[command(after_help = "Example:\n  choir runs steer 3f2a9c1b 'Leave the tests alone'")]
    Steer {
        run: String,
        #[arg(required = true)]
        words: Vec<String>,
        /// Send it to this agent (four or more digits of its id) instead of the first one
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
    },
    /// Trust what an agent has read: clears its taint labels
    #[command(after_help = "Example:\n  choir runs trust 3f2a9c1b 9c1b3f2a")]
    Trust { run: String, task: String },
    /// Undo all file changes of a run, as one operation
    #[command(after_help = "Examples:\n  choir runs undo 3f2a9c1b --preview\n  \
        choir runs undo 3f2a9c1b --keep notes.md")]
    Undo(RevertRun),
    /// Retry a run from a step on; file changes made since that step are undone
    #[command(after_help = "Examples:\n  choir runs 3f2a9c1b      # lists its steps\n  \
        choir runs retry 3f2a9c1b 4711 --watch")]
    Retry {
        #[command(flatten)]
        of: RevertRun,
        /// The turn or tool call to start from: its number in the list of steps
        step: Seq,
        /// Print every step as it happens, and ask questions here
        #[arg(short, long)]
        watch: bool,
    },
    /// Redo the undone file changes of a run
    #[command(after_help = "Example:\n  choir runs redo 3f2a9c1b")]
    Redo(RevertRun),
}

#[derive(Debug, Args)]
pub struct RevertRun {
    /// The id of the run, or four or more digits of it
    pub run: String,
    /// Only show what would change
    #[arg(long)]
    pub preview: bool,
    /// In a conflict, keep the current version of this file
    #[arg(long, value_name = "PATH")]
    pub keep: Vec<String>,
    /// In a conflict, restore this file over later changes
    #[arg(long, value_name = "PATH")]
    pub take: Vec<String>,
    /// Keep the current version of everything in conflict
    #[arg(long, conflicts_with = "take_all")]
    pub keep_all: bool,
    /// Restore everything in conflict over later changes
    #[arg(long)]
    pub take_all: bool,
}

impl RevertRun {
    /// The same choices as for an operation.
    pub(crate) fn as_revert(&self) -> Revert {
        let Self { run, preview, keep, take, keep_all, take_all } = self;
        Revert {
            op: Some(run.clone()),
            preview: *preview,
            keep: keep.clone(),
            take: take.clone(),
            keep_all: *keep_all,
            take_all: *take_all,
        }
    }
}

#[derive(Debug, Args)]
pub struct Approve {
    /// The question: its id, or four or more digits of it (default: list pending questions)
    pub ask: Option<String>,
    /// Allow it for the rest of this run
    #[arg(long, group = "word")]
    pub run: bool,
    /// Allow it from now on, in every run
    #[arg(long, group = "word")]
    pub always: bool,
    /// Allow it once; needs no id if only one question is pending
    #[arg(long, group = "word")]
    pub once: bool,
    /// Deny it, with a reason
    #[arg(long, value_name = "WHY", group = "word")]
    pub deny: Option<String>,
    /// Answer a question
    #[arg(long, value_name = "WORDS", group = "word")]
    pub answer: Option<String>,
    /// List what agents may do without asking
    #[arg(long, conflicts_with_all = ["word", "ask", "revoke"])]
    pub grants: bool,
    /// Revoke such a permission
    #[arg(long, value_name = "GRANT", conflicts_with_all = ["word", "ask"])]
    pub revoke: Option<String>,
    /// Then print every step as it happens, and ask questions here
    #[arg(short, long)]
    pub watch: bool,
}

/// Parses a budget.
fn budget(text: &str) -> Result<Budget, String> {
    let mut budget = Budget::default();
    for part in text.split(',').map(str::trim) {
        let (name, value) = part.split_once('=').unwrap_or(("dollars", part));
        let number = || value.parse::<u64>().ok().filter(|number| *number > 0);
        let slot = match name.trim() {
            "steps" => (&mut budget.steps, number()),
            "tokens" => (&mut budget.tokens, number()),
            "seconds" => (&mut budget.seconds, number()),
            "dollars" => (&mut budget.micros, micros(value)),
            _ => (&mut budget.steps, None),
        };
        match slot {
            (slot, Some(number)) => *slot = Some(number),
            (_, None) => {
                return Err(format!(
                    "{part:?} is not a budget; for example 0.50 or steps=40,tokens=200000,seconds=600"
                ));
            }
        }
    }
    Ok(budget)
}

/// Parses dollars into millionths, exactly.
fn micros(text: &str) -> Option<u64> {
    let text = text.trim().trim_start_matches('$');
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 || text.trim_matches('.').is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(part).filter(|micros| *micros > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_dollars_or_named_bounds() {
        let money = |micros| Budget { micros: Some(micros), ..Budget::default() };
        assert_eq!(budget("0.50"), Ok(money(500_000)));
        assert_eq!(budget("$2"), Ok(money(2_000_000)));
        assert_eq!(budget(".000001"), Ok(money(1)));
        let all = Budget { steps: Some(4), seconds: Some(9), tokens: Some(5), micros: Some(1_250_000) };
        assert_eq!(budget("steps=4, tokens=5,seconds=9,dollars=1.25"), Ok(all));
        for bad in
            ["", "x", "-1", "0", "0.0000001", "steps=", "steps=-1", "steps=1.5", "coins=3", "1.2.3", "."]
        {
            assert!(budget(bad).is_err(), "{bad}");
        }
    }
}
