//! The arguments of every command. The help of each command has an example.

mod agents;
mod server;

use std::path::PathBuf;

pub use agents::{Approve, Ask, Mcp, Models, ModelsAction, RevertRun, Runs, RunsAction};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use server::{Data, Keys, KeysAction, Link, Up};
use shared_types::Seq;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed (the message says why)
  2  usage error: an argument, a path or a setting is not valid
  3  conflict with later changes; nothing was changed
  4  not found
  5  refused: the computer does not allow this in its current state
  6  damaged: stored data does not verify
  7  busy: another process holds the computer and does not answer
  8  the run that was followed failed; 9 it was stopped; 10 it waits for your answer; 11 it is paused

Example:
  choir init notes && cd notes
  echo hello | choir write a.txt
  choir rm a.txt
  choir undo";

/// The automatic computer: every change is an event, every event can be undone.
#[derive(Debug, Parser)]
#[command(name = "choir", version, after_help = EXIT_CODES, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// The folder of the computer (default: this folder or the nearest one above it)
    #[arg(short = 'C', long = "dir", global = true, value_name = "DIR", env = "CHOIR_DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON object per line, for scripts
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Run {
    /// Show what the command changes, and apply it only when it is accepted
    #[arg(long)]
    pub dry: bool,
    /// A host that the command may connect to (repeatable), or `open` for all public hosts
    #[arg(long, value_name = "HOST")]
    pub net: Vec<String>,
    /// Memory limit, such as 512M or 2G
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub mem: Option<u64>,
    /// Disk limit: what the command may write, such as 100M
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub disk: Option<u64>,
    /// Time limit in seconds
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u64>,
    /// Limit on the number of processes
    #[arg(long, value_name = "COUNT")]
    pub processes: Option<u32>,
    /// Let the command read standard input
    #[arg(short = 'i', long)]
    pub stdin: bool,
    /// Apply the changes of a dry run
    #[arg(long, value_name = "OP", conflicts_with_all = ["discard", "dry", "command"])]
    pub accept: Option<String>,
    /// Discard the changes of a dry run
    #[arg(long, value_name = "OP", conflicts_with_all = ["dry", "command"])]
    pub discard: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["accept", "discard"], value_name = "CMD")]
    pub command: Vec<String>,
}

