//! A run has as many agents as it may have, and no more.

use std::fmt::Write;

use kernel::run::MAX_TASKS;
use scripted_model::Wire;
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::wire::RunState;
use shared_types::{Event, Payload};

use crate::scenario::Scenario;
use crate::scenario_host::ScenarioHost;

/// As many calls as are made of one turn.
const OF_A_TURN: usize = 32;

/// A conductor that wants one agent more than there may be, as fast as it can, and then tries to finish until all are
/// done.
fn one_too_many() -> String {
    let mut text = String::from(
        "about = \"Too many.\"\nobjective = \"All at once.\"\nbudget = { steps = 1000 }\n[[script.agent]]\nrole = \"conductor\"\n",
    );
    for number in 0..MAX_TASKS {
        if number % OF_A_TURN == 0 {
            text.push_str(if number == 0 { "" } else { "]\n" });
            text.push_str("[[script.agent.step]]\ncalls = [\n");
        }
        let _ = writeln!(
            text,
            "{{ tool = \"delegate\", input = {{ agent = \"writer\", task = \"Say {number}.\" }} }},"
        );
    }
    text.push_str("]\n");
    for _ in 0..=MAX_TASKS {
        text.push_str(
            "[[script.agent.step]]\ncalls = [ { tool = \"finish\", input = { summary = \"All.\" } } ]\n",
        );
    }
    text.push_str("[[script.agent]]\nrole = \"writer\"\n[[script.agent.step]]\ntext = \"Said.\"\n");
    text.push_str("[expect]\nstate = \"completed\"\nturns = 0\nmicros = 0\ncalls = []\n");
    text
}

#[test]
fn a_run_that_wants_more_agents_than_it_may_have_is_told_so_and_comes_to_its_end() {
    let scenario: Scenario = toml::from_str(&one_too_many()).unwrap();
    let host = ScenarioHost::new(&scenario, Wire::OpenAi);
    host.carry_on(host.prepare()).unwrap();
    let computer = computer::client::open_exclusive(&host.paths()).unwrap();
    let details = host.details(&computer, host.runs[0]);
    assert_eq!(
        (details.line.state, details.agents.len()),
        (RunState::Completed, MAX_TASKS),
        "{:?}",
        details.line
    );
    let is_told = |event: &Event| match &event.payload {
        Payload::Tool(ToolEvent::Result(result)) => match &result.status {
            ToolStatus::Failed { reason } => reason.contains(&format!("this run has had {MAX_TASKS} agents")),
            _ => false,
        },
        _ => false,
    };
    let told = host.events(&computer, host.runs[0]).into_iter().filter(is_told).count();
    assert_eq!(told, 1, "only one was too many");
}
