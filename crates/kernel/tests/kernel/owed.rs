//! Checkpoints and purges: requested, pending, recorded. A pending effect is never forgotten and never recorded twice.

use kernel::{Action, Effect, EffectKind, Rejection};
use shared_types::payload::checkpoint::CheckpointReason;
use shared_types::{ContentHash, Reversibility, Seq};

use crate::shell::Shell;
use crate::show::{makes, refuses};
use crate::steps::*;

fn ask(n: u8) -> Step {
    let (reason, message) = (CheckpointReason::Manual, "before lunch".into());
    Action::RequestCheckpoint { effect: effect_id(n), reason, message }.into()
}

fn made(n: u8, seq: u64) -> Step {
    let (effect, commit) = (effect_id(n), "a".repeat(40).into());
    Action::RecordCheckpoint { effect, commit, seq: Seq(seq), message: "before lunch".into() }.into()
}

fn failed(n: u8, reason: &str) -> Step {
    Action::FailCheckpoint { effect: effect_id(n), reason: reason.into() }.into()
}

fn secret() -> ContentHash {
    ContentHash::of(b"secret")
}

fn purge(n: u8, hashes: Vec<ContentHash>) -> Step {
    Action::RequestPurge { effect: effect_id(n), hashes, reason: "a pasted key".into() }.into()
}

fn purged(n: u8) -> Step {
    Action::RecordPurge { effect: effect_id(n), dropped: 1 }.into()
}

#[test]
fn a_request_is_owed_until_its_result() {
    makes([], ask(1), &["request checkpoint before lunch"]);
    makes([ask(1)], ask(1), &[]);
    makes([ask(1)], made(1, 1), &["checkpoint of 1"]);
    makes([ask(1)], failed(1, "disk full"), &["checkpoint failed: disk full"]);
    makes([], purge(1, vec![secret()]), &["purge 1"]);
    makes([purge(1, vec![secret()])], purge(1, vec![secret()]), &[]);
    makes([purge(1, vec![secret()])], purged(1), &["purged 1"]);

    for (request, result) in
        [(ask(1), made(1, 1)), (ask(1), failed(1, "x")), (purge(1, vec![secret()]), purged(1))]
    {
        let (mut shell, _) = Shell::after([request]);
        assert!(shell.view.pending.contains(&effect_id(1)));
        shell.done(result.clone());
        assert!(shell.view.pending.is_empty(), "the result settles it");
        assert_eq!(shell.run(result), Err(Rejection::NotOwed { effect: effect_id(1) }));
    }
}

#[test]
fn what_is_not_owed_has_no_result() {
    for result in [made(1, 0), failed(1, "x"), purged(1)] {
        refuses([], result.clone(), Rejection::NotOwed { effect: effect_id(1) });
        refuses([ask(2), purge(3, vec![secret()])], result, Rejection::NotOwed { effect: effect_id(1) });
    }
}

#[test]
fn a_result_of_another_kind_settles_nothing() {
    refuses([purge(1, vec![secret()])], made(1, 1), Rejection::NotOwed { effect: effect_id(1) });
    refuses([purge(1, vec![secret()])], failed(1, "x"), Rejection::NotOwed { effect: effect_id(1) });
    refuses([ask(1)], purged(1), Rejection::NotOwed { effect: effect_id(1) });
}

#[test]
fn an_id_that_is_owed_is_not_given_to_something_else() {
    let taken = || Rejection::Invalid { what: "an effect's id", reason: "it is taken".into() };
    refuses([ask(1)], purge(1, vec![secret()]), taken());
    refuses([purge(1, vec![secret()])], ask(1), taken());
    refuses([purge(1, vec![secret()])], purge(1, vec![ContentHash::of(b"other")]), taken());
}

