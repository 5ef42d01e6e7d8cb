//! The OCI bundle: a root file system, the policy's folders, our program, and `config.json`. It exists in memory, in
//! the launcher's own mount namespace, and never on disk.

use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::chdir;
use serde_json::{Value, json};

use super::{ContainerPlan, program};
use crate::jail::host::tmpfs_limit;
use crate::jail::root::{attach, etc, folder, inside, memory, names, programs};
use crate::launch_report::{SetupError, step_failed};
use crate::policy::{Access, HOME, Image, Limits, Mount, Policy};
use crate::sys::{self, Bind};

/// Paths in `/proc` that would reveal details of the machine.
const MASKED: [&str; 9] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
];
/// All of /proc/sys except `user`, where the cell init limits per-user resources.
const READ_ONLY: [&str; 12] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sysrq-trigger",
    "/proc/sys/abi",
    "/proc/sys/crypto",
    "/proc/sys/debug",
    "/proc/sys/dev",
    "/proc/sys/fs",
    "/proc/sys/kernel",
    "/proc/sys/net",
    "/proc/sys/vm",
];
/// The scheduling period, in microseconds.
const PERIOD: u64 = 100_000;

/// Builds the bundle, and makes it the working folder.
pub(super) fn build(plan: &ContainerPlan, owners: Option<BorrowedFd<'_>>) -> Result<(), SetupError> {
    let (policy, bundle) = (&plan.jail_plan.policy, &plan.bundle);
    let unshared = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", unshared).map_err(step_failed("make mounts private"))?;
    memory(bundle, "mode=755,size=512m,nr_inodes=16k", MountFlags::NOSUID | MountFlags::NODEV)?;
    chdir(bundle).map_err(step_failed("enter the bundle"))?;
    folder("image")?;
    match &policy.image {
        Image::Host { .. } => host_root(bundle, policy)?,
        Image::Rootfs(base) => image_root(bundle, base, policy)?,
        Image::OciLayout(_) => return Err(step_failed("mount the image")("it was not unpacked")),
    }
    for (index, given) in policy.mounts.iter().enumerate() {
        attach(&Mount { target: mounted(Path::new("/"), index), ..given.clone() }, index, owners)?;
    }
    let arguments = program::mount_program(Path::new("program"))?;
    make_read_only("program")?;
    let config =
        serde_json::to_vec(&config(plan, &arguments)).map_err(step_failed("write the configuration"))?;
    fs::write("config.json", config).map_err(step_failed("write the configuration"))
}

/// Where a folder of the policy is mounted for the runtime.
fn mounted(bundle: &Path, index: usize) -> PathBuf {
    bundle.join("mounts").join(index.to_string())
}

/// A root file system with this machine's programs.
fn host_root(bundle: &Path, policy: &Policy) -> Result<(), SetupError> {
    chdir("image").map_err(step_failed("enter the image"))?;
    programs(&policy.image)?;
    mount_points(policy)?;
    etc()?;
    chdir(bundle).map_err(step_failed("enter the bundle"))?;
    make_read_only("image")
}

/// Makes a folder of the bundle a read-only mount, including the mounts inside it. A runtime asked to do so would
/// lose the other flags.
fn make_read_only(path: &str) -> Result<(), SetupError> {
    let path = Path::new(path);
    let bind =
        Bind { source: path, target: path, read_only: true, devices: false, recursive: true, owners: None };
    sys::bind(bind).map_err(step_failed(format!("make the bundle's {} read-only", path.display())))
}

/// A root file system from an image: an overlay of the mount points we need over the image's folder, all read-only.
fn image_root(bundle: &Path, base: &Path, policy: &Policy) -> Result<(), SetupError> {
    folder("mount_points")?;
    folder("base")?;
    chdir("mount_points").map_err(step_failed("enter the image"))?;
    mount_points(policy)?;
    names()?;
    // An image could use this file to load code into the cell init before its isolation is complete.
    fs::write("etc/ld.so.preload", "").map_err(step_failed("write /etc"))?;
    chdir(bundle).map_err(step_failed("enter the bundle"))?;
    let bind = Bind {
        source: base,
        target: Path::new("base"),
        read_only: true,
        devices: false,
        recursive: false,
        owners: None,
    };
    sys::bind(bind).map_err(step_failed(format!("mount {}", base.display())))?;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", "image", "overlay", flags, c"lowerdir=mount_points:base")
        .map_err(step_failed("lay out the image"))
}

/// Creates the mount points. In an image they could be symbolic links that lead elsewhere.
fn mount_points(policy: &Policy) -> Result<(), SetupError> {
    for name in ["dev", "mnt", "proc", "run", "sys", "tmp", "var/tmp"] {
        folder(name)?;
    }
    folder(inside(Path::new(HOME))?)?;
    folder(inside(Path::new(program::FOLDER))?)?;
    policy.mounts.iter().try_for_each(|given| folder(inside(&given.target)?))
}