/// Parses a size: a number with an optional suffix K, M or G (powers of 1024).
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.trim_end_matches(['b', 'B', 'i']).to_ascii_uppercase() {
        upper if upper.ends_with('K') => (upper, 10),
        upper if upper.ends_with('M') => (upper, 20),
        upper if upper.ends_with('G') => (upper, 30),
        upper => (upper, 0),
    };
    let number: u64 = digits
        .trim_end_matches(['K', 'M', 'G'])
        .parse()
        .map_err(|_| format!("{text:?} is not a size; for example 512M"))?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("{text:?} is not a valid limit"))
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the desktop to the browser, and print a link that signs you in
    #[command(after_help = "Examples:\n  choir up\n  choir up --port 9000 --data ~/choir")]
    Up(Up),
    /// Create another sign-in link: single use, valid for five minutes
    #[command(after_help = "Example:\n  choir link")]
    Link(Link),
    /// List, set and clear the keys of model providers; they are stored encrypted and never shown
    #[command(
        after_help = "Examples:\n  choir keys\n  choir keys set anthropic\n  pass show zai | choir keys set zai --shared\n  \
        choir keys clear anthropic"
    )]
    Keys(Keys),
    /// List models and what each still needs; download or decline the local model
    #[command(after_help = "Examples:\n  choir models\n  choir models fetch\n  choir models decline")]
    Models(Models),
    /// Turn a folder into a computer, with the files it already has
    #[command(after_help = "Example:\n  choir init ~/notes --name 'Ada Lovelace'")]
    Init(Init),
    /// Record outside edits and show the state of the computer
    #[command(after_help = "Example:\n  choir status --json")]
    Status,
    /// Run a command in a sandbox; its changes are one operation that can be undone
    #[command(
        after_help = "Examples:\n  choir run -- cargo test\n  choir run --dry -- sh -c 'rm -rf src/*.bak'\n  \
        choir run --net example.org --time 30 -- git clone https://example.org/x.git\n\n\
        The command sees the workspace and the installed programs, and nothing else. A command that is killed or \n\
        exceeds a limit changes nothing. choir exits with the command's exit code, or with 124 if a limit ended it."
    )]
    Run(Run),
    /// Give agents an objective and follow their work
    #[command(after_help = "Examples:\n  choir ask 'Write a report on bees into bees.md' --watch\n  \
        choir ask 'Fix the failing test' --attach src/lib.rs --budget 0.50\n\n\
        While another process holds the computer (choir up), agents work there and this command returns at once, \n\
        unless --watch is given. Otherwise they work in this process, and Ctrl-C pauses the run.\n\
        Exit codes: 0 completed, 8 failed, 9 stopped, 10 waits for your answer, 11 paused.")]
    Ask(Ask),
    /// List runs of agents; inspect, steer or undo one
    #[command(
        after_help = "Examples:\n  choir runs\n  choir runs 3f2a9c1b\n  choir runs 3f2a9c1b --step 42\n  \
        choir runs steer 3f2a9c1b 'Shorter, please'\n  choir runs undo 3f2a9c1b --preview"
    )]
    Runs(Runs),
    /// List and answer the questions and permission requests of agents
    #[command(
        after_help = "Examples:\n  choir approve\n  choir approve 3f2a9c1b\n  choir approve 3f2a9c1b --run\n  \
        choir approve 3f2a9c1b --deny 'use the copy'\n  choir approve 3f2a9c1b --answer 'In metres'\n  \
        choir approve --grants\n\n\
        With only the id, the request is allowed once."
    )]
    Approve(Approve),
    /// Write a file, from standard input or another file
    #[command(
        after_help = "Examples:\n  echo hello | choir write a.txt\n  choir write photo.jpg --from ~/photo.jpg"
    )]
    Write(Write),
    /// Print a file as recorded in the log, now or at an event
    #[command(after_help = "Examples:\n  choir cat a.txt\n  choir cat a.txt --at 17")]
    Cat(Cat),
    /// Delete files, and folders with everything in them, as one operation
    #[command(after_help = "Examples:\n  choir rm src/old\n  choir rm a.txt b.txt c.txt")]
    Rm(Rm),
    /// Move or rename a file or a folder
    #[command(after_help = "Example:\n  choir mv draft.md chapters/one.md")]
    Mv(Mv),
    /// List events, newest last
    #[command(
        after_help = "Examples:\n  choir log --path src --since 2h\n  choir log --type file.write --follow"
    )]
    Log(Log),
    /// Show one operation with its diff
    #[command(after_help = "Examples:\n  choir show 3f2a9c1b\n  choir show @42")]
    Show(Show),
    /// Undo an operation: your latest, or any other
    #[command(
        after_help = "Examples:\n  choir undo --preview\n  choir undo 3f2a9c1b\n  choir undo @42 --keep notes.md\n\n\
        Later edits are kept: text is merged, and in a real conflict nothing changes until you choose."
    )]
    Undo(Revert),
    /// Redo an undone operation
    #[command(after_help = "Example:\n  choir redo")]
    Redo(Revert),
    /// Return files, settings, windows and notes to their state at an event
    #[command(after_help = "Examples:\n  choir restore 17 --preview\n  choir restore 17")]
    Restore(Restore),
    /// Compare the files at two events
    #[command(after_help = "Examples:\n  choir diff 10..20\n  choir diff 10..")]
    Diff(Diff),
    /// Find files by name and content
    #[command(after_help = "Example:\n  choir search living document")]
    Search(Search),
    /// Recompute the state from the first event
    #[command(after_help = "Example:\n  choir replay --to 1000")]
    Replay(Replay),
    /// Replay the log and check hash chain, state roots, read models and files
    #[command(after_help = "Example:\n  choir verify && echo intact")]
    Verify,
    /// Create, list, compare and restore git checkpoints
    #[command(after_help = "Examples:\n  choir checkpoint -m 'Before the talk'\n  choir checkpoint list\n  \
        choir checkpoint diff 3f2a9c1b\n  choir checkpoint restore 3f2a9c1b --preview")]
    Checkpoint(Checkpoint),
    /// Write the whole computer to one file
    #[command(after_help = "Example:\n  choir export backup.zip")]
    Export(Export),
    /// Import an export: an empty computer adopts its log, another gets its files as one operation
    #[command(after_help = "Examples:\n  choir init new && choir -C new import backup.zip\n  \
        choir import backup.zip --into from-laptop")]
    Import(Import),
    /// Delete content permanently, such as a pasted secret; its hash stays, so the log still verifies
    #[command(
        after_help = "Examples:\n  choir rm secrets.txt && choir purge secrets.txt --reason 'pasted key'\n  \
        choir purge --orphans"
    )]
    Purge(Purge),
    /// Start the MCP servers of choir.toml and list the tools that agents get from them
    #[command(after_help = "Examples:\n  choir mcp\n  choir mcp tracker")]
    Mcp(Mcp),
    /// Keep the computer open: record outside edits as they happen, serve other commands
    #[command(after_help = "Example:\n  choir watch &")]
    Watch,
    /// Check the machine, the configuration and the computer
    #[command(after_help = "Examples:\n  choir doctor\n  choir doctor --rebuild")]
    Doctor(Doctor),
    /// Run benchmarks, each against a reference on the same disk
    #[command(after_help = "Examples:\n  choir bench append --json\n  choir bench replay --folder /mnt/disk")]
    Bench(Bench),
}

