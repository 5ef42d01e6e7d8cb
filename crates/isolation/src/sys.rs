//! System calls without a safe wrapper, each behind a safe function. All unsafe code of this crate is here.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The result of a fork in each process.
pub(crate) enum Forked {
    Parent(Pid),
    Child,
}

/// Forks. Only the launcher calls this; it has a single thread.
pub(crate) fn fork() -> io::Result<Forked> {
    debug_assert_eq!(std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count), 1);
    // SAFETY: the process has one thread, so no lock of another can be held in the child.
    let pid = checked(i64::from(unsafe { libc::fork() }))?;
    Ok(i32::try_from(pid).ok().and_then(Pid::from_raw).map_or(Forked::Child, Forked::Parent))
}

/// Starts a process that holds a new user namespace open until it is killed.
pub(crate) fn hold_user_namespace() -> io::Result<Pid> {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: without a stack or shared memory this is a fork, and the child makes system calls only.
    let pid = checked(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        Some(child) => Ok(child),
        None => loop {
            // SAFETY: it returns when a signal came, and the only one that comes is the last.
            unsafe { libc::pause() };
        },
    }
}

/// Enters new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the launcher has one thread and does not ask for its file table to be unshared.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// How to bind mount a file or folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bind<'a> {
    pub(crate) source: &'a Path,
    pub(crate) target: &'a Path,
    pub(crate) read_only: bool,
    /// Allow device files.
    pub(crate) devices: bool,
    pub(crate) recursive: bool,
    /// Map file owners by this user namespace (an idmapped mount).
    pub(crate) owners: Option<BorrowedFd<'a>>,
}

/// Bind mounts a file or folder of the host, always `nosuid`.
pub(crate) fn bind(bind: Bind<'_>) -> io::Result<()> {
    let flags = rustix::mount::MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree(&bind)?.as_fd(), "", rustix::fs::CWD, bind.target, flags)?)
}

/// Bind mounts a file, read-only, over an open one.
pub(crate) fn bind_over(source: &Path, target: BorrowedFd<'_>) -> io::Result<()> {
    use rustix::mount::MoveMountFlags as Flags;
    let bind =
        Bind { source, target: source, read_only: true, devices: false, recursive: false, owners: None };
    let flags = Flags::MOVE_MOUNT_F_EMPTY_PATH | Flags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree(&bind)?.as_fd(), "", target, "", flags)?)
}

/// A detached copy of the source's mount with the wanted attributes.
fn tree(bind: &Bind<'_>) -> io::Result<OwnedFd> {
    let recursive = if bind.recursive { libc::AT_RECURSIVE as u32 } else { 0 };
    let source = c_path(bind.source)?;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | recursive;
    // SAFETY: the path is a C string that outlives the call.
    let tree =
        checked(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), flags) })?;
    // SAFETY: the call returned a new descriptor, which has no other owner.
    let tree = unsafe { OwnedFd::from_raw_fd(i32::try_from(tree).unwrap_or(-1)) };
    let mut attributes = libc::MOUNT_ATTR_NOSUID;
    if bind.read_only {
        attributes |= libc::MOUNT_ATTR_RDONLY;
    }
    if !bind.devices {
        attributes |= libc::MOUNT_ATTR_NODEV;
    }
    let mut attr = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    if let Some(owners) = bind.owners {
        attr.attr_set |= libc::MOUNT_ATTR_IDMAP;
        attr.userns_fd = u64::try_from(owners.as_raw_fd()).unwrap_or_default();
    }
    attr.propagation = libc::MS_PRIVATE;
    let how = libc::AT_EMPTY_PATH as u32 | recursive;
    let size = std::mem::size_of::<libc::mount_attr>();
    // SAFETY: `attr` is a whole structure of the size that is given, and the path an empty C string.
    let set = unsafe {
        libc::syscall(libc::SYS_mount_setattr, tree.as_raw_fd(), c"".as_ptr(), how, &raw const attr, size)
    };
    checked(set)?;
    Ok(tree)
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
}

/// Brings up the loopback interface of the network namespace.
pub(crate) fn loopback_up() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: all zeroes is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *slot = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is a valid `ifreq` whose flags are set, as this call wants it.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    checked(i64::from(done)).map(drop)
}

/// Makes the program a session leader with standard input as its controlling terminal.
pub(crate) fn lead_session(command: &mut Command) {
    let lead = || {
        rustix::process::setsid()?;
        Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(lead) };
}

/// The descriptor on which a container runtime passes the control channel to the cell init.
const CONTROL: i32 = 3;

/// Duplicates standard input, the control channel, to the descriptor where a child process expects it. Call this
/// before opening anything else.
pub(crate) fn place_control() -> io::Result<OwnedFd> {
    // SAFETY: the process has just begun, so nothing in it owns the descriptor that this replaces.
    unsafe {
        checked(i64::from(libc::dup2(0, CONTROL)))?;
        Ok(OwnedFd::from_raw_fd(CONTROL))
    }
}

/// Takes over the control channel that the runtime passed, and marks it close-on-exec.
pub(crate) fn take_control() -> io::Result<OwnedFd> {
    // SAFETY: the process has just begun, so nothing in it owns the descriptor; the flag is set on an open one.
    unsafe {
        checked(i64::from(libc::fcntl(CONTROL, libc::F_SETFD, libc::FD_CLOEXEC)))?;
        Ok(OwnedFd::from_raw_fd(CONTROL))
    }
}

/// A descriptor that becomes readable when a child exits.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by `sigemptyset` before it is used; blocking a signal in a process with one
    // thread has no other effect.
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    checked(i64::from(fd))?;
    // SAFETY: the call returned a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads everything available from a non-blocking descriptor.
pub(crate) fn drain(fd: BorrowedFd<'_>) {
    let mut buffer = [0; 1024];
    while rustix::io::read(fd, &mut buffer).is_ok_and(|count| count > 0) {}
}

/// Closes everything but the standard streams, in case the host leaked descriptors. Call this before opening anything
/// else.
pub(crate) fn close_inherited() -> io::Result<()> {
    // SAFETY: nothing in this process has opened a descriptor yet, so none is closed under its owner.
    checked(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) }).map(drop)
}

/// Exits immediately, without running exit handlers or destructors of the forked process.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: the process ends here.
    unsafe { libc::_exit(code) }
}