fn config(plan: &ContainerPlan, arguments: &[String]) -> Value {
    let policy = &plan.jail_plan.policy;
    // Cells started by root run as an unprivileged user; otherwise uid 0 is mapped to the starting user.
    let user = plan.jail_plan.outside.unwrap_or_default();
    // Without this capability, which has no effect outside the launcher's namespace, an unprivileged user's cell init
    // could not map itself to a non-root user. It drops the capability there with all others.
    let kept = json!(if plan.jail_plan.outside.is_some() { &[][..] } else { &["CAP_SETFCAP"][..] });
    let capabilities = json!({ "bounding": kept, "permitted": kept, "effective": kept });
    // The cell init enters the user namespace itself, and the launcher enters the IPC namespace.
    let namespaces = ["pid", "network", "uts", "mount", "cgroup"].map(|kind| json!({ "type": kind }));
    let mut linux = json!({
        "namespaces": namespaces,
        "maskedPaths": MASKED,
        "readonlyPaths": READ_ONLY,
    });
    if let Some(path) = &plan.group_paths.path {
        linux["cgroupsPath"] = json!(path);
        linux["resources"] = resources(&policy.limits, has_swap());
    }
    let mut config = json!({
        "ociVersion": "1.0.2",
        "hostname": "cell",
        // The mount is already read-only.
        "root": { "path": "image", "readonly": false },
        "process": {
            "terminal": false,
            "user": { "uid": user, "gid": user },
            "args": arguments,
            "env": [],
            "cwd": "/",
            "capabilities": capabilities,
            "noNewPrivileges": true,
        },
        "mounts": mounts(plan, user),
        "linux": linux,
    });
    if plan.runtime.is_crun() {
        config["hooks"] = json!({ "createContainer": [remount_read_only_hook(&plan.bundle)] });
    }
    config
}

/// crun makes the root writable again when it takes it over, so a hook makes it read-only before anything runs. The
/// hook must read its input: crun treats an earlier exit as a failure.
fn remount_read_only_hook(bundle: &Path) -> Value {
    let script = "cat > /dev/null && exec mount -o remount,bind,ro,nosuid,nodev \"$1\"";
    let path = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"];
    json!({ "path": "/bin/sh", "args": ["sh", "-c", script, "sh", bundle.join("image")], "env": path })
}

fn mounts(plan: &ContainerPlan, user: u32) -> Vec<Value> {
    let (policy, bundle) = (&plan.jail_plan.policy, &plan.bundle);
    let mount = |kind: &str, target: &Path, options: &[&str]| json!({ "type": kind, "source": kind, "destination": target, "options": options });
    // Mounts in the bundle already have the right flags. runc keeps them; crun needs them repeated.
    let flags = |is_read_only: bool| match (plan.runtime.is_crun(), is_read_only) {
        (false, _) => &["rbind"][..],
        (true, false) => &["rbind", "nosuid", "nodev"],
        (true, true) => &["rbind", "nosuid", "nodev", "ro"],
    };
    let bind = |source: PathBuf, target: &Path, is_read_only| json!({ "type": "bind", "source": source, "destination": target, "options": flags(is_read_only) });
    let size = format!("size={}", tmpfs_limit(&policy.limits, &plan.jail_plan.groups));
    let count = format!("nr_inodes={}", policy.limits.files);
    let (uid, gid) = (format!("uid={user}"), format!("gid={user}"));
    let shared = ["nosuid", "nodev", "mode=1777", &size, &count];
    let home = ["nosuid", "nodev", "mode=700", &size, &count, &uid, &gid];
    let terminals = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"];
    let mut mounts = vec![
        mount("proc", Path::new("/proc"), &["nosuid", "noexec", "nodev"]),
        // The runtime creates the usual devices in it and then makes it read-only.
        mount("tmpfs", Path::new("/dev"), &["nosuid", "mode=755", "size=64k", "ro"]),
        mount("devpts", Path::new("/dev/pts"), &terminals),
        mount("tmpfs", Path::new("/dev/shm"), &shared),
        mount("tmpfs", Path::new("/tmp"), &shared),
        mount("tmpfs", Path::new(HOME), &home),
        bind(bundle.join("program"), Path::new(program::FOLDER), true),
    ];
    let given = policy.mounts.iter().enumerate();
    mounts.extend(
        given.map(|(index, given)| {
            bind(mounted(bundle, index), &given.target, given.access == Access::ReadOnly)
        }),
    );
    mounts
}

fn resources(limits: &Limits, swap: bool) -> Value {
    let quota = (u64::from(limits.cpu_percent) * PERIOD / 100).max(1_000);
    let mut memory = json!({ "limit": limits.memory });
    if swap {
        // The limit covers memory and swap together.
        memory["swap"] = json!(limits.memory);
    }
    json!({
        "memory": memory,
        "pids": { "limit": limits.processes },
        "cpu": { "quota": quota, "period": PERIOD },
        "devices": [{ "allow": false, "access": "rwm" }],
    })
}

/// A kernel without swap may reject a swap limit.
fn has_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}
