//! Scenarios whose process is killed: a process of its own carries each on, with its person, its pages and its servers.
//! It is killed as soon as the log has an event, and started again. The scripted model lives on in the test.

use std::io::{Read, Seek};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use scripted_model::Wire;
use shared_types::payload::tool::ToolEvent;
use shared_types::{Event, Payload};

use crate::after::{Same, Stopped, nothing_is_left, same};
use crate::crash::appends;
use crate::scenario::Scenario;
use crate::stage::{Folder, Model, Stage};
use crate::{all_well, each, scenarios};

/// What a process is told that carries a scenario on.
const SCENARIO: &str = "CHOIR_STAGE_SCENARIO";
const FOLDER: &str = "CHOIR_STAGE_FOLDER";
const URL: &str = "CHOIR_STAGE_URL";
const KEY: &str = "CHOIR_STAGE_KEY";
/// The test that is such a process.
const CARRIES_ON: &str = "killing::a_process_carries_a_scenario_on";
/// Longer than any scenario takes, and than a process waits before it gives up by itself.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
#[ignore = "it is the process that other tests kill"]
fn a_process_carries_a_scenario_on() {
    let Ok(name) = std::env::var(SCENARIO) else { return };
    let told = |key: &str| std::env::var(key).unwrap();
    let scenario = Scenario::all().into_iter().find(|scenario| scenario.name == name).unwrap();
    let model = Model::There { url: told(URL), key: told(KEY) };
    let stage = Stage::over(&scenario, Wire::Anthropic, model, Folder::Given(told(FOLDER).into()));
    let computer = computer::client::open_exclusive(&stage.paths()).unwrap();
    if let Err(reason) = stage.carry_on(computer) {
        panic!("{reason}");
    }
}

/// A process that carries a scenario on.
struct Process {
    child: Child,
    /// What it says.
    said: std::fs::File,
}

/// Where a test fails, nothing of it is left.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended.
enum Ended {
    ByItself,
    Killed,
}

impl Process {
    fn start(stage: &Stage<'_>) -> Self {
        let said = tempfile::tempfile().unwrap();
        let (url, key) = stage.address();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", CARRIES_ON, "--ignored", "--nocapture"]);
        command.env(SCENARIO, &stage.scenario.name).env(FOLDER, stage.path()).env(URL, url).env(KEY, key);
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said.try_clone().unwrap());
        Self { child: command.spawn().unwrap(), said }
    }

    /// Kills it as soon as the log has this event, unless it ends before.
    fn kill_after(mut self, stage: &Stage<'_>, seq: u64) -> Result<Ended, String> {
        let log = open(stage);
        while newest(&log) < seq {
            if self.child.try_wait().unwrap().is_some() {
                return self.end().map(|()| Ended::ByItself);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.child.try_wait().unwrap().is_some() {
            return self.end().map(|()| Ended::ByItself);
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Ok(Ended::Killed)
    }

    /// Waits for it to end by itself.
    fn end(mut self) -> Result<(), String> {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if since.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                break self.child.wait().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        if status.success() {
            return Ok(());
        }
        let mut said = String::new();
        self.said.rewind().unwrap();
        self.said.read_to_string(&mut said).unwrap();
        Err(format!("its process ended with {status}: {said}"))
    }
}

/// The log, read beside whatever process holds the computer.
fn open(stage: &Stage<'_>) -> Connection {
    let database = stage.paths().state.join("state.sqlite");
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn newest(log: &Connection) -> u64 {
    let mut head = log.prepare_cached("SELECT max(seq) FROM events").unwrap();
    head.query_row([], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs()
}

fn head(stage: &Stage<'_>) -> u64 {
    newest(&open(stage))
}

/// When processes are killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// One, as soon as the log has this event.
    After(u64),
    /// One after the other, each as soon as it has taken the run up and done one thing more.
    AgainAndAgain,
}

/// A scenario that processes play, and where those are killed.
struct Killed<'a> {
    scenario: &'a Scenario,
    end: Same,
    /// Where appends end: nothing is ever stopped inside one.
    points: Vec<u64>,
    /// Moments that are left, and how often a process was killed.
    left: AtomicUsize,
    times: AtomicUsize,
}

impl<'a> Killed<'a> {
    /// Plays a scenario with a process that nobody kills.
    fn new(scenario: &'a Scenario) -> Result<Self, String> {
        let wrong = |what: String| format!("{}, not killed: {what}", scenario.name);
        let stage = Stage::new(scenario, Wire::Anthropic);
        drop(stage.prepare());
        let first = head(&stage);
        Process::start(&stage).end().map_err(wrong)?;
        let computer = computer::client::open_exclusive(&stage.paths()).map_err(|e| wrong(e.to_string()))?;
        let end = stage.look(&computer);
        stage.judge(&end).map_err(wrong)?;
        let mut points = appends(&stage);
        points.retain(|point| *point >= first);
        points.sort_unstable();
        let left = AtomicUsize::new(points.len() + 1);
        Ok(Self { scenario, end: same(&end), points, left, times: AtomicUsize::new(0) })
    }

    fn moments(&self) -> impl Iterator<Item = (&Self, Moment)> {
        let single = self.points.iter().map(|point| Moment::After(*point));
        single.chain([Moment::AgainAndAgain]).map(move |moment| (self, moment))
    }

    /// Kills processes, and looks at what comes of it.
    fn kill(&self, moment: Moment) -> Result<(), String> {
        let stage = Stage::new(self.scenario, Wire::Anthropic);
        drop(stage.prepare());
        let came = match moment {
            Moment::After(point) => self.kill_once(&stage, point),
            Moment::AgainAndAgain => self.kill_again_and_again(&stage),
        };
        let came = came.and_then(|stopped| self.judge(&stage, &stopped));
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            println!("{}: killed {} times", self.scenario.name, self.times.load(Ordering::SeqCst));
        }
        came.map_err(|what| format!("{}, killed {moment:?}: {what}", self.scenario.name))
    }

    fn kill_once(&self, stage: &Stage<'_>, point: u64) -> Result<Stopped, String> {
        let mut stopped = Stopped::default();
        if self.kill_one(stage, point, &mut stopped)? {
            Process::start(stage).end()?;
        }
        Ok(stopped)
    }

    fn kill_again_and_again(&self, stage: &Stage<'_>) -> Result<Stopped, String> {
        let mut stopped = Stopped::default();
        // Not for ever: a call that is cut off each time it is made has no end.
        for _ in &self.points {
            if !self.kill_one(stage, head(stage) + 2, &mut stopped)? {
                return Ok(stopped);
            }
        }
        Process::start(stage).end()?;
        Ok(stopped)
    }

    /// Starts a process and kills it after an event. False if it ended before.
    fn kill_one(&self, stage: &Stage<'_>, seq: u64, stopped: &mut Stopped) -> Result<bool, String> {
        match Process::start(stage).kill_after(stage, seq)? {
            Ended::ByItself => Ok(false),
            Ended::Killed => {
                self.times.fetch_add(1, Ordering::SeqCst);
                stopped.read(stage)?;
                Ok(true)
            }
        }
    }

    fn judge(&self, stage: &Stage<'_>, stopped: &Stopped) -> Result<(), String> {
        nothing_is_left(stage.path())?;
        let computer = computer::client::open_exclusive(&stage.paths()).map_err(|e| e.to_string())?;
        let end = stage.look(&computer);
        stage.judge_stopped(&computer, &end, &self.end, stopped)
    }
}

/// Kills processes of these scenarios at every moment; how often.
fn kill_everywhere(scenarios: &[Scenario]) -> usize {
    let all = all_well(each(scenarios.iter(), Killed::new));
    all_well(each(all.iter().flat_map(Killed::moments), |(killed, moment)| killed.kill(moment)));
    let times = |killed: &Killed<'_>| {
        let times = killed.times.load(Ordering::SeqCst);
        // The last process may be gone before it can be killed.
        assert!(times >= killed.points.len(), "{} was killed {times} times only", killed.scenario.name);
        times
    };
    all.iter().map(times).sum()
}

