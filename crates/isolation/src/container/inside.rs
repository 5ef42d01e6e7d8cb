//! The agent's way into a container: the runtime started it as the first process; it enters a user namespace and starts
//! anew in it, takes the control channel, puts the last walls around itself, and serves. Nothing untrusted has run in the
//! container before that.

use std::os::fd::OwnedFd;

use rustix::thread::UnshareFlags;

use super::program;
use crate::agent;
use crate::jail::launcher::{FAILED_INSIDE, Failure, at, hand_over, listen_inside, receive, tell};
use crate::jail::{self, confine, identity};
use crate::policy::UID;
use crate::sys;

/// Enters the user namespace; returns the process's exit code if that fails. What a process shows of itself in /proc is
/// root's, as root is known where the program was started. To an ordinary user's runtime that is the user who started
/// it, and so are the commands; in a namespace that has no root, it is nobody whom a command could be.
pub(crate) fn enter() -> i32 {
    failed(leave().map_or_else(|failure| failure, |()| program::start_anew(crate::AGENT_APART)))
}

fn leave() -> Result<(), Failure> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(UnshareFlags::NEWUSER).map_err(at("enter a new user namespace"))?;
    identity::map(UID, uid.as_raw(), gid.as_raw())?;
    // A program that is started by an ordinary user has no rights to do this with.
    confine::bound()
}

/// Serves until the host goes away; returns the process's exit code.
pub(crate) fn serve() -> i32 {
    match build() {
        Ok((control, environment)) => {
            // However it ends, nothing is left of it.
            let _ = agent::serve(control, environment);
            0
        }
        Err(failure) => failed(failure),
    }
}

fn failed(failure: Failure) -> i32 {
    tell(Err(failure));
    FAILED_INSIDE
}

fn build() -> Result<(OwnedFd, Vec<(String, String)>), Failure> {
    let control = sys::take_control().map_err(at("take the control channel"))?;
    let walls: jail::Plan = receive(&control)?;
    if !walls.policy.network.is_none() {
        hand_over(&control, &listen_inside()?)?;
    }
    confine::confine(&walls)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())
        .map_err(at("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(at("close standard input"))?;
    rustix::stdio::dup2_stdout(&null).map_err(at("close standard output"))?;
    rustix::stdio::dup2_stderr(&null).map_err(at("close standard error"))?;
    Ok((control, walls.policy.environment.into_iter().collect()))
}
