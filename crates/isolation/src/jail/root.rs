//! The root file system of a cell: built from scratch, with read-only programs, a few devices, empty in-memory
//! folders, and the policy's mounts. Afterwards the host's root is unreachable.

use std::fs::{self, Permissions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};

use super::RootSpec;
use crate::launch_report::{SetupError, step_failed};
use crate::policy::{Access, HOME, Image, Mount, UID};
use crate::sys::{self, Bind};

/// Folders of the host that hold its programs; missing ones are skipped.
const SYSTEM: [&str; 9] = ["usr", "bin", "sbin", "lib", "lib64", "lib32", "libx32", "opt", "nix"];
/// The parts of `/etc` that programs need. The rest is not shown.
const ETC: [&str; 9] = [
    "alternatives",
    "ssl",
    "pki",
    "ca-certificates",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Where the new root is mounted until `pivot_root`: a folder that exists on every machine and that no cell needs
/// from the host.
const BUILT_AT: &str = "/proc";

/// Builds the part that all cells of this kind share, and makes it the working folder. The host's root is still
/// visible.
pub(super) fn build(base: &RootSpec) -> Result<(), SetupError> {
    let unshared = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", unshared).map_err(step_failed("make mounts private"))?;
    let root = Path::new(BUILT_AT);
    memory(root, "mode=755,size=1m,nr_inodes=4k", MountFlags::NOSUID | MountFlags::NODEV)?;
    rustix::process::chdir(root).map_err(step_failed("enter the new root"))?;
    programs(&base.image)?;
    devices()?;
    folder("proc")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "proc", "proc", flags, None).map_err(step_failed("mount /proc"))?;
    let bounds = format!("size={},nr_inodes={}", base.tmpfs_limit, base.files);
    let options = format!("mode=1777,{bounds}");
    for path in ["tmp", "dev/shm"] {
        folder(path)?;
        memory(Path::new(path), &options, MountFlags::NOSUID | MountFlags::NODEV)?;
    }
    for path in ["run", "var/tmp", "sys", "mnt"] {
        folder(path)?;
    }
    fs::set_permissions("var/tmp", Permissions::from_mode(0o1777)).map_err(step_failed("open /var/tmp"))?;
    let owner = base.outside.unwrap_or(UID);
    let options = format!("mode=700,uid={owner},gid={owner},{bounds}");
    let home = inside(Path::new(HOME))?;
    folder(&home)?;
    memory(&home, &options, MountFlags::NOSUID | MountFlags::NODEV)?;
    etc()
}

/// Mounts the policy's folders in the new root, and makes it the only root.
pub(super) fn enter(mounts: &[Mount], owners: Option<BorrowedFd<'_>>) -> Result<(), SetupError> {
    for (index, given) in mounts.iter().enumerate() {
        attach(given, index, owners)?;
    }
    rustix::process::pivot_root(".", ".").map_err(step_failed("enter the new root"))?;
    unmount(".", UnmountFlags::DETACH).map_err(step_failed("leave the old root"))?;
    rustix::process::chdir("/").map_err(step_failed("enter the new root"))?;
    // Make the new root read-only.
    rustix::mount::mount_remount(
        "/",
        MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV,
        "",
    )
    .map_err(step_failed("make the new root read-only"))
}

/// Mounts a tmpfs.
pub(crate) fn memory(path: &Path, options: &str, flags: MountFlags) -> Result<(), SetupError> {
    let options = std::ffi::CString::new(options).map_err(step_failed("mount memory"))?;
    mount("tmpfs", path, "tmpfs", flags, options.as_c_str())
        .map_err(step_failed(format!("mount memory at {}", path.display())))
}

pub(crate) fn folder(path: impl AsRef<Path>) -> Result<(), SetupError> {
    let path = path.as_ref();
    fs::create_dir_all(path).map_err(step_failed(format!("make the folder {}", path.display())))
}

/// A path in the cell, relative to its root. It must not contain `..`.
pub(crate) fn inside(path: &Path) -> Result<PathBuf, SetupError> {
    let plain: Option<PathBuf> = path
        .components()
        .filter(|part| *part != Component::RootDir)
        .map(|part| matches!(part, Component::Normal(_)).then_some(part))
        .collect();
    plain.filter(|plain| path.is_absolute() && plain.components().next().is_some()).ok_or_else(|| {
        step_failed("check a mount")(format!("{} is not a valid mount target", path.display()))
    })
}

