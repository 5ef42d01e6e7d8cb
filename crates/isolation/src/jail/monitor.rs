//! Limits that no kernel mechanism enforces. The launcher checks them periodically and ends the cell when one is
//! exceeded.
//!
//! These are disk space that measuring a layer cannot find, because its files were deleted while still open; and,
//! without a memory control group, the memory of all processes together.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::JailPlan;
use crate::layer;
use crate::policy::Limit;

/// The minimum interval between checks; longer if a check takes long.
const MIN_INTERVAL: Duration = Duration::from_millis(250);
const MAX_INTERVAL: Duration = Duration::from_secs(5);
/// The file system type of an overlay.
const OVERLAY: u64 = 0x794c_7630;

pub(crate) struct LimitMonitor {
    disk: u64,
    /// Layers, with the free space of their disk at the start.
    layers: Vec<(PathBuf, u64)>,
    /// The memory limit, if no control group enforces it.
    memory: Option<u64>,
    next_check: Instant,
}

impl LimitMonitor {
    pub(crate) fn new(plan: &JailPlan) -> Self {
        let limits = &plan.policy.limits;
        let memory = (!plan.groups.memory).then_some(limits.memory);
        let layers = layer::uppers(&plan.policy)
            .into_iter()
            .map(|upper| (upper.clone(), free_bytes(&upper)))
            .collect();
        Self { disk: limits.disk, layers, memory, next_check: Instant::now() + MIN_INTERVAL }
    }

    /// The time until the next check.
    pub(crate) fn until_next_check(&self) -> Duration {
        self.next_check.saturating_duration_since(Instant::now())
    }

    /// The limit that the cell's processes have exceeded. `starter` is the parent of the cell's first process, if not
    /// this process.
    pub(crate) fn exceeded(&mut self, starter: Option<Pid>) -> Option<Limit> {
        if Instant::now() < self.next_check {
            return None;
        }
        let before = Instant::now();
        let inside =
            starter.map_or_else(|| fs::read_link("/proc/self/ns/pid_for_children").ok(), child_namespace);
        let processes = inside.map(|inside| processes(&inside)).unwrap_or_default();
        let deleted = deleted(&processes);
        // Other processes may have used the space, but they do not hide their descriptors.
        let hidden = deleted.are_some_hidden
            && self.layers.iter().any(|(upper, was)| was.saturating_sub(free_bytes(upper)) > self.disk);
        let exceeded = if deleted.bytes > self.disk || hidden {
            Some(Limit::Disk)
        } else {
            self.memory.filter(|most| memory(&processes, *most) > *most).map(|_| Limit::Memory)
        };
        self.next_check = Instant::now() + (before.elapsed() * 50).clamp(MIN_INTERVAL, MAX_INTERVAL);
        exceeded
    }
}

/// The pid namespace of a process's children, if it is not our own.
fn child_namespace(starter: Pid) -> Option<PathBuf> {
    let ours = fs::read_link("/proc/self/ns/pid").ok()?;
    let threads = entries(&Path::new("/proc").join(starter.as_raw_nonzero().to_string()).join("task"));
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.join("children")).ok()).collect::<String>();
    let children = lists.split_whitespace().map(|child| Path::new("/proc").join(child).join("ns/pid"));
    children.filter_map(|link| fs::read_link(link).ok()).find(|space| *space != ours)
}

/// The /proc folders of all processes in a pid namespace.
fn processes(inside: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = all.filter(|entry| entry.file_name().as_bytes().iter().all(u8::is_ascii_digit));
    let mine = numbered.map(|entry| entry.path());
    mine.filter(|path| fs::read_link(path.join("ns/pid")).is_ok_and(|space| space == inside)).collect()
}

/// Free bytes on a folder's disk.
fn free_bytes(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |found| found.f_bfree.saturating_mul(found.f_frsize))
}

/// Deleted files of layers that are still open.
struct DeletedFiles {
    bytes: u64,
    /// A process hides its open files.
    are_some_hidden: bool,
}

