//! The agent's way into a container: the runtime started it as the first process; it enters a user namespace and starts
//! anew in it, takes the control channel, puts the last plan around itself, and serves. Nothing untrusted has run in the
//! container before that.

use std::os::fd::OwnedFd;

use rustix::thread::UnshareFlags;

use super::program;
use crate::init;
use crate::jail::launcher::{
    INIT_FAILED, SetupError, at, bind_proxy_listener, receive, report, send_listener,
};
use crate::jail::{self, confine, identity};
use crate::policy::UID;
use crate::sys;

/// Enters the user namespace; returns the process's exit code if that fails. What a process shows of itself in /proc is
/// root's, as root is known where the program was started. To an ordinary user's runtime that is the user who started
/// it, and so are the commands; in a namespace that has no root, it is nobody whom a command could be.
pub(crate) fn enter() -> i32 {
    failed(leave().map_or_else(|failure| failure, |()| program::start_anew(crate::INIT_CONFINED)))
}

fn leave() -> Result<(), SetupError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(UnshareFlags::NEWUSER).map_err(at("enter a new user namespace"))?;
    identity::map(UID, uid.as_raw(), gid.as_raw())?;
    // A program that is started by an ordinary user has no rights to do this with.
    confine::bound_user()
}

/// Serves until the host goes away; returns the process's exit code.
pub(crate) fn serve() -> i32 {
    match build() {
        Ok((control, environment)) => {
            // However it ends, nothing is left of it.
            let _ = init::serve(control, environment);
            0
        }
        Err(failure) => failed(failure),
    }
}

fn failed(failure: SetupError) -> i32 {
    report(Err(failure));
    INIT_FAILED
}

fn build() -> Result<(OwnedFd, Vec<(String, String)>), SetupError> {
    let control = sys::take_control().map_err(at("take the control channel"))?;
    let plan: jail::JailPlan = receive(&control)?;
    if !plan.policy.network.is_none() {
        send_listener(&control, &bind_proxy_listener()?)?;
    }
    confine::confine(&plan)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())
        .map_err(at("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(at("close standard input"))?;
    rustix::stdio::dup2_stdout(&null).map_err(at("close standard output"))?;
    rustix::stdio::dup2_stderr(&null).map_err(at("close standard error"))?;
    Ok((control, plan.policy.environment.into_iter().collect()))
}
