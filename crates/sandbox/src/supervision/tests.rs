//! The supervision tree by itself, with parts of the tests' own.

use std::sync::atomic::{AtomicU32, Ordering};

use shared_types::UserId;

use super::*;

async fn parts() -> (Application, PartSupervisor) {
    let application = Application::start().await.unwrap();
    let (notices, _) = broadcast::channel(8);
    let parts =
        PartSupervisor::supervise(&application, UserId::parse("ada").unwrap(), notices).await.unwrap();
    (application, parts)
}

async fn status(parts: &PartSupervisor, kind: PartKind) -> Option<PartStatus> {
    parts.report().await.parts.into_iter().find(|part| part.kind == kind)
}

/// Waits until a part is as it should be.
async fn until(parts: &PartSupervisor, kind: PartKind, is: impl Fn(Option<&PartStatus>) -> bool) {
    while !is(status(parts, kind).await.as_ref()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_part_that_fails_or_panics_is_started_again_and_says_why() {
    let (_application, parts) = parts().await;
    let starts = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&starts);
    parts.start(PartKind::EventBus, None, move || {
        let start = count.fetch_add(1, Ordering::Relaxed);
        async move {
            match start {
                0 => Err("the disk is full".into()),
                1 => panic!("a bug"),
                _ => std::future::pending().await,
            }
        }
    });
    until(&parts, PartKind::EventBus, |part| {
        part.is_some_and(|part| part.last_failure.as_deref() == Some("the disk is full"))
    })
    .await;
    until(&parts, PartKind::EventBus, |part| {
        part.is_some_and(|part| part.restarts == 2 && part.state == PartState::Running)
    })
    .await;
    let failure = status(&parts, PartKind::EventBus).await.unwrap().last_failure.unwrap();
    assert!(failure.contains("a bug"), "{failure}");
    assert_eq!(starts.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_guarded_part_is_listed_until_its_guard_is_dropped() {
    let (_application, parts) = parts().await;
    let guard = parts.guard(PartKind::Terminal, "one".into());
    until(&parts, PartKind::Terminal, |part| part.is_some()).await;
    assert_eq!(status(&parts, PartKind::Terminal).await.unwrap().label.as_deref(), Some("one"));
    drop(guard);
    until(&parts, PartKind::Terminal, |part| part.is_none()).await;
    let guard = parts.guard(PartKind::Terminal, "two".into());
    let _ = std::thread::spawn(move || {
        let _guard = guard;
        panic!("a bug");
    })
    .join();
    until(&parts, PartKind::Terminal, |part| part.is_none()).await;
}

#[tokio::test]
async fn a_failed_log_is_reported_to_the_application() {
    let (application, parts) = parts().await;
    parts.start(PartKind::EventBus, None, std::future::pending);
    parts.start(PartKind::Log, None, || async { Err("its writer panicked".into()) });
    assert_eq!(application.next_failed().await.as_str(), "ada");
    // Ending parts that have ended already returns at once.
    parts.stop().await;
    assert!(parts.report().await.parts.is_empty());
}

#[tokio::test]
async fn ending_waits_for_parts_that_end_by_themselves_and_cancels_runs() {
    let (_application, parts) = parts().await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let finished = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&finished);
    parts.start(PartKind::Projector, None, move || {
        let (mut stopped, count) = (stopped.clone(), Arc::clone(&count));
        async move {
            let _ = stopped.wait_for(|stop| *stop).await;
            tokio::time::sleep(Duration::from_millis(30)).await;
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    });
    parts.start(PartKind::Run, None, std::future::pending);
    let _guard = parts.guard(PartKind::McpServer, "one".into());
    until(&parts, PartKind::Run, |part| part.is_some()).await;
    stop.send_replace(true);
    parts.stop().await;
    assert_eq!(finished.load(Ordering::Relaxed), 1);
}
