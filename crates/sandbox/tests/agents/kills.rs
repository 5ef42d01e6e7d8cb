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

use crate::crash::appends;
use crate::resumed::{ComparableEnd, StopPoint, nothing_is_left, same};
use crate::scenario::Scenario;
use crate::scenario_host::{Folder, Model, ScenarioHost};
use crate::{all_well, each, scenarios};

/// What a process is told that carries a scenario on.
const SCENARIO: &str = "CHOIR_STAGE_SCENARIO";
const FOLDER: &str = "CHOIR_STAGE_FOLDER";
const URL: &str = "CHOIR_STAGE_URL";
const KEY: &str = "CHOIR_STAGE_KEY";
/// The test that is such a process.
const CARRIES_ON: &str = "kills::a_process_carries_a_scenario_on";
/// Longer than any scenario takes, and than a process waits before it gives up by itself.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
#[ignore = "it is the process that other tests kill"]
fn a_process_carries_a_scenario_on() {
    let Ok(name) = std::env::var(SCENARIO) else { return };
    let told = |key: &str| std::env::var(key).unwrap();
    let scenario = Scenario::all().into_iter().find(|scenario| scenario.name == name).unwrap();
    let model = Model::There { url: told(URL), key: told(KEY) };
    let host = ScenarioHost::over(&scenario, Wire::Anthropic, model, Folder::Given(told(FOLDER).into()));
    let computer = computer::client::open_exclusive(&host.paths()).unwrap();
    if let Err(reason) = host.carry_on(computer) {
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
enum ProcessEnd {
    ByItself,
    Killed,
}

impl Process {
    fn start(host: &ScenarioHost<'_>) -> Self {
        let said = tempfile::tempfile().unwrap();
        let (url, key) = host.address();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", CARRIES_ON, "--ignored", "--nocapture"]);
        command.env(SCENARIO, &host.scenario.name).env(FOLDER, host.path()).env(URL, url).env(KEY, key);
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said.try_clone().unwrap());
        Self { child: command.spawn().unwrap(), said }
    }

    /// Kills it as soon as the log has this event, unless it ends before.
    fn kill_after(mut self, host: &ScenarioHost<'_>, seq: u64) -> Result<ProcessEnd, String> {
        let log = open(host);
        while newest(&log) < seq {
            if self.child.try_wait().unwrap().is_some() {
                return self.end().map(|()| ProcessEnd::ByItself);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.child.try_wait().unwrap().is_some() {
            return self.end().map(|()| ProcessEnd::ByItself);
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Ok(ProcessEnd::Killed)
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

/// The log, read while another process holds the computer.
fn open(host: &ScenarioHost<'_>) -> Connection {
    let database = host.paths().state.join("state.sqlite");
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn newest(log: &Connection) -> u64 {
    let mut head = log.prepare_cached("SELECT max(seq) FROM events").unwrap();
    head.query_row([], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs()
}

fn head(host: &ScenarioHost<'_>) -> u64 {
    newest(&open(host))
}

/// When processes are killed.
#[derive(Debug, Clone, Copy)]
enum KillPoint {
    /// One, as soon as the log has this event.
    After(u64),
    /// One after the other, each as soon as it has taken the run up and done one thing more.
    AgainAndAgain,
}

/// A scenario that processes play, and where those are killed.
struct KilledScenario<'a> {
    scenario: &'a Scenario,
    end: ComparableEnd,
    /// Where appends end: nothing is ever stopped inside one.
    points: Vec<u64>,
    /// Moments that are left, and how often a process was killed.
    left: AtomicUsize,
    times: AtomicUsize,
}

impl<'a> KilledScenario<'a> {
    /// Plays a scenario with a process that is not killed.
    fn new(scenario: &'a Scenario) -> Result<Self, String> {
        let wrong = |what: String| format!("{}, not killed: {what}", scenario.name);
        let host = ScenarioHost::new(scenario, Wire::Anthropic);
        drop(host.prepare());
        let first = head(&host);
        Process::start(&host).end().map_err(wrong)?;
        let computer = computer::client::open_exclusive(&host.paths()).map_err(|e| wrong(e.to_string()))?;
        let end = host.look(&computer);
        host.judge(&end).map_err(wrong)?;
        let mut points = appends(&host);
        points.retain(|point| *point >= first);
        points.sort_unstable();
        let left = AtomicUsize::new(points.len() + 1);
        Ok(Self { scenario, end: same(&end), points, left, times: AtomicUsize::new(0) })
    }

    fn moments(&self) -> impl Iterator<Item = (&Self, KillPoint)> {
        let single = self.points.iter().map(|point| KillPoint::After(*point));
        single.chain([KillPoint::AgainAndAgain]).map(move |moment| (self, moment))
    }

    /// Kills processes, and looks at what comes of it.
    fn kill(&self, moment: KillPoint) -> Result<(), String> {
        let host = ScenarioHost::new(self.scenario, Wire::Anthropic);
        drop(host.prepare());
        let came = match moment {
            KillPoint::After(point) => self.kill_once(&host, point),
            KillPoint::AgainAndAgain => self.kill_again_and_again(&host),
        };
        let came = came.and_then(|stopped| self.judge(&host, &stopped));
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            println!("{}: killed {} times", self.scenario.name, self.times.load(Ordering::SeqCst));
        }
        came.map_err(|what| format!("{}, killed {moment:?}: {what}", self.scenario.name))
    }

    fn kill_once(&self, host: &ScenarioHost<'_>, point: u64) -> Result<StopPoint, String> {
        let mut stopped = StopPoint::default();
        if self.kill_one(host, point, &mut stopped)? {
            Process::start(host).end()?;
        }
        Ok(stopped)
    }

    fn kill_again_and_again(&self, host: &ScenarioHost<'_>) -> Result<StopPoint, String> {
        let mut stopped = StopPoint::default();
        // Not for ever: a call that is cut off each time it is made has no end.
        for _ in &self.points {
            if !self.kill_one(host, head(host) + 2, &mut stopped)? {
                return Ok(stopped);
            }
        }
        Process::start(host).end()?;
        Ok(stopped)
    }

    /// Starts a process and kills it after an event. False if it ended before.
    fn kill_one(&self, host: &ScenarioHost<'_>, seq: u64, stopped: &mut StopPoint) -> Result<bool, String> {
        match Process::start(host).kill_after(host, seq)? {
            ProcessEnd::ByItself => Ok(false),
            ProcessEnd::Killed => {
                self.times.fetch_add(1, Ordering::SeqCst);
                stopped.read(host)?;
                Ok(true)
            }
        }
    }

    fn judge(&self, host: &ScenarioHost<'_>, stopped: &StopPoint) -> Result<(), String> {
        nothing_is_left(host.path())?;
        let computer = computer::client::open_exclusive(&host.paths()).map_err(|e| e.to_string())?;
        let end = host.look(&computer);
        host.judge_stopped(&computer, &end, &self.end, stopped)
    }
}

/// Kills processes of these scenarios at every moment; how often.
fn kill_everywhere(scenarios: &[Scenario]) -> usize {
    let all = all_well(each(scenarios.iter(), KilledScenario::new));
    all_well(each(all.iter().flat_map(KilledScenario::moments), |(killed, moment)| killed.kill(moment)));
    let times = |killed: &KilledScenario<'_>| {
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
    let host = ScenarioHost::new(scenario, Wire::Anthropic);
    drop(host.prepare());
    let kill = |events: u64| {
        let killed = Process::start(&host).kill_after(&host, head(&host) + events);
        assert!(matches!(killed, Ok(ProcessEnd::Killed)), "it ended by itself");
    };
    let is_asked_for = || {
        let computer = computer::client::open_exclusive(&host.paths()).unwrap();
        let is_fetch = |event: &Event| match &event.payload {
            Payload::Tool(ToolEvent::Call(call)) => &*call.tool == "fetch",
            _ => false,
        };
        host.events(&computer, host.runs[0]).iter().any(is_fetch)
    };
    while !is_asked_for() {
        kill(2);
    }
    // Each of these takes the run up, and is killed before it has done anything more.
    (0..2).for_each(|_| kill(1));
    Process::start(&host).end().unwrap();
    let computer = computer::client::open_exclusive(&host.paths()).unwrap();
    let end = host.look(&computer);
    assert_eq!(end.runs[0].calls(), ["delegate ok", "fetch failed", "finish ok"]);
}

/// A process is told the key in its environment, which cells must not have.
#[test]
fn a_command_in_a_cell_sees_no_key_that_its_process_was_started_with() {
    let all = Scenario::all();
    let scenario = all.iter().find(|scenario| scenario.name == "keys-are-not-in-a-cell").unwrap();
    let host = ScenarioHost::new(scenario, Wire::Anthropic);
    drop(host.prepare());
    Process::start(&host).end().unwrap();
    let computer = computer::client::open_exclusive(&host.paths()).unwrap();
    host.judge(&host.look(&computer)).unwrap();
    host.keeps_no_key(&computer).unwrap();
}

#[test]
#[ignore = "it takes about four minutes: `cargo xtask crash --scenarios`"]
fn scenarios_whose_process_is_killed_after_any_event_go_on_to_the_same_end() {
    let since = Instant::now();
    let scenarios = scenarios();
    let times = kill_everywhere(&scenarios);
    println!("{} scenarios, killed {times} times, in {} s", scenarios.len(), since.elapsed().as_secs());
}
