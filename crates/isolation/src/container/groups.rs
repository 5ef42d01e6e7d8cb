//! A container's control groups. The runtime creates one in every hierarchy, or uses those that we created. Usage is
//! read before they are removed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::runtime::Runtime;
use crate::cgroup::{self, Hierarchy, PREFIX};

/// Where pure version 2 is mounted; runtimes look nowhere else.
const UNIFIED: &str = "/sys/fs/cgroup";

/// The control groups of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GroupPaths {
    /// The path for the runtime; `None` where no groups can be created.
    pub(super) path: Option<String>,
    /// All folders that may exist for it.
    pub(super) folders: Vec<PathBuf>,
    /// True if the launcher creates them and starts the runtime inside.
    pub(super) are_ours: bool,
}

impl GroupPaths {
    pub(super) fn of(hierarchy: &Hierarchy, name: &str, runtime: &Runtime) -> Self {
        let name = format!("{PREFIX}{name}");
        match hierarchy {
            // crun refuses to create groups where version 2 is mounted beside version 1 and has a controller.
            Hierarchy::V1 { .. } if runtime.is_crun() => Self {
                folders: parents().into_iter().map(|folder| folder.join(&name)).collect(),
                path: None,
                are_ours: true,
            },
            // A name without a slash is relative to the runtime's own groups, like ours.
            Hierarchy::V1 { .. } => Self {
                folders: parents().into_iter().map(|folder| folder.join(&name)).collect(),
                path: Some(name),
                are_ours: false,
            },
            Hierarchy::V2 { folder } => {
                let folder = folder.join(name);
                let below = folder.strip_prefix(UNIFIED).ok().map(|below| format!("/{}", below.display()));
                Self { folders: below.iter().map(|_| folder.clone()).collect(), path: below, are_ours: false }
            }
            Hierarchy::None(_) => Self::default(),
        }
    }

    pub(super) fn remove(&self) {
        self.folders.iter().for_each(|folder| cgroup::remove(folder));
    }
}

/// Removes groups whose creator has exited.
pub(super) fn sweep(hierarchy: &Hierarchy) {
    hierarchy.sweep();
    cgroup::sweep_in(parents().iter().map(PathBuf::as_path));
}

/// This process's group in every hierarchy.
fn parents() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    read(&mounts, &membership)
}

fn read(mounts: &str, membership: &str) -> Vec<PathBuf> {
    let mounted = |controllers: &str| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (folder, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            let has = |one: &str| options.split(',').any(|option| option == one);
            let fits = match controllers {
                "" => kind == "cgroup2",
                some => kind == "cgroup" && some.split(',').all(has),
            };
            fits.then(|| Path::new(folder))
        })
    };
    let places = membership.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        Some(mounted(controllers)?.join(path.trim_start_matches('/')))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hierarchy_has_its_own_path() {
        let mounts = "cgroup /c/cpu cgroup rw,cpu,cpuacct 0 0\ncgroup /c/systemd cgroup rw,name=systemd 0 0\n\
                      cgroup2 /c/unified cgroup2 rw 0 0\n";
        let found = read(mounts, "3:cpu,cpuacct:/mine\n2:name=systemd:/\n7:pids:/unmounted\n0::/\n");
        let wanted = ["/c/cpu/mine", "/c/systemd/", "/c/unified/"].map(PathBuf::from);
        assert_eq!(found, wanted);
    }

    #[test]
    fn pure_version_two_paths_are_relative_to_its_root() {
        let runtime = Runtime { path: "/usr/bin/crun".into() };
        let two = Hierarchy::V2 { folder: "/sys/fs/cgroup/user/app".into() };
        let group_paths = GroupPaths::of(&two, "1-2", &runtime);
        assert_eq!(group_paths.path.as_deref(), Some("/user/app/choir-cell-1-2"));
        assert_eq!(group_paths.folders, [PathBuf::from("/sys/fs/cgroup/user/app/choir-cell-1-2")]);
    }
}
