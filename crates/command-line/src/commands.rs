//! One file per command: turns arguments into a request or reads the log, and prints the result.

mod approve;
mod ask;
mod bench;
mod checkpoint;
mod content;
mod diff;
mod doctor;
mod export;
mod files;
mod follow_run;
mod init;
mod keys;
mod link;
mod log;
mod mcp;
mod models;
mod purge;
mod replay;
mod revert;
mod run;
mod runs;
mod search;
mod services;
mod show;
mod status;
mod up;
mod verify;
mod watch;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use event_log::{EventLog, SqliteLog};
use hypervisor::assets::Assets;
use shared_types::Seq;

use crate::cli::{Cli, Command};
use crate::render::{ProgressReport, Style};
use agent_host::agent_services::AgentServices;
use computer::client;
use computer::error::{ComputerError, ErrorCode};
use computer::paths::ComputerPaths;
use computer::protocol::{Answer, ChangeResult, Request, RunRequest, RunResponse};

/// The global options of every command.
pub(crate) struct Context {
    pub(crate) dir: Option<PathBuf>,
    pub(crate) style: Style,
}

impl Context {
    pub(crate) fn paths(&self) -> Result<ComputerPaths> {
        ComputerPaths::find(self.dir.as_deref())
    }

    /// Opens the log read-only. This works while another process holds it, on a read-only disk, and with a broken end.
    pub(crate) fn reading(&self) -> Result<SqliteLog> {
        Ok(SqliteLog::open_read_only(&self.paths()?.state).map_err(ComputerError::from)?)
    }

    pub(crate) fn ask(&self, request: Request, body: &mut dyn Read) -> Result<Answer> {
        let bar = ProgressReport::new(self.style);
        let paths = self.paths()?;
        Ok(client::request(&paths, request, body, &|phase, done, total| bar.update(phase, done, total))?)
    }

    /// The services for agents that work in this process: the same as in `choir up`, with the owner's
    /// keys.
    pub(crate) fn agent_services(&self) -> Result<AgentServices> {
        services::of_this_machine()
    }

    /// Sends a request about runs of agents.
    pub(crate) fn about_runs(&self, request: RunRequest) -> Result<RunResponse> {
        Ok(self.ask(Request::AgentRuns(request), &mut std::io::empty())?.into_runs()?)
    }

    pub(crate) fn change(&self, request: Request, body: &mut dyn Read) -> Result<ChangeResult> {
        Ok(self.ask(request, body)?.into_done()?)
    }
}

/// The given event, or the newest. An event after the end of the log is not found.
fn moment(log: &dyn EventLog, named: Option<Seq>) -> Result<Seq> {
    let head = log.head().seq;
    match named {
        Some(seq) if seq > head => {
            Err(ComputerError::new(ErrorCode::NotFound, format!("the log ends at event {head}")).into())
        }
        Some(seq) => Ok(seq),
        None => Ok(head),
    }
}

pub(crate) fn run(cli: Cli, assets: Arc<dyn Assets>) -> Result<ExitCode> {
    let context = Context { dir: cli.dir, style: Style::choose(cli.json) };
    let done = match cli.command {
        Command::Run(args) => return run::run(&context, &args),
        Command::Ask(args) => return ask::run(&context, &args),
        Command::Runs(args) => return runs::run(&context, args),
        Command::Approve(args) => return approve::run(&context, &args),
        Command::Init(args) => init::run(&context, &args),
        Command::Status => status::run(&context),
        Command::Write(args) => files::write(&context, &args),
        Command::Cat(args) => content::run(&context, &args),
        Command::Rm(args) => files::remove(&context, &args),
        Command::Mv(args) => files::rename(&context, &args),
        Command::Log(args) => log::run(&context, &args),
        Command::Show(args) => show::run(&context, &args),
        Command::Undo(args) => revert::undo(&context, &args),
        Command::Redo(args) => revert::redo(&context, &args),
        Command::Restore(args) => revert::restore(&context, &args),
        Command::Diff(args) => diff::run(&context, &args),
        Command::Search(args) => search::run(&context, &args),
        Command::Replay(args) => replay::run(&context, &args),
        Command::Verify => verify::run(&context),
        Command::Checkpoint(args) => checkpoint::run(&context, &args),
        Command::Export(args) => export::export(&context, &args),
        Command::Import(args) => export::import(&context, &args),
        Command::Purge(args) => purge::run(&context, &args),
        Command::Up(args) => up::run(&args, assets),
        Command::Link(args) => link::run(&context, &args),
        Command::Keys(args) => keys::run(&context, &args),
        Command::Models(args) => models::run(&context, &args),
        Command::Mcp(args) => mcp::run(&context, &args),
        Command::Watch => watch::run(&context),
        Command::Doctor(args) => doctor::run(&context, &args),
        Command::Bench(args) => bench::run(&context, &args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