#[derive(Debug, Args)]
pub struct Init {
    /// The folder; it is created if it does not exist
    pub folder: PathBuf,
    /// The user's id: a-z, 0-9 and '-' (default: from your login name)
    #[arg(long)]
    pub user: Option<String>,
    /// Your name (default: your login name)
    #[arg(long)]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Write {
    pub path: PathBuf,
    /// Read from this file instead of standard input
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Permission bits in octal (default: unchanged, or 644 for a new file)
    #[arg(long, value_parser = octal)]
    pub mode: Option<u16>,
    /// Only if the file still has this content hash
    #[arg(long, value_name = "HASH", conflicts_with = "new")]
    pub base: Option<shared_types::ContentHash>,
    /// Only if the file does not exist yet
    #[arg(long)]
    pub new: bool,
}

fn octal(text: &str) -> Result<u16, String> {
    match u16::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        Ok(_) | Err(_) => Err("expected octal permission bits such as 644".into()),
    }
}

#[derive(Debug, Args)]
pub struct Cat {
    pub path: PathBuf,
    /// As it was after this event
    #[arg(long, value_name = "SEQ")]
    pub at: Option<Seq>,
}

#[derive(Debug, Args)]
pub struct Rm {
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Mv {
    pub from: PathBuf,
    pub to: PathBuf,
}

#[derive(Debug, Args)]
pub struct Log {
    /// Only events that touched this file, or anything in this folder
    #[arg(long)]
    pub path: Option<PathBuf>,
    /// Only events of this operation
    #[arg(long)]
    pub op: Option<String>,
    /// Only this type (file.write) or family (file)
    #[arg(long = "type", value_name = "TYPE")]
    pub name: Option<String>,
    /// Only events since then: 90s, 2h, 3d, 2026-11-15, 2026-11-15T08:00
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// The number of newest events to list
    #[arg(short = 'n', long, default_value_t = 50, conflicts_with = "all")]
    pub limit: usize,
    /// List all events
    #[arg(long)]
    pub all: bool,
    /// Keep printing new events as they happen
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Debug, Args)]
pub struct Show {
    /// An id, a part of it (four digits or more), or @SEQ
    pub op: String,
}

