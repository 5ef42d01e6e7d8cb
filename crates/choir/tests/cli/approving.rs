//! `choir ask` and `choir approve` with a model: a run from its objective to its end, with approvals on the way.

use crate::machine::Machine;
use crate::scenario::Scenario;
use crate::test_computer::CommandOutput;

/// The id in the last command that the person is shown.
fn shown_id(ran: &CommandOutput) -> &str {
    let (_, rest) = ran.out.rsplit_once("choir approve ").unwrap_or_else(|| panic!("{ran:?}"));
    rest.split_whitespace().next().unwrap()
}

#[test]
fn a_run_that_is_watched_is_followed_to_its_end() {
    let scenario = Scenario::read("write-a-note");
    let (machine, computer) = (Machine::new(scenario.script.clone()), scenario.computer());
    let watched = machine.told(&computer, &["ask", &scenario.objective, "--watch"]).exits(0);
    let mut from = 0;
    // Its steps in order, then its result and how to undo it.
    for words in [&scenario.objective, "writer", "completed", "choir runs undo "] {
        let at = watched.out[from..]
            .find(words)
            .unwrap_or_else(|| panic!("no {words:?} after {from}: {watched:?}"));
        from += at;
    }
    for path in scenario.after.keys() {
        assert!(watched.out.contains(&format!("→ {path}")), "{path}: {watched:?}");
    }
    assert!(!watched.out.contains("using the local model"), "another takes it: {watched:?}");
    machine.judge(&scenario, &computer);
}

#[test]
fn a_run_waits_for_the_word_of_the_person_and_goes_on_with_it() {
    // The first command is allowed, the second is not.
    let scenario = Scenario::read("allowed-once");
    let (machine, computer) = (Machine::new(scenario.script.clone()), scenario.computer());
    let asked = machine.told(&computer, &["ask", &scenario.objective]).exits(10);
    assert!(asked.out.contains("echo 1 > one.txt") && asked.out.contains("example.org"), "{asked:?}");
    assert!(!computer.has("one.txt"), "nothing is done before it is allowed");
    let listed = machine.told(&computer, &["approve"]).exits(0);
    assert_eq!(shown_id(&listed), shown_id(&asked), "{listed:?}");

    let first = machine.told(&computer, &["approve", shown_id(&asked), "--watch"]).exits(10);
    assert_eq!(computer.read("one.txt"), "1\n");
    assert!(first.out.contains("cannot be undone after that"), "it lay in the outbox: {first:?}");
    assert!(first.out.contains("echo 2 > two.txt"), "{first:?}");
    assert_ne!(shown_id(&first), shown_id(&asked), "once is once");

    let second =
        machine.told(&computer, &["approve", shown_id(&first), "--deny", "enough", "--watch"]).exits(0);
    assert!(second.out.contains("That is all.") && second.out.contains("completed"), "{second:?}");
    machine.judge(&scenario, &computer);
    let late = machine.told(&computer, &["approve", shown_id(&asked)]);
    assert_ne!(late.code, 0, "{late:?}");
    computer.run(&["approve"]).exits(0).says("no pending questions");
}
