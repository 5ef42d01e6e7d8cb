//! The arguments of the commands about agents.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use shared_types::Seq;
use shared_types::payload::run::Budget;

use super::Revert;

#[derive(Debug, Args)]
pub struct Ask {
    /// What is to be done, in your words
    #[arg(required = true, value_name = "OBJECTIVE")]
    pub objective: Vec<String>,
    /// A model of the catalog, for all agents of this run
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// What it may take: dollars, or steps=, tokens=, seconds= and dollars= joined by commas
    #[arg(long, value_name = "BUDGET", value_parser = budget)]
    pub budget: Option<Budget>,
    /// A file for the agents to look at (again for more)
    #[arg(long, value_name = "PATH")]
    pub attach: Vec<PathBuf>,
    /// Print every step as it happens, and ask here for what needs your word
    #[arg(short, long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct Mcp {
    /// Only this server, with what it says of each tool
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Models {
    #[command(subcommand)]
    pub action: Option<ModelsAction>,
}

#[derive(Debug, Subcommand)]
pub enum ModelsAction {
    /// Download the model that runs on this machine; it says first what and how much that is
    #[command(after_help = "Example:\n  choir models fetch\n\n\
        A download that broke off goes on where it stopped. CHOIR_WEIGHTS names another folder for it.")]
    Fetch,
    /// Do not want that download, and not be asked about it again
    #[command(after_help = "Example:\n  choir models decline")]
    Decline,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    /// The run to look into: its id, or four or more digits of it
    pub run: Option<String>,
    /// What went in and came out of this step of it
    #[arg(long, value_name = "SEQ", requires = "run")]
    pub step: Option<Seq>,
    /// Only runs (or steps, of one run) before this event
    #[arg(long, value_name = "SEQ", conflicts_with = "step")]
    pub before: Option<Seq>,
    /// Print every step as it happens, and ask here for what needs your word
    #[arg(short, long, requires = "run", conflicts_with_all = ["step", "before"])]
    pub watch: bool,
    #[command(subcommand)]
    pub action: Option<RunsAction>,
}

#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// End a run; what it did stays, until it is undone
    #[command(after_help = "Example:\n  choir runs stop 3f2a9c1b")]
    Stop { run: String },
    /// Let a run stand still
    #[command(after_help = "Example:\n  choir runs pause 3f2a9c1b")]
    Pause {
        run: String,
        /// You work on it alone now; agents are told what you changed when they go on
        #[arg(long)]
        take_over: bool,
    },
    /// Let a run go on, with another budget if you like
    #[command(after_help = "Examples:\n  choir runs resume 3f2a9c1b --watch\n  \
        choir runs resume 3f2a9c1b --budget steps=200")]
    Resume {
        run: String,
        /// What it may take from its start on: dollars, or steps=, tokens=, seconds= and dollars=
        #[arg(long, value_name = "BUDGET", value_parser = budget)]
        budget: Option<Budget>,
        /// Print every step as it happens, and ask here for what needs your word
        #[arg(short, long)]
        watch: bool,
    },
    /// Say something to the agents while they work
    #[command(after_help = "Example:\n  choir runs steer 3f2a9c1b 'Leave the tests alone'")]
    Steer {
        run: String,
        #[arg(required = true)]
        words: Vec<String>,
        /// To this agent (four or more digits of its id) instead of the first one
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
    },
    /// Trust what an agent has read: the labels of untrusted words are cleared
    #[command(after_help = "Example:\n  choir runs trust 3f2a9c1b 9c1b3f2a")]
    Trust { run: String, task: String },
    /// Take back all that a run did to files, as one operation
    #[command(after_help = "Examples:\n  choir runs undo 3f2a9c1b --preview\n  \
        choir runs undo 3f2a9c1b --keep notes.md")]
    Undo(RevertRun),
    /// Let a run go on from before a step, another time; what its calls did to files since is taken back
    #[command(after_help = "Examples:\n  choir runs 3f2a9c1b      # lists its steps\n  \
        choir runs retry 3f2a9c1b 4711 --watch")]
    Retry {
        #[command(flatten)]
        of: RevertRun,
        /// The turn or the call to begin with: the number before it in the list of steps
        step: Seq,
        /// Print every step as it happens, and ask here for what needs your word
        #[arg(short, long)]
        watch: bool,
    },
    /// Bring back what was taken back
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
    /// In a conflict, leave this file as it is today
    #[arg(long, value_name = "PATH")]
    pub keep: Vec<String>,
    /// In a conflict, put this file back, over later changes
    #[arg(long, value_name = "PATH")]
    pub take: Vec<String>,
    /// Leave everything in conflict as it is today
    #[arg(long, conflicts_with = "take_all")]
    pub keep_all: bool,
    /// Put everything in conflict back, over later changes
    #[arg(long)]
    pub take_all: bool,
}

impl RevertRun {
    /// The same as for an operation.
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
    /// The question: its id, or four or more digits of it (default: list what waits)
    pub ask: Option<String>,
    /// Allow it for the rest of this run
    #[arg(long, group = "word")]
    pub run: bool,
    /// Allow it from now on, in every run
    #[arg(long, group = "word")]
    pub always: bool,
    /// Allow it this once, the only question there is
    #[arg(long, group = "word")]
    pub once: bool,
    /// Do not allow it, and say why
    #[arg(long, value_name = "WHY", group = "word")]
    pub deny: Option<String>,
    /// Answer a question
    #[arg(long, value_name = "WORDS", group = "word")]
    pub answer: Option<String>,
    /// List what agents may do without asking
    #[arg(long, conflicts_with_all = ["word", "ask", "revoke"])]
    pub grants: bool,
    /// Take such a permission back
    #[arg(long, value_name = "GRANT", conflicts_with_all = ["word", "ask"])]
    pub revoke: Option<String>,
    /// Then print every step as it happens, and ask here for what needs your word
    #[arg(short, long)]
    pub watch: bool,
}

/// A budget in words.
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
                    "{part:?} is no budget; for example 0.50 or steps=40,tokens=200000,seconds=600"
                ));
            }
        }
    }
    Ok(budget)
}

/// Dollars as millionths, exactly.
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
