//! How many threads are worth having.

use std::collections::BTreeSet;
use std::path::Path;

/// How many threads the model may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// As many as there are cores without other work when the child starts, and at least one. Threads wait for each other
    /// after every step, so one on a busy core makes all of them slow.
    Free,
    Fixed(usize),
}

impl Threads {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Free => free(physical(), load()),
            Self::Fixed(count) => count.max(1),
        }
    }
}

fn free(cores: usize, load: f64) -> usize {
    cores.saturating_sub(load.max(0.0).round() as usize).max(1)
}

/// How many processes wanted a core over the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// Physical cores that this process may use: two threads of one core only take turns at its arithmetic.
pub fn physical() -> usize {
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
    fn busy_cores_are_left_to_others() {
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
        assert!(physical() >= 1);
    }
}
