//! The cell init's start in a container. The runtime starts it as the first process; it enters a user namespace,
//! re-executes itself there, takes over the control channel, applies the last isolation steps, and serves. No
//! untrusted code runs in the container before that.

use std::os::fd::OwnedFd;

use rustix::thread::UnshareFlags;

use super::program;
use crate::init;
use crate::jail::launcher::{INIT_FAILED, bind_proxy_listener, receive, report, send_listener};
use crate::jail::{self, confine, identity};
use crate::launch_report::{SetupError, step_failed};
use crate::policy::UID;
use crate::sys;

/// Enters the user namespace; returns the process's exit code if that fails. An undumpable process's /proc files
/// belong to root of the user namespace in which it was executed. With an unprivileged runtime that root is the
/// starting user, and so are the commands. The new namespace has no root, so there the files belong to a user that no
/// command can be.
pub(crate) fn enter() -> i32 {
    failed(leave().map_or_else(|failure| failure, |()| program::reexecute(crate::INIT_CONFINED)))
}

fn leave() -> Result<(), SetupError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(UnshareFlags::NEWUSER).map_err(step_failed("enter a new user namespace"))?;
    identity::map(UID, uid.as_raw(), gid.as_raw())?;
    // Done now, because after the re-execution an unprivileged user's process lacks the rights.
    confine::bound_user()
}

/// Serves until the host closes the channel; returns the process's exit code.
pub(crate) fn serve() -> i32 {
    match build() {
        Ok((control, environment)) => {
            // The container ends either way.
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
    let control = sys::take_control().map_err(step_failed("open the control channel"))?;
    let plan: jail::JailPlan = receive(&control)?;
    if !plan.policy.network.is_none() {
        send_listener(&control, &bind_proxy_listener()?)?;
    }
    confine::confine(&plan)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())
        .map_err(step_failed("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(step_failed("close standard input"))?;
    rustix::stdio::dup2_stdout(&null).map_err(step_failed("close standard output"))?;
    rustix::stdio::dup2_stderr(&null).map_err(step_failed("close standard error"))?;
    Ok((control, plan.policy.environment.into_iter().collect()))
}
