//! Many writers, each of which waits for its answer before it asks again.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::figures::p99_ms;

/// The result of one round of a closed loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pub(super) per_second: f64,
    pub(super) p99_ms: f64,
}

/// Lets that many threads do the jobs `0..jobs`, each taking the next one as soon as its last is answered.
pub(super) fn closed_loop(
    writers: usize,
    jobs: usize,
    act: &(dyn Fn(usize) -> anyhow::Result<()> + Sync),
) -> anyhow::Result<Round> {
    let next = AtomicUsize::new(0);
    let start_line = Barrier::new(writers + 1);
    let work = || -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(jobs / writers * 2);
        start_line.wait();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return Ok(times);
            }
            let start = Instant::now();
            act(job)?;
            times.push(start.elapsed());
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|_| scope.spawn(work)).collect();
        start_line.wait();
        let start = Instant::now();
        let mut times = Vec::with_capacity(jobs);
        for thread in threads {
            let joined = thread.join().map_err(|_| anyhow::anyhow!("a writer of the benchmark panicked"))?;
            times.extend(joined?);
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(Round { per_second: jobs as f64 / seconds, p99_ms: p99_ms(times) })
    })
}
