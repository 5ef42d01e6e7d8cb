//! Waits that end: whatever stands still is told with what it stands at.

use std::fmt::Write;
use std::process::{Child, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Nothing here takes nearly as long, on any machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(1);

/// A process that is not left behind.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Waits until it ends by itself.
    pub(crate) fn end(mut self) -> Result<ExitStatus> {
        let since = Instant::now();
        loop {
            if let Some(ended) = self.0.try_wait()? {
                return Ok(ended);
            }
            if since.elapsed() > LIMIT {
                bail!("it does not end: {}", self.what_it_does());
            }
            std::thread::sleep(GLANCE);
        }
    }

    pub(crate) fn kill(mut self) -> Result<()> {
        self.0.kill()?;
        self.end().map(drop)
    }

    /// What each of its threads waits for, as the kernel tells it.
    pub(crate) fn what_it_does(&self) -> String {
        let mut told = format!("process {}", self.0.id());
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id()));
        for thread in threads.into_iter().flatten().flatten() {
            let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let _ = write!(
                told,
                "; {} in {} ({})",
                read("comm").trim(),
                read("wchan").trim(),
                read("syscall").trim()
            );
        }
        told
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that the kernel does not let go of is not waited for.
        let _ = self.0.kill();
        let since = Instant::now();
        while self.0.try_wait().is_ok_and(|ended| ended.is_none()) && since.elapsed() < GRACE {
            std::thread::sleep(GLANCE);
        }
    }
}

/// What a thread comes to.
pub(crate) fn in_time<T>(thread: JoinHandle<T>) -> Result<T> {
    let since = Instant::now();
    while !thread.is_finished() {
        if since.elapsed() > LIMIT {
            bail!("it waits for an answer that does not come");
        }
        std::thread::sleep(GLANCE);
    }
    match thread.join() {
        Ok(value) => Ok(value),
        Err(_) => bail!("it broke down"),
    }
}