#[test]
fn a_call_outside_whose_process_was_killed_is_asked_about_and_made_again_only_if_the_person_says_so() {
    let wanted = ["allowed-in-this-run", "allowed-once", "server-call-cut-off"];
    let is_wanted = |scenario: &Scenario| wanted.contains(&&*scenario.name);
    let scenarios: Vec<Scenario> = Scenario::all().into_iter().filter(is_wanted).collect();
    kill_everywhere(&scenarios);
}

/// The page that never comes stands for one that ends the server whenever it is read.
#[test]
fn a_page_that_was_never_read_before_the_process_ended_is_not_asked_for_again_and_again() {
    let all = Scenario::all();
    let scenario = all.iter().find(|scenario| scenario.name == "page-out-of-time").unwrap();
    let stage = Stage::new(scenario, Wire::Anthropic);
    drop(stage.prepare());
    let kill = |events: u64| {
        let killed = Process::start(&stage).kill_after(&stage, head(&stage) + events);
        assert!(matches!(killed, Ok(Ended::Killed)), "it ended by itself");
    };
    let is_asked_for = || {
        let computer = computer::client::open_exclusive(&stage.paths()).unwrap();
        let is_fetch = |event: &Event| match &event.payload {
            Payload::Tool(ToolEvent::Call(call)) => &*call.tool == "fetch",
            _ => false,
        };
        stage.events(&computer, stage.runs[0]).iter().any(is_fetch)
    };
    while !is_asked_for() {
        kill(2);
    }
    // Each of these takes the run up, and is killed before it has done anything more.
    (0..2).for_each(|_| kill(1));
    Process::start(&stage).end().unwrap();
    let computer = computer::client::open_exclusive(&stage.paths()).unwrap();
    let end = stage.look(&computer);
    assert_eq!(end.runs[0].calls(), ["delegate ok", "fetch failed", "finish ok"]);
}

/// A process is told the key in its environment, which cells must not have.
#[test]
fn a_command_in_a_cell_sees_no_key_that_its_process_was_started_with() {
    let all = Scenario::all();
    let scenario = all.iter().find(|scenario| scenario.name == "keys-are-not-in-a-cell").unwrap();
    let stage = Stage::new(scenario, Wire::Anthropic);
    drop(stage.prepare());
    Process::start(&stage).end().unwrap();
    let computer = computer::client::open_exclusive(&stage.paths()).unwrap();
    stage.judge(&stage.look(&computer)).unwrap();
    stage.keeps_no_key(&computer).unwrap();
}

#[test]
#[ignore = "it takes about four minutes: `cargo xtask crash --scenarios`"]
fn scenarios_whose_process_is_killed_after_any_event_go_on_to_the_same_end() {
    let since = Instant::now();
    let scenarios = scenarios();
    let times = kill_everywhere(&scenarios);
    println!("{} scenarios, killed {times} times, in {} s", scenarios.len(), since.elapsed().as_secs());
}
