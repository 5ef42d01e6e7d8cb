//! Chooses the number of threads.

use std::collections::BTreeSet;
use std::path::Path;

/// How many threads the model may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadCount {
    /// The number of idle cores when the child starts, at least one. The threads wait for each other after every
    /// step, so a single one on a busy core slows down all of them.
    Free,
    Fixed(usize),
}

impl ThreadCount {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Free => free(physical_cores(), load()),
            Self::Fixed(count) => count.max(1),
        }
    }
}

fn free(cores: usize, load: f64) -> usize {
    cores.saturating_sub(load.max(0.0).round() as usize).max(1)
}

/// The load average of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// Physical cores available to this process. Two hardware threads share the arithmetic units of their core, so only
/// one of them counts.
pub fn physical_cores() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, |count| count.get());
    cores_below(Path::new("/sys/devices/system/cpu")).map_or(allowed, |cores| cores.min(allowed)).max(1)
}

fn cores_below(folder: &Path) -> Option<usize> {
    let siblings = std::fs::read_dir(folder).ok()?.filter_map(|entry| {
        std::fs::read_to_string(entry.ok()?.path().join("topology/thread_siblings_list")).ok()
    });
    let cores: BTreeSet<String> = siblings.collect();
    (!cores.is_empty()).then_some(cores.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_cores_are_not_used() {
        for (cores, load, threads) in [(8, 0.2, 8), (8, 3.1, 5), (2, 0.9, 1), (2, 7.0, 1), (1, 0.0, 1)] {
            assert_eq!(free(cores, load), threads, "{cores} cores, load {load}");
        }
    }

    #[test]
    fn threads_of_one_core_count_once() {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, siblings) in [("cpu0", "0,2"), ("cpu1", "1,3"), ("cpu2", "0,2"), ("cpu3", "1,3")] {
            let topology = folder.path().join(cpu).join("topology");
            std::fs::create_dir_all(&topology).unwrap();
            std::fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        assert_eq!(cores_below(folder.path()), Some(2));
        assert_eq!(cores_below(&folder.path().join("nowhere")), None);
        assert!(physical_cores() >= 1);
    }
}