fn read_only(source: &Path, target: &Path) -> Result<(), SetupError> {
    let bind = Bind { source, target, read_only: true, devices: false, recursive: true, owners: None };
    sys::bind(bind).map_err(step_failed(format!("mount {}", source.display())))
}

/// Mounts programs and libraries read-only.
pub(crate) fn programs(image: &Image) -> Result<(), SetupError> {
    let (base, tools): (&Path, &[PathBuf]) = match image {
        Image::Host { tools } => (Path::new("/"), tools),
        Image::Rootfs(base) => (base, &[]),
        Image::OciLayout(_) => {
            return Err(step_failed("mount the image")("an image in the OCI layout needs a container"));
        }
    };
    for name in SYSTEM {
        let source = base.join(name);
        match fs::symlink_metadata(&source) {
            Ok(found) if found.is_symlink() => {
                let target = fs::read_link(&source).map_err(step_failed("read a link"))?;
                symlink(target, name).map_err(step_failed(format!("make the link {name}")))?;
            }
            Ok(found) if found.is_dir() => {
                folder(name)?;
                read_only(&source, Path::new(name))?;
            }
            Ok(_) | Err(_) => {}
        }
    }
    for tool in tools {
        let source = fs::canonicalize(tool)
            .map_err(step_failed(format!("find the tool folder {}", tool.display())))?;
        let target = inside(tool)?;
        folder(&target)?;
        read_only(&source, &target)?;
    }
    Ok(())
}

fn devices() -> Result<(), SetupError> {
    folder("dev")?;
    for name in DEVICES {
        let (source, target) = (Path::new("/dev").join(name), Path::new("dev").join(name));
        fs::File::create(&target).map_err(step_failed("create a device file"))?;
        let bind = Bind {
            source: &source,
            target: &target,
            read_only: false,
            devices: true,
            recursive: false,
            owners: None,
        };
        sys::bind(bind).map_err(step_failed(format!("mount /dev/{name}")))?;
    }
    folder("dev/pts")?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", "dev/pts", "devpts", flags, c"newinstance,ptmxmode=0666,mode=620")
        .map_err(step_failed("mount terminals"))?;
    let links = [
        ("pts/ptmx", "dev/ptmx"),
        ("/proc/self/fd", "dev/fd"),
        ("/proc/self/fd/0", "dev/stdin"),
        ("/proc/self/fd/1", "dev/stdout"),
        ("/proc/self/fd/2", "dev/stderr"),
    ];
    links
        .into_iter()
        .try_for_each(|(target, link)| symlink(target, link))
        .map_err(step_failed("make links to devices"))
}

