//! What the harness of agents costs: the time of a step beyond its model, for one run and for a hundred at once, and the
//! time until a hundred runs go on after a stop.
//!
//! `cargo run --release -p sandbox --example harness`

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use event_log::{EventLog, understand};
use models::{Keys, Secret};
use sandbox::computer::Computer;
use sandbox::desk::Desk;
use sandbox::ids;
use sandbox::minds::Minds;
use sandbox::place::Place;
use sandbox::protocol::{Answer, Envelope, Request, RunRequest};
use scripted_model::{Script, Server, Wire};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{Budget, RunEvent};
use shared_types::payload::task::TaskEvent;
use shared_types::payload::tool::ToolEvent;
use shared_types::wire::StartRun;
use shared_types::{Payload, RunId, Seq, TaskId, UserId};

const STEPS: usize = 40;
const RUNS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(300);
const GLANCE: Duration = Duration::from_millis(2);

struct Key(String);

impl Keys for Key {
    fn key(&self, _: &str) -> Option<Secret> {
        Some(Secret::new(self.0.clone()))
    }
}

/// Models that take so many milliseconds for a turn.
fn script(steps: usize, millis: u64) -> Result<Script> {
    let read =
        "[[agent.step]]\ndelay_ms = MILLIS\ncalls = [ { tool = \"read\", input = { path = \"a.txt\" } } ]\n";
    // Each reads something else than before, so that nobody takes it for lost.
    let steps: String = (0..steps).map(|n| read.replace("a.txt", &format!("a{}.txt", n % 3))).collect();
    let steps = steps.replace("MILLIS", &millis.to_string());
    let text = format!(
        "[[agent]]\nrole = \"conductor\"\n[[agent.step]]\ncalls = [ {{ tool = \"delegate\", input = {{ agent = \
         \"terminal\", task = \"Read.\" }} }} ]\n[[agent.step]]\ncalls = [ {{ tool = \"finish\", input = {{ summary = \
         \"Done.\" }} }} ]\n[[agent]]\nrole = \"terminal\"\n{steps}[[agent.step]]\ntext = \"Done.\"\n"
    );
    Ok(Script::parse(&text)?)
}

fn minds(server: &Server) -> Result<Minds> {
    let text =
        format!("[provider.anthropic]\nbase_url = \"{}\"\nat_once = 128\n", server.url(Wire::Anthropic));
    let key = server.key().to_owned();
    let minds = Minds::new(Some(&text.parse()?))?;
    Ok(Minds { keys: Arc::new(move |_| Arc::new(Key(key.clone()))), ..minds })
}

fn computer(folder: &Path) -> Result<Computer> {
    let (computer, _) = Computer::create(&Place::at(folder), UserId::parse("ada")?, "Ada", &|_, _, _| ())?;
    for n in 0..3 {
        let path = shared_types::FilePath::parse(&format!("a{n}.txt"))?;
        let write = Envelope::new(Request::Write { path, mode: None, base: kernel::Base::Any });
        computer.handle(&write, &mut format!("{n}\n").as_bytes(), &|_, _, _| ()).into_done()?;
    }
    Ok(computer)
}

fn start(computer: &Computer) -> Result<RunId> {
    let start = StartRun {
        command: ids::command(),
        run: ids::run(),
        objective: "Read all files.".into(),
        attached: Vec::new(),
        model: Some("claude-sonnet".into()),
        budget: Budget::default(),
    };
    let run = start.run;
    let envelope = Envelope::new(Request::Runs(RunRequest::Start(start)));
    let answer = computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ());
    if let Answer::Failure(failure) = answer { Err(failure.into()) } else { Ok(run) }
}

