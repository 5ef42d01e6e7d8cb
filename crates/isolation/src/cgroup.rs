//! Control groups: limits on memory, processes and processors of a whole cell. The host plans them; the launcher
//! creates and removes them. Version 1, version 2 and a mixture are supported. Without control groups only
//! per-process limits apply, and `choir doctor` reports that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cell::Usage;
use crate::launch_report::{SetupError, step_failed};
use crate::policy::Limits;

/// Attempts to remove a group that has just become empty. After that the next start removes it.
const ATTEMPTS: u32 = 50;
/// The scheduling period, in microseconds.
const PERIOD: u64 = 100_000;
/// The name prefix of our groups, by which the next start recognises leftovers.
pub(crate) const PREFIX: &str = "choir-cell-";

/// Where groups can be created on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// One folder per controller.
    V1 {
        memory: Option<PathBuf>,
        pids: Option<PathBuf>,
        cpu: Option<PathBuf>,
    },
    /// One folder for all controllers that are delegated to us.
    V2 {
        folder: PathBuf,
    },
    None(String),
}

/// The groups of one cell.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Groups {
    /// Folders, each with the files to write and their contents.
    folders: Vec<(PathBuf, Vec<(String, String)>)>,
    /// True if they limit the memory of all processes together.
    pub(crate) memory: bool,
    version: Version,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Version {
    #[default]
    V1,
    V2,
}

impl Groups {
    /// True if the other groups have the same limits and differ only in name.
    pub(super) fn is_compatible(&self, other: &Self) -> bool {
        let same = |(one, other): (&(PathBuf, Vec<_>), &(PathBuf, Vec<_>))| {
            one.0.parent() == other.0.parent() && one.1 == other.1
        };
        self.folders.len() == other.folders.len() && self.folders.iter().zip(&other.folders).all(same)
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|(folder, _)| folder.clone()).collect()
    }

    /// The file to which a process writes to join a group.
    fn procs_file(&self) -> &'static str {
        match self.version {
            Version::V1 => "tasks",
            Version::V2 => "cgroup.procs",
        }
    }
}

impl Hierarchy {
    /// Reads this machine's configuration as seen by this process.
    pub(crate) fn find() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::read(&mounts, &membership)
    }

    fn read(mounts: &str, membership: &str) -> Self {
        let mounted = |wanted: &str, option: Option<&str>| {
            mounts.lines().find_map(|line| {
                let mut fields = line.split(' ').skip(1);
                let (folder, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
                let fits = kind == wanted && option.is_none_or(|o| options.split(',').any(|one| one == o));
                fits.then(|| PathBuf::from(folder))
            })
        };
        // `/proc/self/cgroup` has this process's path in each hierarchy.
        let path_in_hierarchy = |controller: &str| {
            membership.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let (names, path) = (fields.next()?, fields.next()?);
                names
                    .split(',')
                    .any(|name| name == controller)
                    .then(|| path.trim_start_matches('/').to_owned())
            })
        };
        let v1 = |controller: &str| {
            let folder = mounted("cgroup", Some(controller))?.join(path_in_hierarchy(controller)?);
            is_writable(&folder).then_some(folder)
        };
        let (memory, pids, cpu) = (v1("memory"), v1("pids"), v1("cpu"));
        if memory.is_some() || pids.is_some() {
            return Self::V1 { memory, pids, cpu };
        }
        let v2 = mounted("cgroup2", None).zip(path_in_hierarchy(""));
        let Some((mount, path)) = v2 else {
            return Self::None("no control groups are mounted".into());
        };
        let folder = mount.join(path);
        match prepare(&folder) {
            Ok(()) => Self::V2 { folder },
            Err(e) => Self::None(format!("{} is not ours to divide: {e}", folder.display())),
        }
    }

    pub(crate) fn groups(&self, name: &str, limits: &Limits) -> Groups {
        let quota = (u64::from(limits.cpu_percent) * PERIOD / 100).max(1_000);
        let name = format!("{PREFIX}{name}");
        let entry = |file: &str, value: String| (file.to_owned(), value);
        match self {
            Self::V1 { memory, pids, cpu } => {
                let mut folders = Vec::new();
                if let Some(folder) = memory {
                    let bytes = limits.memory.to_string();
                    let files = vec![
                        entry("memory.limit_in_bytes", bytes.clone()),
                        entry("?memory.memsw.limit_in_bytes", bytes),
                    ];
                    folders.push((folder.join(&name), files));
                }
                if let Some(folder) = pids {
                    folders.push((folder.join(&name), vec![entry("pids.max", limits.processes.to_string())]));
                }
                if let Some(folder) = cpu {
                    let files = vec![
                        entry("cpu.cfs_period_us", PERIOD.to_string()),
                        entry("cpu.cfs_quota_us", quota.to_string()),
                    ];
                    folders.push((folder.join(&name), files));
                }
                Groups { folders, memory: memory.is_some(), version: Version::V1 }
            }
            Self::V2 { folder } => {
                let files = vec![
                    entry("memory.max", limits.memory.to_string()),
                    entry("?memory.swap.max", "0".into()),
                    entry("?memory.oom.group", "1".into()),
                    entry("pids.max", limits.processes.to_string()),
                    entry("?cpu.max", format!("{quota} {PERIOD}")),
                ];
                Groups { folders: vec![(folder.join(&name), files)], memory: true, version: Version::V2 }
            }
            Self::None(_) => Groups::default(),
        }
    }

    /// Removes groups whose creator has exited. Groups that still hold a process stay.
    pub(crate) fn sweep(&self) {
        let folders: Vec<&PathBuf> = match self {
            Self::V1 { memory, pids, cpu } => [memory, pids, cpu].into_iter().flatten().collect(),
            Self::V2 { folder } => vec![folder],
            Self::None(_) => Vec::new(),
        };
        sweep_in(folders.into_iter().map(PathBuf::as_path));
    }
}

