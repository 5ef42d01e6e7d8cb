//! The last isolation steps, for a process that already has its own root: resource limits, no capabilities, landlock,
//! and the system call filter. Afterwards the process cannot gain any privilege.

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::JailPlan;
use super::syscalls;
use crate::launch_report::{SetupError, step_failed};
use crate::policy::{Access, HOME, Policy};

/// Folders that are writable in every cell, in addition to the policy's.
const WRITABLE: [&str; 4] = ["/tmp", "/var/tmp", HOME, "/dev"];

/// Inotify instances per cell; the usual default per user is 128.
const INOTIFY_INSTANCES: u64 = 32;
/// The inotify watches to assume if the kernel does not report a maximum.
const DEFAULT_INOTIFY_WATCHES: u64 = 8192;

pub(crate) fn confine(plan: &JailPlan) -> Result<(), SetupError> {
    let policy = &plan.policy;
    rlimits(plan)?;
    bound_user()?;
    rustix::thread::set_no_new_privs(true).map_err(step_failed("disable new privileges"))?;
    landlock(policy)?;
    // Commands run as the same user, so close the cell init's memory to them.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(step_failed("close the cell init's memory"))?;
    syscalls::apply(plan.groups.memory).map_err(step_failed("apply the list of system calls"))
}

/// Limits what the cell's user can use and do. Calling it twice is harmless.
pub(crate) fn bound_user() -> Result<(), SetupError> {
    bound_user_resources();
    capabilities()
}

fn rlimits(plan: &JailPlan) -> Result<(), SetupError> {
    let limits = &plan.policy.limits;
    // A control group limits all processes together, which is better than each alone.
    let memory = if plan.groups.memory { u64::MAX } else { limits.memory };
    let wanted = [
        // A core limit of 0 would still run the host's crash handler; 1 byte disables it.
        (Resource::Core, 1),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, u64::from(limits.processes)),
        (Resource::Fsize, limits.disk),
        (Resource::Memlock, 64 << 20),
        (Resource::Rtprio, 0),
        (Resource::Nice, 0),
        (Resource::Data, memory),
    ];
    for (resource, most) in wanted {
        // Any process can lower a limit, and none here can raise it.
        let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
        if most == u64::MAX {
            continue;
        }
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(step_failed(format!("set the limit {resource:?}")))?;
    }
    Ok(())
}

/// Limits resources that the kernel counts per user, who may be the server's own user. A kernel without these
/// settings has nothing to limit.
fn bound_user_resources() {
    let watches = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok();
    let watches: Option<u64> = watches.and_then(|text| text.trim().parse().ok());
    let bounds = [
        ("max_inotify_instances", INOTIFY_INSTANCES),
        ("max_inotify_watches", watches.unwrap_or(DEFAULT_INOTIFY_WATCHES) / 2),
        // Defence in depth behind the system call filter.
        ("max_user_namespaces", 0),
        ("max_mnt_namespaces", 0),
        ("max_net_namespaces", 0),
        ("max_pid_namespaces", 0),
    ];
    for (name, most) in bounds {
        let _ = std::fs::write(std::path::Path::new("/proc/sys/user").join(name), most.to_string());
    }
}

fn capabilities() -> Result<(), SetupError> {
    let step = "drop capabilities";
    for bit in 0..=63u32 {
        // Stop after the last capability that this kernel knows.
        let known = CapabilitySet::from_bits_retain(1 << bit);
        if rustix::thread::remove_capability_from_bounding_set(known).is_err() {
            break;
        }
    }
    let none = CapabilitySet::empty();
    let _ = rustix::thread::clear_ambient_capability_set();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).map_err(step_failed(step))
}

fn landlock(policy: &Policy) -> Result<(), SetupError> {
    let step = "apply landlock";
    let abi = ABI::V6;
    let (all, read) = (AccessFs::from_all(abi), AccessFs::from_read(abi));
    let root = PathFd::new("/").map_err(step_failed(step))?;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|rules| rules.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rule(PathBeneath::new(root, read)))
        .map_err(step_failed(step))?;
    let given = policy.mounts.iter().filter(|mount| mount.access != Access::ReadOnly);
    let writable = WRITABLE.iter().map(std::path::Path::new).chain(given.map(|mount| mount.target.as_path()));
    for path in writable {
        let Ok(fd) = PathFd::new(path) else { continue };
        rules = rules.add_rule(PathBeneath::new(fd, all)).map_err(step_failed(step))?;
    }
    let applied = rules.restrict_self().map_err(step_failed(step))?;
    if applied.ruleset == RulesetStatus::NotEnforced {
        return Err(step_failed(step)("this kernel has no landlock"));
    }
    Ok(())
}
