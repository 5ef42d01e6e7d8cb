//! Scenarios whose process is killed: a process of its own carries each on, with its person, its pages and its servers.
//! It is killed as soon as the log has an event, and started again. The scripted model lives on in the test.

use std::io::{Read, Seek};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use scripted_model::Wire;

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
    let computer = sandbox::session::take(&stage.place()).unwrap();
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
        let database = stage.place().state.join("state.sqlite");
        let log = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let mut head = log.prepare("SELECT max(seq) FROM events").unwrap();
        while head.query_row([], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs() < seq {
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

/// A scenario that processes play, and where those are killed.
struct Killed<'a> {
    scenario: &'a Scenario,
    end: Same,
    points: Vec<u64>,
    /// Points that are left, and how often a process was killed.
    left: AtomicUsize,
    times: AtomicUsize,
}

impl<'a> Killed<'a> {
    /// Plays a scenario with a process that nobody kills.
    fn new(scenario: &'a Scenario) -> Result<Self, String> {
        let wrong = |what: String| format!("{}, not killed: {what}", scenario.name);
        let stage = Stage::new(scenario, Wire::Anthropic);
        drop(stage.prepare());
        let first = appends(&stage).into_iter().max().unwrap();
        Process::start(&stage).end().map_err(wrong)?;
        let computer = sandbox::session::take(&stage.place()).map_err(|e| wrong(e.to_string()))?;
        let end = stage.look(&computer);
        stage.judge(&end).map_err(wrong)?;
        let mut points = appends(&stage);
        points.retain(|point| *point >= first);
        points.sort_unstable();
        let left = AtomicUsize::new(points.len());
        Ok(Self { scenario, end: same(&end), points, left, times: AtomicUsize::new(0) })
    }

    /// Kills a process at one of the points, and looks at what comes of it.
    fn kill(&self, point: u64) -> Result<(), String> {
        let came = self.killed_after(point);
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let (name, times) = (&self.scenario.name, self.times.load(Ordering::SeqCst));
            println!("{name}: killed {times} times, of {} moments", self.points.len());
        }
        came.map_err(|what| format!("{}, killed after event {point}: {what}", self.scenario.name))
    }

    fn killed_after(&self, point: u64) -> Result<(), String> {
        let stage = Stage::new(self.scenario, Wire::Anthropic);
        drop(stage.prepare());
        let stopped = match Process::start(&stage).kill_after(&stage, point)? {
            Ended::ByItself => Stopped::default(),
            Ended::Killed => {
                self.times.fetch_add(1, Ordering::SeqCst);
                let stopped = Stopped::read(&stage)?;
                Process::start(&stage).end()?;
                stopped
            }
        };
        nothing_is_left(stage.path())?;
        let computer = sandbox::session::take(&stage.place()).map_err(|e| e.to_string())?;
        let end = stage.look(&computer);
        stage.judge_stopped(&computer, &end, &self.end, &stopped)
    }
}

/// Kills a process after every append of these scenarios; how often it came to that.
fn kill_everywhere(scenarios: &[Scenario]) -> usize {
    let all = all_well(each(scenarios.iter(), Killed::new));
    let points = all.iter().flat_map(|killed| killed.points.iter().map(move |point| (killed, *point)));
    all_well(each(points, |(killed, point)| killed.kill(point)));
    for killed in &all {
        assert_ne!(killed.times.load(Ordering::SeqCst), 0, "{} was never killed", killed.scenario.name);
    }
    all.iter().map(|killed| killed.times.load(Ordering::SeqCst)).sum()
}

#[test]
fn a_call_outside_whose_process_was_killed_is_asked_about_and_made_again_only_if_the_person_says_so() {
    let is_wanted = |scenario: &Scenario| ["allowed-once", "server-call-cut-off"].contains(&&*scenario.name);
    let scenarios: Vec<Scenario> = Scenario::all().into_iter().filter(is_wanted).collect();
    kill_everywhere(&scenarios);
}

#[test]
#[ignore = "it takes many minutes: `cargo xtask crash --scenarios`"]
fn scenarios_whose_process_is_killed_after_any_event_go_on_to_the_same_end() {
    let since = Instant::now();
    let scenarios = scenarios();
    let times = kill_everywhere(&scenarios);
    println!("{} scenarios, killed {times} times, in {} s", scenarios.len(), since.elapsed().as_secs());
}
