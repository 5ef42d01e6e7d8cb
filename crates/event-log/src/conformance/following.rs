//! Racing writers, and subscriptions that follow them.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use shared_types::{Seq, StoredEvent};

use super::sample::{append, append_one, contend, fill, read_checked};
use super::{Harness, now_and_after_reopening};
use crate::{EventLog, Subscription};

const WRITERS: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The appends of each writer, by group: forty events in all.
fn groups() -> Vec<Vec<u64>> {
    (0..5).map(|_| vec![1, 4, 1, 2]).collect()
}

pub fn racing_writers_leave_no_gap(harness: &mut dyn Harness) {
    let log = harness.log();
    let acknowledged: Vec<_> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(|| contend(&*log, &groups()))).collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer ends well")).collect()
    });
    drop(log);
    now_and_after_reopening(harness, |log| {
        let stored: Vec<_> = read_checked(&**log).iter().map(|event| event.id).collect();
        assert_eq!(stored.len(), WRITERS * 40);
        assert_eq!(stored.len(), acknowledged.len(), "nothing is stored twice or unasked");
        assert_eq!(
            stored.iter().collect::<HashSet<_>>(),
            acknowledged.iter().collect::<HashSet<_>>(),
            "what is acknowledged is stored"
        );
    });
}

fn follow(log: &Arc<dyn EventLog>, after: Seq, last: Seq) -> Vec<StoredEvent<'static>> {
    let mut subscription = Subscription::new(Arc::clone(log), after);
    let mut seen = Vec::new();
    while subscription.position() < last {
        let news = subscription.next(TIMEOUT).expect("readable");
        assert!(!news.is_empty(), "the writers stopped short of {last}");
        seen.extend(news);
    }
    seen
}

pub fn followers_see_every_event_once_while_writers_race(harness: &mut dyn Harness) {
    let log = harness.log();
    fill(&*log, 30);
    let last = Seq(30 + WRITERS as u64 * 40);
    let places = [0, 7, 30, 100].map(Seq);
    let followed: Vec<_> = thread::scope(|scope| {
        let followers = places.map(|after| {
            let log = Arc::clone(&log);
            scope.spawn(move || (after, follow(&log, after, last)))
        });
        for _ in 0..WRITERS {
            scope.spawn(|| contend(&*log, &groups()));
        }
        followers.into_iter().map(|follower| follower.join().expect("a follower ends well")).collect()
    });
    let all = read_checked(&*log);
    for (after, seen) in followed {
        assert_eq!(seen, all[after.0 as usize..], "following after {after}");
    }
    drop((log, all));
    harness.reopen();
    let log = harness.log();
    assert_eq!(follow(&log, Seq(0), last), read_checked(&*log), "the past is followed in the same way");
}

pub fn waiting_for_events_ends_at_the_timeout(harness: &mut dyn Harness) {
    let log = harness.log();
    fill(&*log, 3);
    let mut subscription = Subscription::new(Arc::clone(&log), Seq(3));
    let start = Instant::now();
    assert!(subscription.next(Duration::from_millis(30)).expect("readable").is_empty());
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert_eq!(log.wait(Seq(3), Duration::from_millis(5)), Seq(3));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| subscription.next(TIMEOUT).expect("readable"));
        append_one(&*log, append(Seq(3), 1)).expect("taken");
        assert_eq!(waiting.join().expect("ends well").len(), 1);
    });
    assert!(start.elapsed() < TIMEOUT, "an append wakes the waiting threads");
    assert_eq!(log.wait(Seq(0), TIMEOUT), Seq(4), "what is here already needs no waiting");
}
