//! Runs of agents whose process is killed repeatedly, at any moment: each resumes at its exact step, nothing that
//! took effect is done twice, and the end is the same.

use std::ops::RangeInclusive;
use std::process::Child;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::machine::Machine;
use crate::scenario::Scenario;
use crate::test_computer::TestComputer;

/// Moments at which a process is killed, over all scenarios that are played by chance.
const POINTS: &str = "CHOIR_KILLS";
const USUAL_POINTS: usize = 60;
/// Part of the names of the scenarios whose process is killed everywhere, while working on one.
const ONLY: &str = "CHOIR_SCENARIOS";
/// Scenarios that are played at once; most of the time each waits.
const LANES: usize = 4;

/// Scenarios that are played by chance.
const PLAYED: [&str; 6] = [
    "fix-a-failing-test",
    "refactor-several-files",
    "sort-into-folders",
    "parallel-calls",
    "worker-sent-back",
    "write-a-note",
];

/// Numbers that differ from run to run; the first is printed, so that a failure can be looked at.
struct Prng(u64);

impl Prng {
    fn new() -> Self {
        let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
        println!("seed {seed}");
        Self(u64::from(seed))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The one run of a computer.
fn run_of(computer: &TestComputer) -> Option<Value> {
    computer.ok(&["runs", "--json"]).json_lines().into_iter().next()
}

/// When a process is killed.
enum Kills<'a> {
    Never,
    /// At moments of chance, this many times at most.
    ByChance(&'a mut Prng, usize),
    /// Once, as soon as the log has this event.
    After(u64),
}

impl Kills<'_> {
    /// Waits until it is time; false if the process is never to be killed again.
    fn wait(&mut self, process: &mut Child, computer: &TestComputer) -> bool {
        match self {
            Self::Never | Self::ByChance(_, 0) => return false,
            Self::ByChance(dice, _) => std::thread::sleep(Duration::from_millis(10 + dice.below(300))),
            Self::After(seq) => {
                while head(computer) < *seq && process.try_wait().unwrap().is_none() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        true
    }

    /// It was killed.
    fn done(&mut self) {
        match self {
            Self::ByChance(_, left) => *left -= 1,
            Self::Never | Self::After(_) => *self = Self::Never,
        }
    }
}

/// The newest event, read while another process may hold the computer.
fn head(computer: &TestComputer) -> u64 {
    let log = Connection::open_with_flags(computer.state("state.sqlite"), OpenFlags::SQLITE_OPEN_READ_ONLY)
        .unwrap();
    log.query_row("SELECT max(seq) FROM events", [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs()
}

/// How a scenario was played.
struct PlayedScenario {
    killed: usize,
    /// The newest event before it and after it.
    events: RangeInclusive<u64>,
}

/// Plays a scenario with a process that is killed.
fn play(scenario: &Scenario, mut kills: Kills<'_>) -> PlayedScenario {
    let machine = Machine::new(scenario.script.clone());
    let computer = scenario.computer();
    let (first, mut killed) = (head(&computer), 0);
    loop {
        let run = run_of(&computer);
        let state = run.as_ref().map(|run| run["state"].as_str().unwrap().to_owned());
        match state.as_deref() {
            Some("running") | None => {}
            Some(state) if state == scenario.state => break,
            Some(other) => panic!("{}: it is {other}: {run:?}", scenario.name),
        }
        let mut command = match &run {
            None => machine.choir(&["ask", &scenario.objective]),
            Some(run) => machine.choir(&["runs", run["run"].as_str().unwrap(), "--watch"]),
        };
        let mut process = command.current_dir(&computer.work).spawn().unwrap();
        if kills.wait(&mut process, &computer) && process.try_wait().unwrap().is_none() {
            process.kill().unwrap();
            kills.done();
            killed += 1;
        }
        process.wait().unwrap();
    }
    let events = first..=head(&computer);
    machine.judge(scenario, &computer);
    PlayedScenario { killed, events }
}

#[test]
fn a_run_whose_process_is_killed_goes_on_and_repeats_nothing() {
    let points = std::env::var(POINTS).ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL_POINTS);
    let mut dice = Prng::new();
    let mut killed = 0;
    for name in PLAYED.iter().cycle().take(PLAYED.len() * 40) {
        if killed >= points {
            break;
        }
        let kills = Kills::ByChance(&mut dice, 10.min(points - killed));
        killed += play(&Scenario::read(name), kills).killed;
    }
    println!("killed {killed} times");
    assert!(killed >= points);
}

/// Kills a process once after each event of a scenario.
fn kill_everywhere(scenario: &Scenario) {
    let points = play(scenario, Kills::Never).events;
    let killed: usize = points.map(|seq| play(scenario, Kills::After(seq)).killed).sum();
    println!("{}: killed {killed} times", scenario.name);
    assert!(killed > 0, "{}", scenario.name);
}

#[test]
#[ignore = "it takes about three minutes: `cargo xtask crash --scenarios`"]
fn runs_whose_process_is_killed_after_any_event_go_on_and_repeat_nothing() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let scenarios = Scenario::all().into_iter().filter(|scenario| scenario.name.contains(&only));
    let queue = Mutex::new(scenarios);
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = queue.lock().unwrap().next() else { return };
                    kill_everywhere(&scenario);
                }
            });
        }
    });
}