fn deleted(processes: &[PathBuf]) -> DeletedFiles {
    let mut seen = BTreeSet::new();
    let mut deleted = DeletedFiles { bytes: 0, are_some_hidden: false };
    // A thread can have a descriptor table of its own.
    let threads: Vec<PathBuf> = processes.iter().flat_map(|process| entries(&process.join("task"))).collect();
    deleted.are_some_hidden = threads.iter().any(|thread| hides_files(thread));
    for descriptor in threads.iter().flat_map(|thread| entries(&thread.join("fd"))) {
        let Ok(found) = fs::metadata(&descriptor) else { continue };
        if found.is_file()
            && found.nlink() == 0
            && seen.insert((found.dev(), found.ino()))
            && rustix::fs::statfs(&descriptor).is_ok_and(|system| u64::try_from(system.f_type) == Ok(OVERLAY))
        {
            deleted.bytes = deleted.bytes.saturating_add(found.blocks().saturating_mul(512));
        }
    }
    deleted
}

/// True for a live thread that hides its open files. A thread that has exited is unreadable to ordinary users as
/// well; it is recognised by having no memory. The cell init is unreadable too, and trusted.
fn hides_files(thread: &Path) -> bool {
    let closed = |e: std::io::Error| e.kind() == std::io::ErrorKind::PermissionDenied;
    let status = || fs::read_to_string(thread.join("status")).unwrap_or_default();
    let has_memory = || fs::read_to_string(thread.join("statm")).is_ok_and(|pages| !pages.starts_with("0 "));
    fs::read_dir(thread.join("fd")).is_err_and(closed) && has_memory() && !is_first(&status())
}

/// True for the first process of a pid namespace, by its /proc status.
fn is_first(status: &str) -> bool {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().next_back() == Some("1"))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Bytes of memory of all processes together, plus shared segments that none has attached. Shared memory must count
/// once, but that is slow to compute, so it is done only if the rough sum exceeds the limit.
fn memory(processes: &[PathBuf], most: u64) -> u64 {
    let segments = detached_segments(&fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default());
    let sum = |of: fn(&Path) -> u64| {
        processes.iter().map(|process| of(process)).fold(segments, u64::saturating_add)
    };
    let roughly = sum(|process| {
        let statm = fs::read_to_string(process.join("statm")).unwrap_or_default();
        let pages: Option<u64> = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        pages.unwrap_or_default().saturating_mul(rustix::param::page_size() as u64)
    });
    if roughly <= most {
        return roughly;
    }
    sum(|process| proportional_share(&fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default()))
}

/// A process's proportional share of memory, from `smaps_rollup`.
fn proportional_share(rollup: &str) -> u64 {
    let kilobytes = |name: &str| -> u64 {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or_default()
    };
    (kilobytes("Pss:") + kilobytes("SwapPss:")) << 10
}

/// Bytes in shared memory segments that no process has attached, from `/proc/sysvipc/shm`.
fn detached_segments(table: &str) -> u64 {
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let column = |name: &str| names.iter().position(|one| *one == name);
    let (Some(attached), Some(rss), Some(swap)) = (column("nattch"), column("rss"), column("swap")) else {
        return 0;
    };
    let segments = lines.map(|line| {
        let fields: Vec<u64> =
            line.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect();
        let at = |index: usize| fields.get(index).copied().unwrap_or_default();
        if at(attached) == 0 { at(rss).saturating_add(at(swap)) } else { 0 }
    });
    segments.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_is_recognised_by_its_inner_pid() {
        let status = |numbers: &str| format!("Name:\tcell\nNStgid:\t1\nNSpid:\t{numbers}\nNSpgid:\t0\n");
        assert!(is_first(&status("812\t1")) && is_first(&status("99\t812\t1")));
        assert!(!is_first(&status("1\t12")) && !is_first(&status("811\t11")) && !is_first(""));
    }

    #[test]
    fn memory_statistics_are_parsed() {
        let rollup = "5581 ---p [rollup]\nRss:  884 kB\nPss:                 385 kB\nPss_Dirty: 68 kB\nSwapPss:  15 kB\n";
        assert_eq!(proportional_share(rollup), 400 << 10);
        let table = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n\
                     0 1 1600 8388608 7 7 0 0 0 0 0 1 1 1 8192 100\n0 2 1600 8388608 7 7 1 0 0 0 0 1 1 1 4096 0\n";
        assert_eq!((detached_segments(table), detached_segments("")), (8292, 0));
    }
}