#[test]
fn requests_and_results_have_limits() {
    let message = |message: &str| Action::RequestCheckpoint {
        effect: effect_id(1),
        reason: CheckpointReason::Automatic,
        message: message.into(),
    };
    let too_large = |what, size, limit| Rejection::TooLarge { what, size, limit };
    let invalid = |what, reason: &str| Rejection::Invalid { what, reason: reason.into() };
    refuses([], message(""), invalid("a checkpoint's message", "it is empty"));
    refuses([], message(&"m".repeat(4097)), too_large("a checkpoint's message", 4097, 4096));
    for commit in ["", "abc", &"g".repeat(40), &"a".repeat(41), "HEAD"] {
        let (effect, commit, seq) = (effect_id(1), commit.into(), Seq(1));
        let result = Action::RecordCheckpoint { effect, commit, seq, message: "m".into() };
        refuses([ask(1)], result, invalid("a commit", "expected a full hash"));
    }
    let long = Action::RecordCheckpoint {
        effect: effect_id(1),
        commit: "b".repeat(64).into(),
        seq: Seq(1),
        message: "m".repeat(5000).into(),
    };
    refuses([ask(1)], long, too_large("a checkpoint's message", 5000, 4096));
    refuses([ask(1)], made(1, 2), Rejection::NotYet { seq: Seq(2) });
    refuses([], purge(1, Vec::new()), invalid("a purge", "it names nothing"));
    let many = vec![secret(); 10_001];
    refuses([], purge(1, many), too_large("the number of contents in a purge", 10_001, 10_000));
    let quiet = Action::RequestPurge { effect: effect_id(1), hashes: vec![secret()], reason: "".into() };
    refuses([], quiet, invalid("a purge's reason", "it is empty"));

    let (mut shell, _) = Shell::after([ask(1)]);
    let events = shell.run(failed(1, &"ü".repeat(5000))).unwrap();
    assert_eq!(shell.event(&events[0]).chars().count(), "checkpoint failed: ".len() + 1000);
}

#[test]
fn the_runner_is_woken_once_for_each_request() {
    let (shell, _) = Shell::after([
        write("a", "1"),
        ask(1),
        ask(1),
        purge(2, vec![secret()]),
        made(1, 1),
        purged(2),
        ask(3),
    ]);
    let wanted = [
        Effect { id: effect_id(1), kind: EffectKind::MakeCheckpoint { message: "before lunch".into() } },
        Effect { id: effect_id(2), kind: EffectKind::DropContents { hashes: vec![secret()] } },
        Effect { id: effect_id(3), kind: EffectKind::MakeCheckpoint { message: "before lunch".into() } },
    ];
    assert_eq!(shell.woken, wanted);
    assert_eq!(wanted[0].kind.reversibility(), Reversibility::Compensable);
    assert_eq!(wanted[1].kind.reversibility(), Reversibility::Final);
}

#[test]
fn a_checkpoint_counts_what_it_does_not_hold() {
    let (mut shell, _) = Shell::after([write("a", "1"), write("b", "1"), ask(1)]);
    assert_eq!(shell.view.computer.unsaved, 2);
    assert_eq!(shell.view.computer.unsaved_since, Some(shell.log[0].ts));
    let mut late = shell.clone();

    shell.done(made(1, 2));
    assert_eq!(shell.view.computer.checkpoint, Some(("a".repeat(40).into(), Seq(2))));
    assert_eq!((shell.view.computer.unsaved, shell.view.computer.unsaved_since), (0, None));
    shell.done(set("theme", "dark"));
    assert_eq!(shell.view.computer.unsaved, 0, "a checkpoint is about files");

    late.done(write("c", "written while the checkpoint was made"));
    late.done(made(1, 3));
    assert!(late.view.computer.unsaved > 0, "what came after the commit is not in it");
    assert!(late.view.computer.unsaved_since.is_some());
}

#[test]
fn an_operation_that_goes_on_after_a_checkpoint_counts_again() {
    let (mut shell, _) = Shell::after([write("a", "1")]);
    let op = shell.op();
    shell.run_in(op, write("b", "1")).unwrap();
    shell.run_in(op, write("b", "2")).unwrap();
    assert_eq!(shell.view.computer.unsaved, 2);
    shell.done(ask(1));
    shell.done(made(1, 3));
    shell.run_in(op, write("b", "3")).unwrap();
    assert_eq!(shell.view.computer.unsaved, 1);
}
