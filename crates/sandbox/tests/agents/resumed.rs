//! What must be true of a scenario that was stopped at some point and resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use computer::Computer;
use event_log::{EventLog, SqliteLog, decode_event};
use kernel::View;
use projector::verify::first_file_difference;
use projector::workspace::Workspace;
use shared_types::payload::tool::ToolEvent;
use shared_types::wire::RunState;
use shared_types::{Event, OpId, Payload};

use crate::cut::{InterruptedCalls, asks, open_outside};
use crate::expectations::{End, RunEnd};
use crate::person::did_each_once;
use crate::scenario_host::{ScenarioHost, events_of};

/// How long a process may live that was started by one that is no more.
const LINGERS: Duration = Duration::from_secs(30);

/// What has to be the same, wherever a scenario was stopped.
#[derive(Debug, PartialEq)]
pub(crate) struct ComparableEnd {
    runs: Vec<ComparableRun>,
    files: BTreeMap<String, String>,
}

/// What a call that was cut off led to does not count.
#[derive(Debug, PartialEq)]
struct ComparableRun {
    state: RunState,
    reason: Option<String>,
    summary: Option<String>,
    calls: Vec<String>,
    asks: usize,
    turns: u64,
    micros: u64,
    /// Roles with the labels that they carry.
    labels: Vec<String>,
}

pub(crate) fn same(end: &End) -> ComparableEnd {
    let of_run = |run: &RunEnd| {
        let (cut, cost) = (InterruptedCalls::of(&run.events), run.details.line.cost);
        let wasted = cut.wasted();
        // What lies in the outbox for longer is the same question.
        let asked = asks(&run.events).filter(|ask| !cut.raised(ask)).map(|ask| ask.ask);
        ComparableRun {
            state: run.details.line.state,
            reason: run.details.line.reason.clone(),
            summary: run.details.summary.clone(),
            calls: run.calls_but(&cut.calls),
            asks: asked.collect::<BTreeSet<_>>().len(),
            turns: cost.turns - wasted.turns,
            micros: cost.micros - wasted.micros - run.lost(),
            labels: run.labels(),
        }
    };
    ComparableEnd { runs: end.runs.iter().map(of_run).collect(), files: end.files.clone() }
}

/// Where a scenario was stopped.
#[derive(Debug, Default)]
pub(crate) struct StopPoint {
    /// Calls that may have reached the outside and were not answered.
    outside: BTreeSet<OpId>,
}

impl StopPoint {
    /// Reads it from the log of a computer that is closed.
    pub(crate) fn read(&mut self, host: &ScenarioHost<'_>) -> Result<(), String> {
        let log = SqliteLog::open_read_only(&host.paths().state).map_err(|e| e.to_string())?;
        self.outside.extend(host.runs.iter().flat_map(|run| open_outside(&events_of(&log, *run))));
        Ok(())
    }
}

impl ScenarioHost<'_> {
    /// Looks at what came of a scenario that was stopped, and takes it back.
    pub(crate) fn judge_stopped(
        &self,
        computer: &Computer,
        end: &End,
        undisturbed: &ComparableEnd,
        stopped: &StopPoint,
    ) -> Result<(), String> {
        let refusals = self.refusals();
        if !refusals.is_empty() {
            return Err(format!("the model refused: {refusals:?}"));
        }
        let came = same(end);
        let expect = if came == *undisturbed {
            &self.scenario.expect
        } else {
            let ends = &self.scenario.crash.ends;
            let why = || format!("\n  {undisturbed:?}\n  {came:?}");
            ends.iter().find(|expect| self.judge_as(expect, end).is_ok()).ok_or_else(why)?
        };
        for run in &end.runs {
            answered_once(&run.events)?;
            not_repeated(run, stopped)?;
            if let Some(ask) = InterruptedCalls::of(&run.events).asked_twice() {
                return Err(format!("the person let it be made again, and was asked once more: {ask:?}"));
            }
        }
        did_each_once(self.scenario, &end.runs[0].events)?;
        self.verify(computer)?;
        self.keeps_no_key(computer)?;
        self.every_step_has_a_cause(computer)?;
        self.undo_as(expect, computer, end)
    }

    /// The log can be read from its beginning, and the disk is as it says.
    fn verify(&self, computer: &Computer) -> Result<(), String> {
        computer.project(&|_, _, _| ()).map_err(|e| e.to_string())?;
        let (log, paths) = (&**computer.log(), self.paths());
        let (mut view, mut unreadable) = (View::default(), None);
        let scanned = log.scan(shared_types::Seq(1), &mut |stored| match decode_event(log, stored) {
            Ok(event) => {
                kernel::evolve(&mut view, &event);
                ControlFlow::Continue(())
            }
            Err(e) => {
                unreadable = Some(e.to_string());
                ControlFlow::Break(())
            }
        });
        if let Some(reason) = scanned.err().map(|e| e.to_string()).or(unreadable) {
            return Err(format!("the log cannot be read: {reason}"));
        }
        let workspace =
            Workspace::open(&paths.workspace, &paths.state.join("tmp")).map_err(|e| e.to_string())?;
        let difference = first_file_difference(&workspace, &view, &|_| false, &|_, _| ());
        if let Some(difference) = difference.map_err(|e| e.to_string())? {
            return Err(format!("the disk is not as the log says: {difference:?}"));
        }
        let known: BTreeSet<String> = view.files.iter().map(|(path, _)| path.to_string()).collect();
        let unknown: Vec<String> = self.files().into_keys().filter(|path| !known.contains(path)).collect();
        if unknown.is_empty() { Ok(()) } else { Err(format!("the log knows nothing of {unknown:?}")) }
    }
}