#[derive(Debug, Args)]
pub struct Revert {
    /// An id, a part of it (four digits or more), or @SEQ (default: the latest)
    pub op: Option<String>,
    /// Only show what would change
    #[arg(long)]
    pub preview: bool,
    /// In a conflict, keep the current version of this file (or setting:KEY)
    #[arg(long, value_name = "PATH")]
    pub keep: Vec<String>,
    /// In a conflict, restore this file (or setting:KEY) over later changes
    #[arg(long, value_name = "PATH")]
    pub take: Vec<String>,
    /// Keep the current version of everything in conflict
    #[arg(long, conflicts_with = "take_all")]
    pub keep_all: bool,
    /// Restore everything in conflict over later changes
    #[arg(long)]
    pub take_all: bool,
}

#[derive(Debug, Args)]
pub struct Restore {
    /// The event to return to
    pub seq: Seq,
    /// Only show what would change
    #[arg(long)]
    pub preview: bool,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// Two events, as FROM..TO; an empty TO is now
    #[arg(value_name = "SEQ..SEQ")]
    pub range: String,
    /// Print only the names of changed files
    #[arg(long)]
    pub names: bool,
}

#[derive(Debug, Args)]
pub struct Search {
    #[arg(required = true)]
    pub words: Vec<String>,
    #[arg(short = 'n', long, default_value_t = 20)]
    pub limit: u32,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// Stop after this event
    #[arg(long, value_name = "SEQ")]
    pub to: Option<Seq>,
}

#[derive(Debug, Args)]
pub struct Checkpoint {
    /// A message for the checkpoint
    #[arg(short, long)]
    pub message: Option<String>,
    #[command(subcommand)]
    pub action: Option<CheckpointAction>,
}

#[derive(Debug, Subcommand)]
pub enum CheckpointAction {
    /// List checkpoints, newest first
    #[command(after_help = "Example:\n  choir checkpoint list")]
    List,
    /// Compare a checkpoint with another, or with now
    #[command(after_help = "Example:\n  choir checkpoint diff 3f2a9c1b")]
    Diff { from: String, to: Option<String> },
    /// Restore a checkpoint; the current state is saved under a backup ref first
    #[command(after_help = "Example:\n  choir checkpoint restore 3f2a9c1b --preview")]
    Restore {
        commit: String,
        #[arg(long)]
        preview: bool,
    },
}

#[derive(Debug, Args)]
pub struct Export {
    /// The file to write; '-' is standard output
    pub file: PathBuf,
    /// As of this event (default: now)
    #[arg(long, value_name = "SEQ")]
    pub at: Option<Seq>,
}

#[derive(Debug, Args)]
pub struct Import {
    pub file: PathBuf,
    /// Put the files below this folder
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Purge {
    /// Content hashes, or paths (every version that was ever there)
    #[arg(value_name = "HASH|PATH", required_unless_present = "orphans")]
    pub targets: Vec<String>,
    /// Delete content that no event refers to
    #[arg(long)]
    pub orphans: bool,
    /// The reason, for the log
    #[arg(long, default_value = "asked by the person")]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Rebuild the read models from the first event
    #[arg(long)]
    pub rebuild: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum BenchKind {
    Append,
    Replay,
    Undo,
    Fanout,
    Cell,
    Computers,
    Put,
}

#[derive(Debug, Args)]
pub struct Bench {
    #[arg(value_enum, required_unless_present_any = ["probe_memory", "probe_computers"])]
    pub kind: Option<BenchKind>,
    /// A folder on the disk to measure (default: the temporary folder)
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// A short run with little data, to check that the benchmark works
    #[arg(long)]
    pub quick: bool,
    #[arg(long, hide = true, value_name = "DIR", requires = "probe_subject")]
    pub probe_memory: Option<PathBuf>,
    #[arg(long, hide = true, value_name = "DIR", requires = "probe_subject")]
    pub probe_computers: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub probe_subject: Option<String>,
}
