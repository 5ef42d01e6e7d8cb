//! The usage of a cancelled turn is counted.

use std::time::{Duration, Instant};

use computer::Computer;
use computer::ids;
use computer::protocol::RunRequest;
use sandbox::open_computer::OpenComputer;
use scripted_model::Wire;
use shared_types::Payload;
use shared_types::payload::llm::{LlmEvent, LlmFail};
use shared_types::wire::{RunControl, RunState};
use tokio::runtime::Runtime;

use crate::person::retry;
use crate::scenario::Scenario;
use crate::scenario_host::{LOOK, PATIENCE, ScenarioHost, ask};

/// A writer whose model is asked and never answers.
const NEVER_ANSWERED: &str = r#"
about = "A model that is asked and never answers."
objective = "Write tea.md."

[[script.agent]]
role = "conductor"
[[script.agent.step]]
calls = [ { tool = "delegate", input = { agent = "writer", task = "Write tea.md." } } ]
usage = { input = 100, output = 10 }

[[script.agent]]
role = "writer"
[[script.agent.step]]
fault = "silent"
times = 9
text = "Never said."

[expect]
state = "cancelled"
turns = 1
micros = 120
calls = []
"#;

fn until(what: &str, mut has_come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !has_come() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(LOOK);
    }
}

/// Turns that came to nothing, with what they took.
fn failures(host: &ScenarioHost<'_>, computer: &Computer) -> Vec<LlmFail> {
    let events = host.events(computer, host.runs[0]).into_iter();
    let fail = |event: shared_types::Event| match event.payload {
        Payload::Llm(LlmEvent::Fail(fail)) => Some(fail),
        _ => None,
    };
    events.filter_map(fail).collect()
}

fn stop(host: &ScenarioHost<'_>, computer: &Computer) {
    let run = host.runs[0];
    ask(computer, RunRequest::Control { run: run.to_string(), control: RunControl::Stop });
    until("the run does not end", || {
        computer.writer().inspect(move |view| view.unfinished_in(run).is_none()).unwrap()
    });
}

/// Lets agents work until the writer's model is asked, and then does something.
fn when_asked(act: impl FnOnce(&ScenarioHost<'_>, &Computer)) {
    let scenario: Scenario = toml::from_str(NEVER_ANSWERED).unwrap();
    let host = ScenarioHost::new(&scenario, Wire::Anthropic);
    let runtime = Runtime::new().unwrap();
    let open_computer = runtime.block_on(OpenComputer::open(host.prepare(), &host.agent_services())).unwrap();
    until("the writer's model is not asked", || host.requests().len() == 2);
    act(&host, open_computer.computer());
    runtime.block_on(open_computer.close());
    runtime.shutdown_timeout(Duration::from_secs(5));
}

#[test]
fn stopping_a_run_counts_what_the_turn_took_that_was_under_way() {
    when_asked(|host, computer| {
        stop(host, computer);
        let [lost] = &failures(host, computer)[..] else { panic!("{:?}", failures(host, computer)) };
        // A prompt costs a millionth of a dollar for each of its tokens.
        assert_eq!((lost.micros, lost.tokens.output), (Some(lost.tokens.input), 0), "{lost:?}");
        let line = host.details(computer, host.runs[0]).line;
        assert_eq!((line.state, line.cost.turns), (RunState::Cancelled, 1));
        assert_eq!(line.cost.micros, 120 + lost.tokens.input);
        let today = computer.writer().inspect(|view| view.spent_on_day(ids::now()).spent).unwrap();
        assert_eq!(today.micros, line.cost.micros);
    });
}

#[test]
fn going_back_to_a_step_counts_what_the_turn_took_that_was_under_way() {
    when_asked(|host, computer| {
        let events = host.events(computer, host.runs[0]);
        retry(computer, host.runs[0], &events, 1);
        until("what was taken is not counted", || !failures(host, computer).is_empty());
        until("no turn starts again", || host.requests().len() > 2);
        assert!(failures(host, computer)[0].tokens.input > 0);
        stop(host, computer);
    });
}