/// Every call was recorded once, and has one result.
fn answered_once(events: &[Event]) -> Result<(), String> {
    let mut counted: BTreeMap<OpId, (usize, usize)> = BTreeMap::new();
    for event in events {
        let (calls, results) = counted.entry(event.op).or_default();
        match &event.payload {
            Payload::Tool(ToolEvent::Call(_)) => *calls += 1,
            Payload::Tool(ToolEvent::Result(_)) => *results += 1,
            _ => {}
        }
    }
    match counted.into_iter().find(|(_, count)| *count != (0, 0) && *count != (1, 1)) {
        None => Ok(()),
        Some((call, (calls, results))) => {
            Err(format!("the call {call} was recorded {calls} times, and has {results} results"))
        }
    }
}

/// What may have reached the outside when it was stopped is `interrupted`, nothing else is, and the person was asked
/// about it unless the run was over by then.
fn not_repeated(run: &RunEnd, stopped: &StopPoint) -> Result<(), String> {
    let cut = InterruptedCalls::of(&run.events);
    let all = run.events.iter().map(|event| event.op);
    let own: BTreeSet<OpId> = all.filter(|op| stopped.outside.contains(op)).collect();
    if cut.calls != own {
        return Err(format!("{own:?} may have reached the outside, and {:?} are interrupted", cut.calls));
    }
    if cut.asked_about() != own && run.details.line.state != RunState::Cancelled {
        return Err(format!("{own:?} were cut off, and the person was asked about {:?}", cut.asked_about()));
    }
    Ok(())
}

/// Every process that was started for this folder has ended.
pub(crate) fn nothing_is_left(folder: &Path) -> Result<(), String> {
    let since = Instant::now();
    loop {
        let left = processes_over(folder);
        if left.is_empty() {
            return Ok(());
        }
        if since.elapsed() > LINGERS {
            return Err(format!("these processes are left: {left:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Other processes that know of a folder: by their arguments, by where they are, or by what is mounted for them.
fn processes_over(folder: &Path) -> Vec<String> {
    let own = std::process::id().to_string();
    let name = folder.to_string_lossy().into_owned();
    let read = |process: &Path, file: &str| {
        String::from_utf8_lossy(&std::fs::read(process.join(file)).unwrap_or_default()).replace('\0', " ")
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let others = processes.filter(|path| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name != own && name.bytes().all(|byte| byte.is_ascii_digit())
        })
    });
    let knows = |process: &Path| {
        let here = std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        here || ["cmdline", "environ", "mountinfo"].iter().any(|file| read(process, file).contains(&name))
    };
    let told = |process: std::path::PathBuf| format!("{}: {}", process.display(), read(&process, "cmdline"));
    others.filter(|process| knows(process)).map(told).collect()
}

#[test]
fn a_process_that_is_left_over_a_folder_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let mut left = std::process::Command::new("sleep").arg("600").current_dir(folder.path()).spawn().unwrap();
    let seen = processes_over(folder.path());
    left.kill().unwrap();
    left.wait().unwrap();
    assert_eq!((seen.len(), processes_over(folder.path())), (1, Vec::new()), "{seen:?}");
}
