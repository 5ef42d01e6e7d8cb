//! Enforces the limits that the kernel does not: time, and disk use. Each command has a watch thread of its own,
//! because a slow consumer of its output must not give a command extra time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cell::Status;
use crate::layer::{self, RESERVE};
use crate::policy::{Access, Limit, Limits, Policy};

/// The interval between checks: at least this, longer if a check is slow or much space is free.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(2);
/// The most bytes and files that a disk can take per millisecond.
const MAX_WRITE_RATE: FreeSpace = FreeSpace { bytes: 4 << 20, files: 200 };
/// A disk with fewer free inodes than this counts as full.
const FILE_RESERVE: u64 = 16 << 10;

/// Which time limit applies to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    Policy,
    /// None: the command is interactive.
    Unlimited,
}

/// A command under watch, and how it ended.
pub(crate) struct LimitWatch {
    check: Mutex<LimitCheck>,
    ended: Mutex<Option<Status>>,
    changed: Condvar,
}

impl LimitWatch {
    pub(crate) fn new(policy: &Policy, time_limit: TimeLimit) -> Arc<Self> {
        let check = Mutex::new(LimitCheck::new(policy, time_limit));
        Arc::new(Self { check, ended: Mutex::default(), changed: Condvar::new() })
    }

    /// Checks the limits until the command has ended, and calls `close` if it exceeds one.
    pub(crate) fn start(self: &Arc<Self>, close: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let own = Arc::clone(self);
        let watch = move || {
            let limit = loop {
                let pause = own.check().until_next_check();
                if own.has_ended_within(pause) {
                    return;
                }
                let mut check = own.check();
                // The watch may have been released while this thread slept.
                if own.ended().is_some() {
                    return;
                }
                if let Some(limit) = check.exceeded() {
                    break limit;
                }
            };
            if own.end(Status::Limited(limit)) {
                close();
            }
        };
        std::thread::Builder::new().name("cell watch".into()).spawn(watch).map(drop)
    }

    /// Records that the command exited by itself, or the disk limit that it exceeded.
    pub(crate) fn finish(&self, status: Status) {
        let check = self.check();
        self.end(check.exceeded_disk_limit().map_or(status, Status::Limited));
    }

    /// Records how the command ended, unless that is already recorded.
    pub(crate) fn end(&self, status: Status) -> bool {
        let mut ended = self.ended();
        let is_first = ended.is_none();
        ended.get_or_insert(status);
        self.changed.notify_all();
        is_first
    }

    pub(crate) fn wait(&self) -> Status {
        let waited = self.changed.wait_while(self.ended(), |ended| ended.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).unwrap_or(Status::Stopped)
    }

    /// Ends the watch. A check changes permissions of the command's folders, so wait for one in progress.
    pub(crate) fn release(&self) {
        self.end(Status::Stopped);
        drop(self.check());
    }

    fn check(&self) -> MutexGuard<'_, LimitCheck> {
        self.check.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> MutexGuard<'_, Option<Status>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_ended_within(&self, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else {
            self.wait();
            return true;
        };
        let waited = self.changed.wait_timeout_while(self.ended(), pause, |ended| ended.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
    }
}

struct LimitCheck {
    limits: Limits,
    deadline: Option<Instant>,
    uppers: Vec<PathBuf>,
    /// Folders that are written to directly, with the free space at the start.
    direct: Vec<(PathBuf, FreeSpace)>,
    next_check: Instant,
}

impl LimitCheck {
    fn new(policy: &Policy, time_limit: TimeLimit) -> Self {
        let now = Instant::now();
        let deadline = match time_limit {
            TimeLimit::Policy => now.checked_add(policy.limits.time),
            TimeLimit::Unlimited => None,
        };
        let direct = policy.mounts.iter().filter(|mount| mount.access == Access::Direct);
        let direct = direct.filter_map(|mount| Some((mount.source.clone(), free_space(&mount.source).ok()?)));
        Self {
            limits: policy.limits,
            deadline,
            uppers: layer::uppers(policy),
            direct: direct.collect(),
            next_check: now + MIN_INTERVAL,
        }
    }

