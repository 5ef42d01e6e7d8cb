//! A computer that is closed in order while a command with a network runs.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use computer::Computer;
use computer::protocol::Request;
use event_log::{EventLog, SqliteLog, decode_event};
use sandbox::open_computer::OpenComputer;
use scripted_model::Wire;
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::wire::{CellCommand, CommandNetwork, RunState};
use shared_types::{Event, Payload, Seq, UserId};
use tokio::runtime::Runtime;

use crate::person::Person;
use crate::scenario::Scenario;
use crate::scenario_host::{LOOK, PATIENCE, ScenarioHost};

/// A terminal that may reach a host for as long as the run lasts, and is cut off doing so.
const CUT_OFF: &str = r#"
about = "A command that may have reached the outside is cut off by an orderly stop."
objective = "Push it."

[[script.agent]]
role = "conductor"
[[script.agent.step]]
calls = [ { tool = "delegate", input = { agent = "terminal", task = "Push it." } } ]
[[script.agent.step]]
expect = ["The terminal is done"]
calls = [ { tool = "finish", input = { summary = "That is all." } } ]

[[script.agent]]
role = "terminal"
[[script.agent.step]]
calls = [ { tool = "exec", input = { command = "touch begun; sleep 600", hosts = ["example.org"] } } ]
[[script.agent.step]]
expect = ["interrupted: the computer stopped while it ran"]
text = "It was cut off."

[[person]]
after = "run.ask"
allow = "run"

[crash]
again = "no"

[expect]
state = "completed"
turns = 4
micros = 0
calls = []
"#;

/// Waits until a command has written its first file, which is in its own layer.
fn until_begun(host: &ScenarioHost<'_>, mut meanwhile: impl FnMut()) {
    let (began, layers) = (Instant::now(), host.paths().state.join("cells"));
    let has_begun = || {
        let mut layers = std::fs::read_dir(&layers).into_iter().flatten().flatten();
        layers.any(|layer| layer.path().join("upper/begun").exists())
    };
    while !has_begun() {
        assert!(began.elapsed() < PATIENCE, "no command has begun");
        meanwhile();
        std::thread::sleep(LOOK);
    }
}

/// Closes a desk in order once a command runs on it.
fn close_during_a_command(
    host: &ScenarioHost<'_>,
    computer: Computer,
    mut meanwhile: impl FnMut(&OpenComputer),
) {
    let runtime = Runtime::new().unwrap();
    let open_computer = runtime.block_on(OpenComputer::open(computer, &host.agent_services())).unwrap();
    until_begun(host, || meanwhile(&open_computer));
    runtime.block_on(open_computer.close());
    runtime.shutdown_timeout(Duration::from_secs(5));
}

fn is_cut_off(event: &Event) -> bool {
    match &event.payload {
        Payload::Tool(ToolEvent::Result(result)) => matches!(result.status, ToolStatus::Interrupted { .. }),
        _ => false,
    }
}

#[test]
fn an_agents_command_that_may_have_reached_the_outside_is_asked_about_after_an_orderly_stop() {
    let scenario: Scenario = toml::from_str(CUT_OFF).unwrap();
    let host = ScenarioHost::new(&scenario, Wire::Anthropic);
    let mut person = Person::new(&scenario, host.runs[0]);
    close_during_a_command(&host, host.prepare(), |open_computer| {
        person.act(open_computer.computer(), &host.events(open_computer.computer(), host.runs[0]));
    });

    let end = host.carry_on(computer::client::open_exclusive(&host.paths()).unwrap()).unwrap();
    let run = &end.runs[0];
    assert_eq!(run.calls(), ["delegate ok", "exec failed", "finish ok"]);
    assert!(run.events.iter().any(is_cut_off));
    assert_eq!((run.asks, run.details.line.state), (2, RunState::Completed));
}

#[test]
fn a_persons_own_command_is_answered_by_an_orderly_stop_and_says_that_it_was_one() {
    let scenario: Scenario = toml::from_str(CUT_OFF).unwrap();
    let host = ScenarioHost::new(&scenario, Wire::Anthropic);
    let paths = host.paths();
    let (computer, _) =
        Computer::create(&paths, UserId::parse("ada").unwrap(), "Ada", &|_, _, _| ()).unwrap();
    let command = CellCommand {
        argv: ["sh", "-c", "touch begun; sleep 600"].map(Into::into).into(),
        network: CommandNetwork::Hosts(vec!["example.org".into()]),
        ..CellCommand::default()
    };
    let mut asked = None;
    close_during_a_command(&host, computer, |_| {
        // Through the socket of the desk, as `choir run` does.
        let (paths, request) = (host.paths(), Request::RunCommand(command.clone()));
        asked.get_or_insert_with(|| {
            std::thread::spawn(move || {
                computer::client::request(&paths, request, &mut std::io::empty(), &|_, _, _| ())
            })
        });
    });
    // The caller may or may not have got the answer before the socket was removed.
    let _ = asked.unwrap().join().unwrap();

    let log = SqliteLog::open_read_only(&paths.state).unwrap();
    let mut newest = None;
    log.scan(Seq(1), &mut |stored| {
        newest = Some(decode_event(&log, stored).unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(newest.as_ref().is_some_and(is_cut_off), "{newest:?}");
}
