//! `choir ask` and `choir approve` with a model: a run from its objective to its end, with the person's word on the way.

use crate::home::Ran;
use crate::machine::Machine;
use crate::scenario::Scenario;

/// The id in the last command that the person is shown.
fn shown_id(ran: &Ran) -> &str {
    let (_, rest) = ran.out.rsplit_once("choir approve ").unwrap_or_else(|| panic!("{ran:?}"));
    rest.split_whitespace().next().unwrap()
}

#[test]
fn a_run_that_is_watched_is_followed_to_its_end() {
    let scenario = Scenario::read("write-a-note");
    let (machine, home) = (Machine::new(scenario.script.clone()), scenario.home());
    let watched = machine.told(&home, &["ask", &scenario.objective, "--watch"]).exits(0);
    let mut from = 0;
    // Its steps in their order, then what came of it and how it is taken back.
    for words in [&scenario.objective, "writer", "completed", "choir runs undo "] {
        let at = watched.out[from..]
            .find(words)
            .unwrap_or_else(|| panic!("no {words:?} after {from}: {watched:?}"));
        from += at;
    }
    for path in scenario.after.keys() {
        assert!(watched.out.contains(&format!("→ {path}")), "{path}: {watched:?}");
    }
    assert!(!watched.out.contains("the model of this machine"), "another takes it: {watched:?}");
    machine.judge(&scenario, &home);
}

#[test]
fn a_run_waits_for_the_word_of_the_person_and_goes_on_with_it() {
    // The first command is allowed, the second is not.
    let scenario = Scenario::read("allowed-once");
    let (machine, home) = (Machine::new(scenario.script.clone()), scenario.home());
    let asked = machine.told(&home, &["ask", &scenario.objective]).exits(10);
    assert!(asked.out.contains("echo 1 > one.txt") && asked.out.contains("example.org"), "{asked:?}");
    assert!(!home.has("one.txt"), "nothing is done before it is allowed");
    let listed = machine.told(&home, &["approve"]).exits(0);
    assert_eq!(shown_id(&listed), shown_id(&asked), "{listed:?}");

    let first = machine.told(&home, &["approve", shown_id(&asked), "--watch"]).exits(10);
    assert_eq!(home.read("one.txt"), "1\n");
    assert!(first.out.contains("cannot be taken back then"), "it lay in the outbox: {first:?}");
    assert!(first.out.contains("echo 2 > two.txt"), "{first:?}");
    assert_ne!(shown_id(&first), shown_id(&asked), "once is once");

    let second = machine.told(&home, &["approve", shown_id(&first), "--deny", "enough", "--watch"]).exits(0);
    assert!(second.out.contains("That is all.") && second.out.contains("completed"), "{second:?}");
    machine.judge(&scenario, &home);
    let late = machine.told(&home, &["approve", shown_id(&asked)]);
    assert_ne!(late.code, 0, "{late:?}");
    home.run(&["approve"]).exits(0).says("nothing waits for you");
}
