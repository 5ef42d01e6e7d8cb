//! Reading: ranges, operations, the chain.

use std::ops::ControlFlow;

use shared_types::{ChainHash, EventName, Payload, RunId, Seq};

use super::sample::{append, append_of, append_one, event, fill, op, read, read_checked};
use super::{Harness, now_and_after_reopening};
use crate::Append;

pub fn a_scan_visits_the_events_from_a_place_on(harness: &mut dyn Harness) {
    fill(&*harness.log(), 700);
    now_and_after_reopening(harness, |log| {
        let all = read_checked(&**log);
        assert_eq!(all.len(), 700);
        assert_eq!(read(&**log, Seq(0)), all, "zero is the place before the first");
        for from in [1_u64, 2, 255, 256, 257, 699, 700] {
            assert_eq!(read(&**log, Seq(from)), all[from as usize - 1..], "from {from}");
        }
        assert!(read(&**log, Seq(701)).is_empty());
        assert!(read(&**log, Seq(u64::MAX)).is_empty());
    });
}

pub fn a_scan_stops_when_the_visitor_breaks(harness: &mut dyn Harness) {
    let log = harness.log();
    fill(&*log, 50);
    let mut seen = Vec::new();
    log.scan(Seq(5), &mut |event| {
        seen.push(event.seq.0);
        if event.seq == Seq(9) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .expect("readable");
    assert_eq!(seen, [5, 6, 7, 8, 9]);
}

pub fn a_visitor_may_write_to_the_log(harness: &mut dyn Harness) {
    let log = harness.log();
    fill(&*log, 20);
    log.scan(Seq(1), &mut |event| {
        if event.seq <= Seq(20) {
            append_one(&*log, append(log.head().seq, 1)).expect("a scan does not shut the writer out");
        }
        ControlFlow::Continue(())
    })
    .expect("readable");
    assert_eq!(read_checked(&*log).len(), 40);
}

pub fn an_operation_is_found_by_its_index(harness: &mut dyn Harness) {
    let log = harness.log();
    let (mine, other) = (op(), op());
    for (after, op, count) in [(0, mine, 2), (2, other, 3), (5, mine, 1)] {
        append_one(&*log, append_of(Seq(after), op, count)).expect("taken");
    }
    drop(log);
    now_and_after_reopening(harness, |log| {
        let all = read_checked(&**log);
        let found = log.operation(mine).expect("readable");
        assert_eq!(found, [all[0].clone(), all[1].clone(), all[5].clone()]);
        assert_eq!(log.operation(other).expect("readable"), all[2..5]);
        assert!(log.operation(op()).expect("readable").is_empty());
    });
}

pub fn a_run_is_found_by_its_index(harness: &mut dyn Harness) {
    let log = harness.log();
    let (mine, other) = (RunId::from_bytes(*op().as_bytes()), RunId::from_bytes(*op().as_bytes()));
    for (after, run, count) in [(0, Some(mine), 2), (2, None, 1), (3, Some(other), 2), (5, Some(mine), 1)] {
        let mut append = append(Seq(after), count);
        append.events.iter_mut().for_each(|event| event.run_id = run);
        append_one(&*log, append).expect("taken");
    }
    drop(log);
    now_and_after_reopening(harness, |log| {
        let all = read_checked(&**log);
        assert_eq!(log.run(mine).expect("readable"), [all[0].clone(), all[1].clone(), all[5].clone()]);
        assert_eq!(log.run(other).expect("readable"), all[3..5]);
        assert!(log.run(RunId::from_bytes(*op().as_bytes())).expect("readable").is_empty());
    });
}

pub fn the_chain_links_every_event_to_the_one_before(harness: &mut dyn Harness) {
    let log = harness.log();
    let mut expected = ChainHash::default();
    for _ in 0..5 {
        let after = log.head().seq;
        let group = vec![append(after, 2), append(Seq(after.0 + 2), 1)];
        for event in group.iter().flat_map(|append| &append.events) {
            expected = event.store(&expected).hash;
        }
        assert!(log.append(&group).iter().all(Result::is_ok));
        assert_eq!(log.head().hash, expected, "the head carries the last link");
    }
    drop(log);
    now_and_after_reopening(harness, |log| {
        assert_eq!(log.head().hash, expected);
        assert_eq!(read_checked(&**log).len(), 15);
    });
}

pub fn unknown_event_types_are_stored_unchanged(harness: &mut dyn Harness) {
    let log = harness.log();
    let json = "{ \"zebra\" : 1.0, \"naïve\":\"\\u0000 \u{1f600}\",\"a\":[ ] }";
    let payload = Payload::Unknown(shared_types::payload::UnknownPayload {
        name: EventName::parse("later.thing").expect("a name"),
        version: 7,
        json: json.into(),
    });
    let sent = event(Seq(1), op(), payload);
    let append = Append {
        command: super::sample::command(),
        expected: Seq(0),
        events: vec![sent.clone()],
        contents: vec![],
    };
    append_one(&*log, append).expect("taken");
    drop(log);
    now_and_after_reopening(harness, |log| {
        let events = read_checked(&**log);
        assert_eq!(events[0].payload, json, "byte for byte");
        assert_eq!(crate::decode_event(&**log, &events[0]).expect("carried"), sent);
    });
}
