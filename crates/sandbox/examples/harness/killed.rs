//! The time from `kill -9` until all runs go on.
//!
//! A process of its own carries the runs on, until each is in the middle of its work. Then it is killed, and another is
//! started in its place. The model and the reader of the log stay in this process.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use computer::Computer;
use computer::paths::ComputerPaths;
use rusqlite::{Connection, OpenFlags};
use sandbox::open_computer::OpenComputer;
use scripted_model::{ScriptedServer, Wire};
use serde_json::json;

use crate::figures::Figures;
use crate::machine::{agent_services, computer, script, start};

/// The first word of a process that is told to carry runs on.
const WORK: &str = "work";
const STEPS: usize = 12;
/// What a model takes for a turn: long enough for all runs to be in the middle of their work at once.
const MILLIS: u64 = 300;
/// Calls of a run that are answered when it is killed: that of its first agent, and one of the agent which works for
/// that.
const ANSWERED: usize = 2;
const PATIENCE: Duration = Duration::from_secs(120);
const GLANCE: Duration = Duration::from_millis(2);
const BAR: Duration = Duration::from_secs(2);

/// A process that carries runs on until it is told no more.
pub(crate) struct Worker {
    folder: PathBuf,
    url: String,
    key: String,
    /// Runs that it starts; those that are there go on as well.
    runs: usize,
}

impl Worker {
    /// What this process is told to be, if it is one.
    pub(crate) fn told(mut args: impl Iterator<Item = String>) -> Result<Option<Self>> {
        if args.next().as_deref() != Some(WORK) {
            return Ok(None);
        }
        let mut next = || args.next().context("a worker is told where, with which model and how much");
        let (folder, url, key, runs) = (next()?, next()?, next()?, next()?);
        Ok(Some(Self { folder: folder.into(), url, key, runs: runs.parse()? }))
    }

    pub(crate) fn work(self) -> Result<()> {
        let computer = Computer::open(&ComputerPaths::at(&self.folder))?;
        let runtime = tokio::runtime::Runtime::new()?;
        let open_computer =
            runtime.block_on(OpenComputer::open(computer, &agent_services(&self.url, &self.key)?))?;
        for _ in 0..self.runs {
            start(open_computer.computer())?;
        }
        // It ends with the process that started it.
        std::io::stdin().read_to_end(&mut Vec::new())?;
        runtime.block_on(open_computer.close());
        Ok(())
    }

    fn start(&self) -> Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORK).arg(&self.folder).args([&self.url, &self.key, &self.runs.to_string()]);
        Ok(Process(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?))
    }
}

/// A worker that was started. Where something fails, nothing of it is left.
struct Process(Child);

impl Process {
    /// SIGKILL, and it is gone.
    fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait()?;
        ensure!(status.success(), "the process that carries runs on ended with {status}");
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The log, read while another process holds the computer.
struct Log(Connection);

impl Log {
    fn open(folder: &Path) -> Result<Self> {
        let database = ComputerPaths::at(folder).state.join("state.sqlite");
        Ok(Self(Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?))
    }

    fn count(&self, sql: &str, number: u64) -> Result<usize> {
        let number = i64::try_from(number)?;
        let count: i64 = self.0.prepare_cached(sql)?.query_row([number], |row| row.get(0))?;
        Ok(usize::try_from(count)?)
    }

    fn head(&self) -> Result<u64> {
        Ok(self.count("SELECT max(seq) FROM events WHERE seq >= ?1", 0)? as u64)
    }

    /// Waits until this many are there. The time at which they were.
    fn wait(&self, count: usize, sql: &str, number: u64) -> Result<Instant> {
        let started = Instant::now();
        loop {
            let found = self.count(sql, number)?;
            if found >= count {
                return Ok(Instant::now());
            }
            if self.count(ENDED_OTHERWISE, 0)? > 0 {
                bail!("a run failed or stands still");
            }
            if started.elapsed() > PATIENCE {
                bail!("only {found} of {count} came: {sql}");
            }
            std::thread::sleep(GLANCE);
        }
    }
}

const ENDED_OTHERWISE: &str =
    "SELECT count(*) FROM events WHERE seq > ?1 AND name IN ('run.fail', 'run.pause', 'run.cancel')";
const COMPLETED: &str = "SELECT count(*) FROM events WHERE seq > ?1 AND name = 'run.complete'";
/// Runs in the middle of their work.
const IN_THE_MIDDLE: &str = "SELECT count(*) FROM (SELECT run_id FROM events WHERE run_id IS NOT NULL GROUP BY run_id \
     HAVING sum(name = 'tool.result') >= ?1 AND sum(name = 'llm.reply') >= 1)";
/// Runs that were taken up since, and those that came further: to be taken up is no work yet.
const TAKEN_UP: &str = "SELECT count(DISTINCT run_id) FROM events WHERE seq > ?1";
const GOING_ON: &str = "SELECT count(DISTINCT run_id) FROM events WHERE seq > ?1 AND name <> 'run.wake'";

pub(crate) fn measure(runs: usize, figures: &mut Figures) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = ScriptedServer::start(script(STEPS, MILLIS)?);
    drop(computer(folder.path())?);
    let (url, key) = (server.url(Wire::Anthropic), server.key().to_owned());
    let worker = Worker { folder: folder.path().to_owned(), url, key, runs };
    let log = Log::open(folder.path())?;
    let mut first = worker.start()?;
    log.wait(runs, IN_THE_MIDDLE, ANSWERED as u64)?;
    ensure!(log.count(COMPLETED, 0)? == 0, "a run was completed before all were in the middle of their work");
    let killed = Instant::now();
    first.kill()?;
    let head = log.head()?;
    let second = Worker { runs: 0, ..worker }.start()?;
    let taken_up = log.wait(runs, TAKEN_UP, head)? - killed;
    let going_on = log.wait(runs, GOING_ON, head)? - killed;
    log.wait(runs, COMPLETED, 0)?;
    second.end()?;
    let told = json!({
        "events_before": head,
        "taken_up_ms": taken_up.as_millis() as u64,
        "going_on_ms": going_on.as_millis() as u64,
        "model_takes_ms": MILLIS,
    });
    let case = format!("{runs} runs in the middle of their work: from kill -9 until all have come further");
    figures.tell(&case, told, "all have come further < 2 s", going_on < BAR);
    Ok(())
}