/// Removes unused groups in these folders.
pub(crate) fn sweep_in<'a>(folders: impl Iterator<Item = &'a Path>) {
    for entry in folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
        let name = entry.file_name();
        let creator = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        // The name holds the creator's pid; a live creator may be about to use the group.
        if creator.is_some_and(|creator| !Path::new("/proc").join(creator).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// In version 2 a group with subgroups must hold no process, so this process moves to a subgroup of its own.
fn prepare(folder: &Path) -> io::Result<()> {
    let wanted = ["memory", "pids"];
    let has = |file: &str| {
        fs::read_to_string(folder.join(file))
            .is_ok_and(|on| wanted.iter().all(|w| on.split_whitespace().any(|one| one == *w)))
    };
    if has("cgroup.subtree_control") && is_writable(folder) {
        return Ok(());
    }
    if !has("cgroup.controllers") {
        return Err(io::Error::other("it has no memory and pids controllers"));
    }
    let server_group = folder.join("choir-server");
    fs::create_dir_all(&server_group)?;
    fs::write(server_group.join("cgroup.procs"), "0")?;
    let enabled = fs::write(folder.join("cgroup.subtree_control"), "+memory +pids")
        .and_then(|()| fs::write(folder.join("cgroup.subtree_control"), "+cpu").or(Ok(())));
    if enabled.is_err() {
        let _ = fs::write(folder.join("cgroup.procs"), "0");
        let _ = fs::remove_dir(&server_group);
    }
    enabled
}

/// Groups that exist on disk.
pub(crate) struct CreatedGroups<'a>(pub(crate) &'a Groups);

pub(crate) fn make(groups: &Groups) -> Result<CreatedGroups<'_>, SetupError> {
    let made = CreatedGroups(groups);
    match create(groups) {
        Ok(()) => Ok(made),
        Err(failure) => {
            made.remove();
            Err(failure)
        }
    }
}

fn create(groups: &Groups) -> Result<(), SetupError> {
    for (folder, files) in &groups.folders {
        fs::create_dir(folder)
            .map_err(step_failed(format!("make the control group {}", folder.display())))?;
        for (file, value) in files {
            // A question mark marks a file that the kernel may lack.
            let (file, optional) = file.strip_prefix('?').map_or((file.as_str(), false), |file| (file, true));
            let written = fs::write(folder.join(file), value);
            if !optional {
                written.map_err(step_failed(format!("set {file}")))?;
            }
        }
    }
    Ok(())
}

