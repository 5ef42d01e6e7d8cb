//! The agent's way into a container: the runtime started it as the first process; it takes the control channel, puts
//! the last walls around itself, and serves. Nothing untrusted has run in the container before that.

use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::thread::UnshareFlags;

use crate::agent;
use crate::jail::launcher::{FAILED_INSIDE, Failure, at, hand_over, listen_inside, receive};
use crate::jail::{self, Verdict, confine, identity};
use crate::policy::UID;
use crate::sys;

/// Serves until the host goes away; returns the process's exit code.
pub(crate) fn serve() -> i32 {
    match enter() {
        Ok((control, environment)) => {
            // However it ends, nothing is left of it.
            let _ = agent::serve(control, environment);
            0
        }
        Err(Failure { step, reason }) => {
            let mut out = io::stdout();
            let verdict = Verdict::Failed { step, reason };
            let _ =
                serde_json::to_writer(&mut out, &verdict).map_err(io::Error::from).and_then(|()| out.flush());
            FAILED_INSIDE
        }
    }
}

fn enter() -> Result<(OwnedFd, Vec<(String, String)>), Failure> {
    let control = sys::take_control().map_err(at("take the control channel"))?;
    let walls: jail::Plan = receive(&control)?;
    if !walls.policy.network.is_none() {
        hand_over(&control, &listen_inside()?)?;
    }
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(UnshareFlags::NEWUSER).map_err(at("enter a new user namespace"))?;
    identity::map(UID, uid.as_raw(), gid.as_raw())?;
    confine::confine(&walls)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())
        .map_err(at("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(at("close standard input"))?;
    rustix::stdio::dup2_stdout(&null).map_err(at("close standard output"))?;
    rustix::stdio::dup2_stderr(&null).map_err(at("close standard error"))?;
    Ok((control, walls.policy.environment.into_iter().collect()))
}
