//! Cells: isolated environments for untrusted commands, with limits on what a command sees, uses and reaches.
//!
//! A [`Policy`] describes a cell completely, as data. A [`Backend`] builds all the isolation that the policy asks for
//! or refuses to start; it never runs a command with less. In every cell the same first process, the cell init,
//! serves a byte stream. This crate knows no events: a command's writes land in a [`layer`], and the caller decides
//! what to do with them.

use std::path::PathBuf;
use std::sync::OnceLock;

mod cell;
mod cgroup;
pub mod container;
mod frames;
mod init;
pub mod jail;
mod launch;
mod launch_report;
pub mod layer;
mod limit_watch;
pub mod policy;
mod probe;
pub mod proxy;
mod session;
mod stderr_tail;
mod sys;

pub use cell::{
    Backend, Cell, Command, ControlChannel, ExecError, Exit, PipedCommand, Pty, PtyControl, Sink, Size,
    StartError, Status, Stream, Usage,
};
pub use container::Container;
pub use jail::Jail;
pub use policy::{Access, Image, Limit, Limits, Mount, Network, Policy};
pub use probe::{Check, Finding, Probe};

/// The argument that makes a program the launcher of a jail cell.
pub(crate) const LAUNCH: &str = "cell-launch";
/// The argument that makes a program the launcher of a container cell.
pub(crate) const CONTAINER_LAUNCH: &str = "container-launch";
/// The argument that makes a program the cell init of a container, before it has a user namespace of its own.
pub(crate) const INIT: &str = "cell-init";
/// The argument that makes a program the cell init of a container, inside its user namespace.
pub(crate) const INIT_CONFINED: &str = "cell-init-confined";

/// The program that launches cells for this process.
static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();

/// Sets another program that calls [`entry`] as the launcher. For tests: a test binary does not call `entry`.
pub fn set_launcher(program: impl Into<PathBuf>) {
    let _ = LAUNCHER.set(program.into());
}

/// The launcher, if one is set.
pub(crate) fn launcher() -> Option<PathBuf> {
    LAUNCHER.get().cloned()
}

/// Every program that starts cells must call this first. If the program was started as a launcher or a cell init,
/// this does that job and returns the exit code.
pub fn entry() -> Option<i32> {
    // The running executable, even if its file is replaced later.
    set_launcher("/proc/self/exe");
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    if arguments.next().is_some() {
        return None;
    }
    match first.to_str()? {
        LAUNCH => Some(jail::launch()),
        CONTAINER_LAUNCH => Some(container::launch()),
        INIT => Some(container::enter()),
        INIT_CONFINED => Some(container::serve()),
        _ => None,
    }
}
