//! Cells: where untrusted commands run, and what they may see, use and reach there.
//!
//! A [`Policy`] says everything about a cell, as data. A [`Backend`] builds the walls it asks for or refuses; it never
//! runs anything with fewer. Inside, one agent answers on a byte stream, whatever the walls are made of. This crate
//! knows no events: what a command wrote stands in a [`layer`], and whoever started it decides what becomes of that.

use std::path::PathBuf;
use std::sync::OnceLock;

mod cell;
pub mod container;
mod frames;
mod init;
pub mod jail;
mod launch;
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

/// The argument by which a program is asked to launch a cell.
pub(crate) const LAUNCH: &str = "cell-launch";
/// The same for a cell in a container.
pub(crate) const CONTAINER_LAUNCH: &str = "container-launch";
/// The argument by which a program is asked to become the agent inside a container.
pub(crate) const INIT: &str = "cell-init";
/// The same once it has a user namespace of its own.
pub(crate) const INIT_CONFINED: &str = "cell-init-confined";

/// The program that launches cells for this one.
static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();

/// Names another program that calls [`entry`] as the launcher; for tests, which cannot do so themselves.
pub fn set_launcher(program: impl Into<PathBuf>) {
    let _ = LAUNCHER.set(program.into());
}

/// The launcher, if this program has one.
pub(crate) fn launcher() -> Option<PathBuf> {
    LAUNCHER.get().cloned()
}

/// Every program that starts cells calls this before anything else: when it was itself started as a launcher, it does
/// that job and returns the exit code to end with.
pub fn entry() -> Option<i32> {
    // The program that runs now, even if its file is replaced meanwhile.
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