/// Creates an `/etc` with the cell's user and certificates, and nothing about the host.
pub(crate) fn etc() -> Result<(), SetupError> {
    names()?;
    for name in ETC {
        let (source, target) = (Path::new("/etc").join(name), Path::new("etc").join(name));
        let Ok(found) = fs::metadata(&source) else { continue };
        if found.is_dir() {
            folder(&target)?;
            read_only(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(step_failed(format!("copy {}", source.display())))?;
        }
    }
    Ok(())
}

/// Writes the files that describe the cell's user and host name.
pub(crate) fn names() -> Result<(), SetupError> {
    folder("etc")?;
    let overflow_id = 65534;
    let passwd = format!(
        "choir:x:{UID}:{UID}::{HOME}:/bin/bash\nnobody:x:{overflow_id}:{overflow_id}::/:/usr/sbin/nologin\n"
    );
    let group = format!("choir:x:{UID}:\nnogroup:x:{overflow_id}:\n");
    let files = [
        ("passwd", passwd.as_str()),
        ("group", &group),
        ("hosts", "127.0.0.1 localhost cell\n::1 localhost\n"),
        ("hostname", "cell\n"),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
        ("resolv.conf", ""),
    ];
    for (name, text) in files {
        fs::write(Path::new("etc").join(name), text).map_err(step_failed("write /etc"))?;
    }
    Ok(())
}

/// Mounts one folder of the policy.
pub(crate) fn attach(given: &Mount, index: usize, owners: Option<BorrowedFd<'_>>) -> Result<(), SetupError> {
    let target = inside(&given.target)?;
    folder(&target)?;
    let bind = |target: &Path, read_only: bool| {
        let one = Bind { source: &given.source, target, read_only, devices: false, recursive: false, owners };
        // An unprivileged user cannot bind a folder without the mounts inside it.
        sys::bind(one)
            .or_else(|e| {
                let retry = e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) && owners.is_none();
                if retry { sys::bind(Bind { recursive: true, ..one }) } else { Err(e) }
            })
            .map_err(step_failed(format!("mount {}", given.source.display())))
    };
    match &given.access {
        Access::ReadOnly => bind(&target, true)?,
        Access::Direct => bind(&target, false)?,
        Access::Layered { upper, work } => {
            let lower = PathBuf::from(format!(".lower{index}"));
            folder(&lower)?;
            bind(&lower, true)?;
            layer(&lower, upper, work, &target)?;
            // The overlay keeps using the mount after its path is gone.
            unmount(&lower, UnmountFlags::DETACH).map_err(step_failed("hide the lower folder"))?;
            fs::remove_dir(&lower).map_err(step_failed("hide the lower folder"))?;
        }
    }
    // In a layer, `host::prepare_layer` has hidden these names by whiteouts.
    let layered = matches!(given.access, Access::Layered { .. });
    for name in given.hidden.iter().filter(|_| !layered) {
        let hidden = target.join(name);
        if fs::symlink_metadata(&hidden).is_ok_and(|found| found.is_dir()) {
            memory(&hidden, "mode=000,size=4k", MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV)?;
        }
    }
    cover(&target, &given.covered)
}

/// Mounts an unreadable empty file over each covered path. A mount cannot be removed or replaced from inside.
/// Symbolic links are not followed: a link's target is covered by its own path, or not at all.
fn cover(folder: &Path, covered: &[PathBuf]) -> Result<(), SetupError> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    if covered.is_empty() {
        return Ok(());
    }
    let empty = Path::new(".covered");
    fs::write(empty, "").map_err(step_failed("create the cover file"))?;
    fs::set_permissions(empty, Permissions::from_mode(0o000))
        .map_err(step_failed("create the cover file"))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(folder, flags, Mode::empty())
        .map_err(step_failed("open the folder of covered files"))?;
    for path in covered {
        let (flags, how) = (OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, ResolveFlags::BENEATH);
        let found = openat2(&root, path, flags, Mode::empty(), how | ResolveFlags::NO_SYMLINKS);
        match found {
            Ok(file) => sys::bind_over(empty, file.as_fd())
                .map_err(step_failed(format!("cover {}", path.display())))?,
            // Removed, or replaced by a symbolic link, since the list was made.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(e) => return Err(step_failed(format!("cover {}", path.display()))(e)),
        }
    }
    fs::remove_file(empty).map_err(step_failed("create the cover file"))
}

/// Mounts an overlay. Options are set one by one, so that no character in a path has a special meaning.
fn layer(lower: &Path, upper: &Path, work: &Path, target: &Path) -> Result<(), SetupError> {
    use rustix::mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen, move_mount,
    };
    use std::os::fd::AsFd;
    let step = || step_failed("mount the workspace overlay");
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).map_err(step())?;
    let context = context.as_fd();
    // A colon would separate several lower folders; this relative path has none.
    fsconfig_set_string(context, "lowerdir", lower).map_err(step())?;
    fsconfig_set_string(context, "upperdir", upper).map_err(step())?;
    fsconfig_set_string(context, "workdir", work).map_err(step())?;
    fsconfig_set_flag(context, "userxattr").map_err(step())?;
    // Without `volatile`, ending a cell waits until the whole disk is flushed. A caller that keeps the layer flushes
    // it (`layer::flush`).
    fsconfig_set_flag(context, "volatile").map_err(step())?;
    fsconfig_create(context).map_err(step())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mounted = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(step())?;
    move_mount(mounted.as_fd(), "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).map_err(step())
}
