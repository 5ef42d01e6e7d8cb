//! Agents that really work: the whole computer with its cells, and a scripted model behind each provider's own wire.
//!
//! A scenario is a file of `fixtures/scenarios`: files, an objective, what the models say, what the person does, and
//! what must come of it. What its agents said and did is kept as text in `fixtures/scenarios/transcripts`. Afterwards
//! the whole run is undone, and everything is as it was before.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that is told something else has failed"
)]

mod agent_limit;
mod causes;
mod closing;
mod crash;
mod cut;
mod expectations;
mod keys;
mod kills;
mod local_model_only;
mod lost_turns;
mod person;
mod resumed;
mod scenario;
mod scenario_host;
mod share;
mod snapshot;
mod traces;
mod transcript;

use std::sync::Mutex;

use agents::roles::{ROLES, Role};
use scripted_model::Wire;

use scenario::Scenario;
use scenario_host::ScenarioHost;
use share::Share;

/// Part of the names of the scenarios to play, while working on one.
const ONLY: &str = "CHOIR_SCENARIOS";
/// At once; most of the time each waits for a model that takes its time.
const LANES: usize = 8;

fn scenarios() -> Vec<Scenario> {
    let only = std::env::var(ONLY).unwrap_or_default();
    Scenario::all().into_iter().filter(|scenario| scenario.name.contains(&only)).collect()
}

/// Plays all scenarios over one wire, and tells of everything that is wrong.
fn play_all(wire: Wire) {
    let play = |scenario: &Scenario| {
        ScenarioHost::new(scenario, wire).play().map_err(|reason| format!("{}: {reason}", scenario.name))
    };
    all_well(each(scenarios().iter(), play));
}

/// Does something with each of many, some at once.
fn each<T: Send, R: Send>(items: impl Iterator<Item = T> + Send, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    let (queue, done) = (Mutex::new(items), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let Some(item) = queue.lock().unwrap().next() else { return };
                    let came = act(item);
                    done.lock().unwrap().push(came);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

fn all_well<T>(ended: Vec<Result<T, String>>) -> Vec<T> {
    let mut wrong = Vec::new();
    let well =
        ended.into_iter().filter_map(|ended| ended.map_err(|reason| wrong.push(reason)).ok()).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    well
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
fn what_every_role_is_told_is_kept() {
    let check = |role: &Role| snapshot::check(&format!("roles/{}", role.name()), &transcript::of_role(*role));
    all_well(ROLES.iter().map(check).collect());
    let names = ROLES.iter().map(|role| role.name().to_owned()).collect();
    let kept = snapshot::kept(&snapshot::folder().join("roles"));
    assert_eq!(kept.symmetric_difference(&names).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_scenario_has_its_transcript_and_no_transcript_is_left_over() {
    let names = Scenario::all().into_iter().map(|scenario| scenario.name).collect();
    let kept = snapshot::kept(&snapshot::folder());
    assert_eq!(kept.symmetric_difference(&names).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_run_that_is_stopped_after_any_event_goes_on_to_the_same_end() {
    let scenarios = scenarios();
    let played = all_well(each(scenarios.iter(), crash::whole));
    let stops = Share::from_environment().of(played.iter().flat_map(crash::Played::stops));
    all_well(each(stops, |(played, stop)| played.stop_after(stop)));
}

#[test]
fn a_call_of_a_server_that_was_cut_off_is_asked_about_and_not_made_again() {
    let all = Scenario::all();
    let scenario = all.iter().find(|scenario| scenario.name == "server-call-cut-off").unwrap();
    let end = crash::cut_off_in_a_call(scenario).unwrap();
    let run = &end.runs[0];
    assert_eq!(run.calls(), ["delegate ok", "finish ok", "mcp_tracker_create_issue failed"]);
    assert_eq!((run.asks, run.details.line.state), (2, shared_types::wire::RunState::Completed));
}