    /// The time until the next check; `None` if there is nothing to check.
    fn until_next_check(&self) -> Option<Duration> {
        let has_folders = !self.uppers.is_empty() || !self.direct.is_empty();
        let next = has_folders.then_some(self.next_check).into_iter().chain(self.deadline).min();
        next.map(|next| next.saturating_duration_since(Instant::now()))
    }

    fn exceeded(&mut self) -> Option<Limit> {
        let before = Instant::now();
        if self.deadline.is_some_and(|deadline| deadline <= before) {
            return Some(Limit::Time);
        }
        if before < self.next_check {
            return None;
        }
        let exceeded = self.exceeded_disk_limit();
        // Bound the cost of checking, but also the time that a command gains by making checks slow.
        let interval = if self.uppers.is_empty() { self.safe_interval() } else { before.elapsed() * 20 };
        self.next_check = Instant::now() + interval.clamp(MIN_INTERVAL, MAX_INTERVAL);
        exceeded
    }

    /// The disk limit that is exceeded now, if any.
    fn exceeded_disk_limit(&self) -> Option<Limit> {
        let used = layer::measure(&self.uppers, self.limits.disk, self.limits.files);
        match used {
            Ok(used) if used.bytes > self.limits.disk || used.is_disk_full => Some(Limit::Disk),
            Ok(used) if used.files > self.limits.files || used.is_too_deep => Some(Limit::Files),
            Ok(_) => self.direct.iter().find_map(|(folder, was)| was.exhausted_at(free_space(folder).ok()?)),
            // A layer that cannot be measured cannot be bounded.
            Err(_) => Some(Limit::Disk),
        }
    }

    /// A time in which no disk can fill up.
    fn safe_interval(&self) -> Duration {
        let rooms = self.direct.iter().filter_map(|(folder, _)| free_space(folder).ok());
        Duration::from_millis(rooms.map(FreeSpace::millis_to_fill).min().unwrap_or_default())
    }
}

/// The free space of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FreeSpace {
    bytes: u64,
    files: u64,
}

impl FreeSpace {
    /// The limit that was exceeded since `self` was measured. Other processes use the disk too, so a cell is ended
    /// only when the disk is full and the cell may have filled it. A disk that was already full does not prevent
    /// cleaning up.
    fn exhausted_at(self, now: Self) -> Option<Limit> {
        let short = |was: u64, now: u64, reserve: u64| now < reserve && was.saturating_sub(now) > reserve / 4;
        if short(self.bytes, now.bytes, RESERVE) {
            return Some(Limit::Disk);
        }
        short(self.files, now.files, FILE_RESERVE).then_some(Limit::Files)
    }

    fn millis_to_fill(self) -> u64 {
        let bytes = self.bytes.saturating_sub(RESERVE) / MAX_WRITE_RATE.bytes;
        bytes.min(self.files.saturating_sub(FILE_RESERVE) / MAX_WRITE_RATE.files)
    }
}

fn free_space(folder: &Path) -> io::Result<FreeSpace> {
    let found = rustix::fs::statvfs(folder)?;
    // A file system that does not count inodes has no limit on them.
    let files = if found.f_files == 0 { u64::MAX } else { found.f_favail };
    Ok(FreeSpace { bytes: found.f_bavail.saturating_mul(found.f_frsize), files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fills_up_is_reported_but_not_one_that_was_already_full() {
        let (plenty, mebibyte) = (u64::MAX, 1 << 20);
        let free_space = |mebibytes: u64, files: u64| FreeSpace { bytes: mebibytes * mebibyte, files };
        for (was, now, wanted) in [
            (free_space(9_000, plenty), free_space(300, plenty), None),
            (free_space(9_000, plenty), free_space(200, plenty), Some(Limit::Disk)),
            (free_space(200, plenty), free_space(190, plenty), None),
            (free_space(200, plenty), free_space(100, plenty), Some(Limit::Disk)),
            (free_space(9_000, 100_000), free_space(9_000, 10_000), Some(Limit::Files)),
            (free_space(9_000, 10_000), free_space(9_000, 9_000), None),
        ] {
            assert_eq!(was.exhausted_at(now), wanted, "{was:?} {now:?}");
        }
    }
}
