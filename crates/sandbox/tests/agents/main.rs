//! Agents that really work: the whole computer with its cells, and a scripted model behind each provider's own wire.
//!
//! A scenario is a file of `fixtures/scenarios`: files, an objective, what the models say, what the person does, and what
//! must come of it. Afterwards the whole run is undone, and everything is as it was before.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that is told something else has failed"
)]

mod crash;
mod person;
mod scenario;
mod stage;

use scripted_model::Wire;

use scenario::Scenario;
use stage::Stage;

/// Part of the names of the scenarios to play, while working on one.
const ONLY: &str = "CHOIR_SCENARIOS";
/// Scenarios at once; most of the time each waits for its disk.
const LANES: usize = 5;

fn scenarios() -> Vec<Scenario> {
    let only = std::env::var(ONLY).unwrap_or_default();
    Scenario::all().into_iter().filter(|scenario| scenario.name.contains(&only)).collect()
}

/// Plays all scenarios over one wire, some at once, and tells of everything that is wrong.
fn play_all(wire: Wire) {
    let wrong = each(scenarios(), |scenario| Stage::new(scenario, wire).play());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Does something with every scenario, some at once; what is wrong comes back under its name.
fn each(scenarios: Vec<Scenario>, act: impl Fn(&Scenario) -> Result<(), String> + Sync) -> Vec<String> {
    let queue = std::sync::Mutex::new(scenarios.iter());
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = queue.lock().unwrap().next() else { return };
                    if let Err(reason) = act(scenario) {
                        wrong.lock().unwrap().push(format!("{}: {reason}", scenario.name));
                    }
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

#[test]
fn scenarios_end_as_they_should_over_anthropics_wire() {
    play_all(Wire::Anthropic);
}

#[test]
fn scenarios_end_as_they_should_over_openais_wire() {
    play_all(Wire::OpenAi);
}

#[test]
fn scenarios_end_as_they_should_over_bedrocks_wire() {
    play_all(Wire::Bedrock);
}

#[test]
fn a_run_that_is_stopped_after_any_event_goes_on_to_the_same_end() {
    let wrong = each(scenarios(), crash::everywhere);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