impl CreatedGroups<'_> {
    /// Moves this single-threaded process into the groups. A thread that moves itself is fast; moving another process
    /// would wait for all processors.
    pub(crate) fn enter(&self) -> Result<(), SetupError> {
        for (folder, _) in &self.0.folders {
            fs::write(folder.join(self.0.procs_file()), "0")
                .map_err(step_failed("enter the control group"))?;
        }
        Ok(())
    }

    /// Moves this process back to the parent group; its children stay.
    pub(crate) fn leave(&self) -> Result<(), SetupError> {
        for parent in self.0.folders.iter().filter_map(|(folder, _)| folder.parent()) {
            fs::write(parent.join(self.0.procs_file()), "0")
                .map_err(step_failed("leave the control group"))?;
        }
        Ok(())
    }

    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for (folder, _) in &self.0.folders {
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
            usage.out_of_memory +=
                count(&read("memory.oom_control"), "oom_kill") + count(&read("memory.events"), "oom_kill");
            usage.out_of_processes += count(&read("pids.events"), "max");
            let peak = [read("memory.max_usage_in_bytes"), read("memory.peak")];
            let peak = peak.iter().filter_map(|text| text.trim().parse().ok()).max();
            usage.memory_peak = usage.memory_peak.max(peak.unwrap_or_default());
        }
        usage
    }

    pub(crate) fn remove(self) {
        self.0.folders.iter().for_each(|(folder, _)| remove(folder));
    }
}

/// Removes a group. It is busy for a moment after its last process has exited.
pub(crate) fn remove(folder: &Path) {
    for attempt in 1..=ATTEMPTS {
        match fs::remove_dir(folder) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_micros(200 * u64::from(attempt)));
            }
            Ok(()) | Err(_) => break,
        }
    }
}

fn count(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { memory: 1000, processes: 7, cpu_percent: 150, ..Limits::default() }
    }

    #[test]
    fn version_one_has_a_group_in_every_hierarchy_below_this_process() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().to_str().unwrap();
        fs::create_dir_all(format!("{base}/memory/mine")).unwrap();
        fs::create_dir_all(format!("{base}/pids")).unwrap();
        let mounts = format!(
            "cgroup {base}/memory cgroup rw,memory 0 0\ncgroup {base}/pids cgroup rw,pids 0 0\ncgroup2 {base}/two cgroup2 rw 0 0\n"
        );
        let found = Hierarchy::read(&mounts, "4:memory:/mine\n8:pids:/\n0::/\n");
        let groups = found.groups("a", &limits());
        assert!(groups.memory);
        let folders: Vec<_> =
            groups.folders.iter().map(|(folder, _)| folder.to_str().unwrap().to_owned()).collect();
        assert_eq!(
            folders,
            [format!("{base}/memory/mine/choir-cell-a"), format!("{base}/pids/choir-cell-a")]
        );
    }

    #[test]
    fn version_two_is_used_where_its_controllers_are_delegated() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("user/app");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cgroup.subtree_control"), "cpu memory pids").unwrap();
        let mounts = format!("cgroup2 {} cgroup2 rw 0 0\n", base.path().display());
        let found = Hierarchy::read(&mounts, "0::/user/app\n");
        assert_eq!(found, Hierarchy::V2 { folder: folder.clone() });
        let groups = found.groups("b", &limits());
        let (at, files) = &groups.folders[0];
        assert_eq!(*at, folder.join("choir-cell-b"));
        assert!(files.contains(&("?cpu.max".into(), "150000 100000".into())), "{files:?}");
    }

    #[test]
    fn a_machine_without_control_groups_reports_why() {
        let base = tempfile::tempdir().unwrap();
        let mounts = format!("cgroup2 {} cgroup2 rw 0 0\n", base.path().display());
        for (mounts, why) in [("", "mounted"), (mounts.as_str(), "controllers")] {
            let found = Hierarchy::read(mounts, "0::/\n");
            assert!(matches!(&found, Hierarchy::None(reason) if reason.contains(why)), "{found:?}");
        }
    }

    #[test]
    fn counters_are_read_among_other_lines() {
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), 3);
        assert_eq!(count("max 12\n", "max"), 12);
        assert_eq!(count("", "max"), 0);
    }
}
