//! Appending: seqs, refusals, resends.

use shared_types::Seq;

use super::sample::{append, append_one, fill, read, read_checked};
use super::{Harness, now_and_after_reopening};
use crate::{AppendError, Appended, MAX_EVENTS};

pub fn an_append_takes_the_places_after_the_expected_seq(harness: &mut dyn Harness) {
    let log = harness.log();
    assert_eq!(log.head(), crate::Head::default(), "a new log is empty");
    let first = append(Seq(0), 3);
    let second = append(Seq(3), 2);
    let sent: Vec<_> = first.events.iter().chain(&second.events).map(|event| event.id).collect();
    let commands = [first.command, second.command];
    assert_eq!(append_one(&*log, first).expect("taken"), Appended { first: Seq(1), last: Seq(3) });
    assert_eq!(append_one(&*log, second).expect("taken"), Appended { first: Seq(4), last: Seq(5) });
    drop(log);
    now_and_after_reopening(harness, |log| {
        let events = read_checked(&**log);
        assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), sent);
        let answers = commands.map(|command| log.answer(command).expect("readable"));
        assert_eq!(answers[0], Some(Appended { first: Seq(1), last: Seq(3) }));
        assert_eq!(answers[1], Some(Appended { first: Seq(4), last: Seq(5) }));
    });
    let log = harness.log();
    append_one(&*log, append(Seq(5), 1)).expect("it goes on where it was");
    assert_eq!(read_checked(&*log).len(), 6);
}

pub fn a_wrong_seq_is_refused_and_changes_nothing(harness: &mut dyn Harness) {
    let log = harness.log();
    fill(&*log, 5);
    let before = read_checked(&*log);
    for wrong in [0, 4, 6, u64::MAX - 1000] {
        let late = append(Seq(wrong), 1);
        let (command, hash) = (late.command, late.contents[0].0);
        match append_one(&*log, late) {
            Err(AppendError::WrongSeq { expected, actual }) => {
                assert_eq!((expected, actual), (Seq(wrong), Seq(5)));
            }
            other => panic!("expected a wrong seq, got {other:?}"),
        }
        assert_eq!(log.answer(command).expect("readable"), None, "a refused command may be sent again");
        if wrong == 6 {
            assert!(!log.has_content(&hash).expect("readable"), "its contents are refused with it");
        }
    }
    drop(log);
    now_and_after_reopening(harness, |log| assert_eq!(read_checked(&**log), before));
}

pub fn a_refused_append_does_not_stop_the_others_of_its_group(harness: &mut dyn Harness) {
    let log = harness.log();
    let mut damaged = append(Seq(2), 1);
    damaged.contents[0].1.push(b'!');
    let group = vec![append(Seq(0), 2), append(Seq(0), 2), damaged, append(Seq(2), 3), append(Seq(5), 0)];
    let kept: Vec<_> = group[0].events.iter().chain(&group[3].events).map(|event| event.id).collect();
    let answers = log.append(&group);
    assert!(matches!(answers[0], Ok(Appended { first: Seq(1), last: Seq(2) })), "{answers:?}");
    assert!(matches!(answers[1], Err(AppendError::WrongSeq { actual: Seq(2), .. })), "{answers:?}");
    assert!(matches!(answers[2], Err(AppendError::WrongHash(_))), "{answers:?}");
    assert!(matches!(answers[3], Ok(Appended { first: Seq(3), last: Seq(5) })), "{answers:?}");
    assert!(matches!(answers[4], Err(AppendError::Size(0))), "{answers:?}");
    assert!(log.append(&[]).is_empty(), "an empty group is no work");
    drop(log);
    now_and_after_reopening(harness, |log| {
        let events = read_checked(&**log);
        assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), kept);
    });
}

pub fn an_append_holds_one_to_five_hundred_events(harness: &mut dyn Harness) {
    let log = harness.log();
    let most = MAX_EVENTS as u64;
    for size in [0, most + 1] {
        let answer = append_one(&*log, append(Seq(0), size));
        assert!(matches!(answer, Err(AppendError::Size(n)) if n as u64 == size), "{answer:?}");
        assert_eq!(log.head().seq, Seq(0));
    }
    let answer = append_one(&*log, append(Seq(0), most)).expect("five hundred fit");
    assert_eq!(answer, Appended { first: Seq(1), last: Seq(most) });
    assert_eq!(read_checked(&*log).len() as u64, most);
}

pub fn events_that_stand_in_wrong_places_are_refused(harness: &mut dyn Harness) {
    let log = harness.log();
    let mut skipping = append(Seq(0), 3);
    skipping.events[2].seq = Seq(4);
    let mut repeating = append(Seq(0), 3);
    repeating.events[1].seq = Seq(1);
    for (wrong, at) in [(skipping, Seq(3)), (repeating, Seq(2))] {
        let answer = append_one(&*log, wrong);
        assert!(matches!(answer, Err(AppendError::Misplaced { place, .. }) if place == at), "{answer:?}");
    }
    assert!(read(&*log, Seq(1)).is_empty());
}

pub fn a_resend_gets_the_first_answer_and_adds_nothing(harness: &mut dyn Harness) {
    let log = harness.log();
    fill(&*log, 2);
    let sent = append(Seq(2), 3);
    let answers = log.append(&[sent.clone(), sent.clone()]);
    let first = Appended { first: Seq(3), last: Seq(5) };
    assert!(answers.iter().all(|answer| matches!(answer, Ok(a) if *a == first)), "{answers:?}");
    append_one(&*log, append(Seq(5), 1)).expect("taken");
    drop(log);
    now_and_after_reopening(harness, |log| {
        assert_eq!(append_one(&**log, sent.clone()).expect("the first answer"), first);
        // A caller that has seen the log grow may renumber its events; the command is still the same.
        let mut moved = append(log.head().seq, 2);
        moved.command = sent.command;
        assert_eq!(append_one(&**log, moved).expect("the first answer"), first);
        assert_eq!(log.answer(sent.command).expect("readable"), Some(first));
        assert_eq!(read_checked(&**log).len(), 6);
    });
}