/// Waits until so many events of a name are in the log. It looks rarely and decodes nothing else, so that it takes little
/// from what is measured.
fn wait_for(computer: &Computer, count: usize, name: &str, is: fn(&Payload) -> bool) -> Result<()> {
    let (log, started) = (&**computer.log(), Instant::now());
    let (mut seen, mut found) = (Seq::ZERO, 0);
    while found < count {
        if started.elapsed() > PATIENCE {
            bail!("only {found} of {count} came");
        }
        std::thread::sleep(GLANCE);
        let mut failure = None;
        log.scan(seen.next(), &mut |stored| {
            seen = stored.seq;
            if stored.name != name && stored.name != "run.fail" {
                return ControlFlow::Continue(());
            }
            match understand(log, stored) {
                Ok(event) if is(&event.payload) => found += 1,
                Ok(event) => {
                    if let Payload::Run(RunEvent::Fail(p)) = &event.payload {
                        failure = Some(p.reason.to_string());
                    }
                }
                Err(e) => failure = Some(e.to_string()),
            }
            ControlFlow::Continue(())
        })?;
        if let Some(failure) = failure {
            bail!(failure);
        }
    }
    Ok(())
}

/// Milliseconds of each step beyond its model: from one reply of an agent's to its next, without the model's own time.
fn overheads(computer: &Computer) -> Result<Vec<i64>> {
    let log = &**computer.log();
    let mut last: std::collections::HashMap<(Option<RunId>, TaskId), i64> = std::collections::HashMap::new();
    let mut steps = Vec::new();
    log.scan(Seq(1), &mut |stored| {
        if let Ok(event) = understand(log, stored)
            && let Payload::Llm(LlmEvent::Reply(p)) = &event.payload
            && let Some(before) = last.insert((event.run_id, p.task), event.ts.millis())
            && !p.calls.is_empty()
            && p.calls.iter().all(|call| &*call.tool == "read")
        {
            steps.push(event.ts.millis() - before - i64::try_from(p.millis).unwrap_or_default());
        }
        ControlFlow::Continue(())
    })?;
    steps.sort_unstable();
    Ok(steps)
}

fn at(sorted: &[i64], share: f64) -> i64 {
    sorted.get(((sorted.len() as f64 - 1.0) * share) as usize).copied().unwrap_or_default()
}

fn completed(payload: &Payload) -> bool {
    matches!(payload, Payload::Run(RunEvent::Complete(_)))
}

fn play(runs: usize, steps: usize, millis: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(script(steps, millis)?);
    let computer = computer(folder.path())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let desk = runtime.block_on(Desk::open(computer, &minds(&server)?))?;
    let started = Instant::now();
    for _ in 0..runs {
        start(desk.computer())?;
    }
    wait_for(desk.computer(), runs, "run.complete", completed)?;
    let all = started.elapsed();
    let steps = overheads(desk.computer())?;
    println!(
        "{runs} run(s), {millis} ms for a turn: {} steps, beyond the model p50 {} ms, p99 {} ms, most {} ms; all in {} ms",
        steps.len(),
        at(&steps, 0.5),
        at(&steps, 0.99),
        at(&steps, 1.0),
        all.as_millis()
    );
    runtime.block_on(desk.close());
    Ok(())
}

/// A hundred runs that were under way when everything stopped.
fn go_on() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(script(3, 0)?);
    let stopped = computer(folder.path())?;
    for _ in 0..RUNS {
        start(&stopped)?;
    }
    drop(stopped);
    let started = Instant::now();
    let computer = Computer::open(&Place::at(folder.path()))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let desk = runtime.block_on(Desk::open(computer, &minds(&server)?))?;
    wait_for(
        desk.computer(),
        RUNS,
        "task.start",
        |payload| matches!(payload, Payload::Task(TaskEvent::Start(p)) if p.parent.is_none()),
    )?;
    println!("{RUNS} runs go on {} ms after the start", started.elapsed().as_millis());
    wait_for(desk.computer(), RUNS, "tool.result", |payload| {
        matches!(payload, Payload::Tool(ToolEvent::Result(_)))
    })?;
    println!("{RUNS} calls were answered {} ms after the start", started.elapsed().as_millis());
    wait_for(desk.computer(), RUNS, "run.complete", completed)?;
    runtime.block_on(desk.close());
    Ok(())
}

fn main() -> Result<()> {
    play(1, STEPS, 0).context("one run")?;
    play(RUNS, 10, 500).context("a hundred runs")?;
    play(RUNS, 10, 0).context("a hundred runs at full speed")?;
    go_on().context("going on")
}
