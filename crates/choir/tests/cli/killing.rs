//! Runs of agents whose process is killed, again and again, at any moment: each goes on at its exact step, nothing that
//! took effect is done twice, and the end is the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use scripted_model::{Script, Server, Wire};
use serde_json::Value;
use tempfile::TempDir;

use crate::home::{Found, Home, choir};

/// Moments at which a process is killed, over all scenarios. `cargo xtask crash --scenarios` sets more.
const POINTS: &str = "CHOIR_KILLS";
const USUAL_POINTS: usize = 60;

/// Scenarios in which the person does nothing, so that the process alone decides how they go.
const PLAYED: [&str; 6] = [
    "fix-a-failing-test",
    "refactor-several-files",
    "sort-into-folders",
    "parallel-calls",
    "worker-sent-back",
    "write-a-note",
];

/// What of a scenario is needed here; what it all means is told by the sandbox's tests.
struct Scenario {
    objective: String,
    files: BTreeMap<String, String>,
    script: Script,
    after: BTreeMap<String, String>,
    calls: Vec<String>,
}

impl Scenario {
    fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/scenarios").join(name);
        let text = std::fs::read_to_string(path.with_extension("toml")).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let texts = |value: Option<&toml::Value>| -> BTreeMap<String, String> {
            let table = value.and_then(toml::Value::as_table).into_iter().flatten();
            table.map(|(path, text)| (path.clone(), text.as_str().unwrap().to_owned())).collect()
        };
        let expect = &table["expect"];
        let files = texts(table.get("files"));
        let mut after = files.clone();
        after.extend(texts(expect.get("files")));
        for gone in expect.get("absent").and_then(toml::Value::as_array).into_iter().flatten() {
            after.remove(gone.as_str().unwrap());
        }
        let calls = expect["calls"].as_array().unwrap().iter().map(|call| call.as_str().unwrap().to_owned());
        let mut calls: Vec<String> = calls.collect();
        calls.sort();
        let script = Script::parse(&toml::to_string(&table["script"]).unwrap()).unwrap();
        Self { objective: table["objective"].as_str().unwrap().to_owned(), files, script, after, calls }
    }
}

/// A machine whose owner has a key for the scripted model.
struct Machine {
    data: TempDir,
    server: Server,
}

impl Machine {
    fn new(script: Script) -> Self {
        let (data, server) = (tempfile::tempdir().unwrap(), Server::start(script));
        let config = format!("[models.provider.anthropic]\nbase_url = \"{}\"\n", server.url(Wire::Anthropic));
        std::fs::write(data.path().join("choir.toml"), config).unwrap();
        let machine = Self { data, server };
        let mut up = machine.choir(&["up", "--no-browser", "--port", "0"]).spawn().unwrap();
        while !machine.choir(&["keys"]).status().unwrap().success() {
            std::thread::sleep(Duration::from_millis(20));
        }
        up.kill().unwrap();
        up.wait().unwrap();
        let mut set = machine.choir(&["keys", "set", "anthropic"]).stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut set.stdin.take().unwrap(), machine.server.key().as_bytes()).unwrap();
        assert!(set.wait().unwrap().success());
        machine
    }

    fn choir(&self, args: &[&str]) -> Command {
        let mut command = choir();
        command.args(args).env("CHOIR_DATA", self.data.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// Numbers that differ from run to run; the first is printed, so that a failure can be looked at.
struct Dice(u64);

impl Dice {
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
fn run_of(home: &Home) -> Option<Value> {
    home.ok(&["runs", "--json"]).json_lines().into_iter().next()
}

/// How the calls of the run ended, from the log itself.
fn calls(home: &Home) -> Vec<String> {
    let events = home.events();
    let mut tools = BTreeMap::new();
    let mut calls = Vec::new();
    for event in &events {
        let op = event["op"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str() {
            Some("tool.call") => {
                drop(tools.insert(op, event["payload"]["tool"].as_str().unwrap().to_owned()))
            }
            Some("tool.result") => {
                let status = &event["payload"]["status"];
                let is_fine = status["is"] == "exited" && status["code"] == 0;
                calls.push(format!("{} {}", tools[&op], if is_fine { "ok" } else { "failed" }));
            }
            Some(_) | None => {}
        }
    }
    calls.sort();
    calls
}

/// Plays a scenario with a process that is killed up to `most` times; how often it was.
fn play(name: &str, dice: &mut Dice, most: usize) -> usize {
    let scenario = Scenario::read(name);
    let machine = Machine::new(scenario.script.clone());
    let files: Vec<(&str, &str)> = scenario.files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let home = Home::over(&files);
    let mut killed = 0;
    loop {
        let run = run_of(&home);
        let state = run.as_ref().map(|run| run["state"].as_str().unwrap().to_owned());
        match state.as_deref() {
            Some("completed") => break,
            Some("running") | None => {}
            Some(other) => panic!("{name}: it is {other}: {run:?}"),
        }
        let mut command = match &run {
            None => machine.choir(&["ask", &scenario.objective]),
            Some(run) => machine.choir(&["runs", run["run"].as_str().unwrap(), "--watch"]),
        };
        let mut process = command.current_dir(&home.work).spawn().unwrap();
        if killed < most {
            std::thread::sleep(Duration::from_millis(10 + dice.below(300)));
            if process.try_wait().unwrap().is_none() {
                process.kill().unwrap();
                killed += 1;
            }
        }
        process.wait().unwrap();
    }
    assert!(machine.server.refusals().is_empty(), "{name}: {:?}", machine.server.refusals());
    assert_eq!(calls(&home), scenario.calls, "{name}: every call was answered once");
    let text = |found: Found| match found {
        Found::File { bytes, .. } => String::from_utf8_lossy(&bytes).into_owned(),
        Found::Link(to) => format!("a link to {}", to.display()),
        Found::EmptyFolder => "an empty folder".to_owned(),
    };
    let found: BTreeMap<String, String> =
        home.files().into_iter().map(|(path, found)| (path, text(found))).collect();
    assert_eq!(found, scenario.after, "{name}");
    home.ok(&["verify"]);
    killed
}

#[test]
fn a_run_whose_process_is_killed_goes_on_and_repeats_nothing() {
    let points = std::env::var(POINTS).ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL_POINTS);
    let mut dice = Dice::new();
    let mut killed = 0;
    for name in PLAYED.iter().cycle().take(PLAYED.len() * 40) {
        if killed >= points {
            break;
        }
        killed += play(name, &mut dice, 10.min(points - killed));
    }
    println!("killed {killed} times");
    assert!(killed >= points);
}
