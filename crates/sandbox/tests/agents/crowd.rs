//! A run has as many agents as it may have, and no more.

use std::fmt::Write;

use kernel::run::TASKS;
use scripted_model::Wire;
use shared_types::wire::RunState;

use crate::scenario::Scenario;
use crate::stage::Stage;

/// A conductor that wants one agent more than there may be, all at once, and then tries to finish until all are done.
fn one_too_many() -> String {
    let mut text = String::from(
        "about = \"Too many.\"\nobjective = \"All at once.\"\nbudget = { steps = 1000 }\n[[script.agent]]\nrole = \"conductor\"\n",
    );
    text.push_str("[[script.agent.step]]\ncalls = [\n");
    for number in 0..TASKS {
        let _ = writeln!(
            text,
            "{{ tool = \"delegate\", input = {{ agent = \"writer\", task = \"Say {number}.\" }} }},"
        );
    }
    text.push_str("]\n");
    for number in 0..=TASKS {
        let told = if number == 0 {
            format!("expect = [\"this run has had {TASKS} agents\"]\n")
        } else {
            String::new()
        };
        let _ = write!(
            text,
            "[[script.agent.step]]\n{told}calls = [ {{ tool = \"finish\", input = {{ summary = \"All.\" }} }} ]\n"
        );
    }
    text.push_str("[[script.agent]]\nrole = \"writer\"\n[[script.agent.step]]\ntext = \"Said.\"\n");
    text.push_str("[expect]\nstate = \"completed\"\nturns = 0\nmicros = 0\ncalls = []\n");
    text
}

#[test]
fn a_run_that_wants_more_agents_than_it_may_have_is_told_so_and_comes_to_its_end() {
    let scenario: Scenario = toml::from_str(&one_too_many()).unwrap();
    let stage = Stage::new(&scenario, Wire::OpenAi);
    stage.carry_on(stage.prepare()).unwrap();
    let computer = sandbox::session::take(&stage.place()).unwrap();
    let details = stage.details(&computer, stage.runs[0]);
    assert_eq!(
        (details.line.state, details.agents.len()),
        (RunState::Completed, TASKS),
        "{:?}",
        details.line
    );
}
