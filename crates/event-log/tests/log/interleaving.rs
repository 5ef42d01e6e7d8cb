//! Any interleaving of writers, groups and retries leaves one gapless chain with every acknowledged event once.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use event_log::conformance::Harness;
use event_log::conformance::sample::{contend, read_checked};
use event_log::{EventLog, Subscription};
use proptest::collection::vec;
use proptest::prelude::*;
use shared_types::{EventId, Seq};

use crate::backends::{InMemory, OnDisk};

/// For each writer its groups, for each group its appends, for each append the number of events.
type Plan = Vec<Vec<Vec<u64>>>;

fn plans() -> impl Strategy<Value = Plan> {
    vec(vec(vec(1..6_u64, 1..5), 1..6), 1..6)
}

fn follow(log: &Arc<dyn EventLog>, last: Seq) -> Vec<EventId> {
    let mut subscription = Subscription::new(Arc::clone(log), Seq::ZERO);
    let mut seen = Vec::new();
    while subscription.position() < last {
        let news = subscription.next(Duration::from_secs(60)).unwrap();
        assert!(!news.is_empty(), "the writers stopped short");
        seen.extend(news.iter().map(|event| event.id));
    }
    seen
}

fn stays_gapless(harness: &mut dyn Harness, plan: &Plan) {
    let log = harness.log();
    let last = Seq(plan.iter().flatten().flatten().sum());
    let (acknowledged, followed) = thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&log, last));
        let writers: Vec<_> = plan.iter().map(|groups| scope.spawn(|| contend(&*log, groups))).collect();
        let acknowledged: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        (acknowledged, follower.join().unwrap())
    });
    drop(log);
    harness.reopen();
    let stored: Vec<_> = read_checked(&*harness.log()).iter().map(|event| event.id).collect();
    assert_eq!(stored.len(), acknowledged.len());
    assert_eq!(stored.iter().collect::<HashSet<_>>(), acknowledged.iter().collect::<HashSet<_>>());
    assert_eq!(followed, stored);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_stays_gapless(plan in plans()) {
        stays_gapless(&mut InMemory::new(), &plan);
    }

    #[test]
    fn sqlite_stays_gapless(plan in plans()) {
        stays_gapless(&mut OnDisk::new(), &plan);
    }
}
