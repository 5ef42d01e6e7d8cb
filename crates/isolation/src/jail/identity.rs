//! User ids of a cell. Inside, a command always runs as the same unprivileged user. Outside, that user is the one who
//! started the cell; if root did, it is an unprivileged uid that only this owner's cells have.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{DumpableBehavior, Gid, Signal, Uid, kill_process, set_dumpable_behavior};
use rustix::thread::{UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::JailPlan;
use crate::launch_report::{SetupError, step_failed};
use crate::policy::UID;
use crate::sys;

/// Namespaces that the launcher enters for every cell. The cell init enters the mount and cgroup namespaces, because
/// the launcher must still see the host's. The user namespace comes first or last, see [`enter_namespaces`].
const CELL_NAMESPACES: UnshareFlags =
    UnshareFlags::NEWPID.union(UnshareFlags::NEWNET).union(UnshareFlags::NEWIPC).union(UnshareFlags::NEWUTS);

/// The unprivileged uid of an owner: one of 2^30, above the range that people and packages use.
pub(crate) fn uid_of(owner: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in owner.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let folded = (hash ^ (hash >> 30)) & 0x3fff_ffff;
    0x4000_0000 | u32::try_from(folded).unwrap_or_default()
}

/// A user namespace for idmapped mounts that maps files owned by root to the cell's user; `None` if the cell's user
/// owns the files anyway.
pub(crate) fn owner_mapping(outside: Option<u32>) -> Result<Option<OwnedFd>, SetupError> {
    let step = "map the owners of files";
    let Some(outside) = outside else { return Ok(None) };
    let child = sys::hold_user_namespace().map_err(step_failed(step))?;
    let pid = child.as_raw_nonzero();
    let map = format!("0 {outside} 1");
    let opened = fs::write(format!("/proc/{pid}/uid_map"), &map)
        .and_then(|()| fs::write(format!("/proc/{pid}/gid_map"), &map))
        .and_then(|()| fs::File::open(format!("/proc/{pid}/ns/user")))
        .map_err(step_failed(step));
    // Not waited for: it is reaped together with the launcher.
    let _ = kill_process(child, Signal::KILL);
    opened.map(|file| Some(OwnedFd::from(file)))
}

/// Enters the cell's namespaces. For users other than root, that includes a user namespace, which grants the rights
/// to build the rest.
pub(super) fn enter_namespaces(outside: Option<u32>) -> Result<(), SetupError> {
    if outside.is_some() {
        return sys::unshare(CELL_NAMESPACES).map_err(step_failed("enter new namespaces"));
    }
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(CELL_NAMESPACES | UnshareFlags::NEWUSER).map_err(step_failed("enter new namespaces"))?;
    map(UID, uid.as_raw(), gid.as_raw())
}

/// Maps one user: `inside` in the namespace, `uid` and `gid` outside.
pub(crate) fn map(inside: u32, uid: u32, gid: u32) -> Result<(), SetupError> {
    let step = "map the user";
    fs::write("/proc/self/setgroups", "deny").map_err(step_failed(step))?;
    fs::write("/proc/self/uid_map", format!("{inside} {uid} 1")).map_err(step_failed(step))?;
    fs::write("/proc/self/gid_map", format!("{inside} {gid} 1")).map_err(step_failed(step))
}

/// Drops root for good.
pub(super) fn drop_root(plan: &JailPlan) -> Result<(), SetupError> {
    let step = "become an unprivileged user";
    let Some(outside) = plan.outside else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(outside), Gid::from_raw(outside));
    set_thread_groups(&[]).map_err(step_failed(step))?;
    set_thread_res_gid(gid, gid, gid).map_err(step_failed(step))?;
    set_thread_res_uid(uid, uid, uid).map_err(step_failed(step))?;
    // The kernel closes a process's /proc files when it changes user; make them accessible again.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(step_failed(step))?;
    sys::unshare(UnshareFlags::NEWUSER).map_err(step_failed("enter a new user namespace"))?;
    map(UID, outside, outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_have_distinct_uids_outside_the_usual_range() {
        let uids = ["local", "ada", "bob", "user-1", "user-2"].map(uid_of);
        let distinct: std::collections::BTreeSet<_> = uids.iter().collect();
        assert_eq!(distinct.len(), uids.len());
        assert!(uids.iter().all(|uid| (0x4000_0000..0x8000_0000).contains(uid)), "{uids:?}");
    }
}
