//! The lag of the projector, and that no append waits for it.

use std::time::{Duration, Instant};

use projector::Lag;
use shared_types::Seq;

use crate::computer::Computer;

#[test]
fn the_lag_is_what_is_not_projected_yet() {
    let mut computer = Computer::new();
    assert_eq!(computer.projector().lag().unwrap().events(), 0);
    for number in 0..5 {
        computer.write("x", format!("{number}\n"));
    }
    let lag = computer.projector().lag().unwrap();
    assert_eq!(lag, Lag { head: Seq(5), rows: Seq(0), disk: Seq(0) });
    assert_eq!(lag.events(), 5);
    assert_eq!(computer.read("x"), None);
    computer.restart();
    assert_eq!(computer.projector().lag().unwrap().events(), 5, "it is counted across a restart");
    computer.catch_up();
    let lag = computer.projector().lag().unwrap();
    assert_eq!(lag, Lag { head: Seq(5), rows: Seq(5), disk: Seq(5) });
    assert_eq!(computer.read("x").as_deref(), Some("4\n"));
}

#[test]
fn an_append_does_not_wait_for_the_projector() {
    let computer = Computer::new();
    computer.settle();
    computer.write("first", "first\n");
    // The projector stops in the middle of its batch, and the log continues.
    let standing = || {
        let start = Instant::now();
        for number in 0..20 {
            computer.write(&format!("meanwhile/{number}"), "meanwhile\n");
        }
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_eq!(computer.projector().lag().unwrap().events(), 21);
    };
    computer.while_writing(1, &standing);
    assert_eq!(
        computer.projector().lag().unwrap().events(),
        20,
        "a run ends where the log stood when it began"
    );
    assert_eq!(computer.read("first").as_deref(), Some("first\n"));
    assert_eq!(computer.read("meanwhile/19"), None);
    computer.settle();
    computer.assert_faithful();
}

#[test]
fn events_that_are_no_files_move_the_disk_on_too() {
    let computer = Computer::new();
    for number in 0..2500 {
        let value = number.into();
        computer.act(kernel::Action::SetSetting { key: "n".into(), value });
    }
    computer.write("x", "x\n");
    assert_eq!(computer.projector().lag().unwrap().events(), 2501);
    computer.catch_up();
    assert_eq!(computer.projector().lag().unwrap().events(), 0);
    computer.assert_faithful();
}
