//! The launcher: it builds the walls, starts the first process inside, and waits until that is over.
//!
//! It has one thread. Standard input is the socket to the host; standard output takes the verdict. Every failure names
//! its step, and a wall that cannot be built ends the launch.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, bind, listen, sendmsg,
    socket, sockopt::set_socket_reuseaddr,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use rustix::thread::UnshareFlags;
use serde::de::DeserializeOwned;

use super::cgroup::{self, Made};
use super::warden::Warden;
use super::{Ground, PROXY, Plan, Verdict, confine, identity, root};
use crate::agent;
use crate::cell::Usage;
use crate::frames::{Body, Frame};
use crate::policy::Limit;
use crate::sys::{self, Forked};

/// Why a wall could not be built.
pub(crate) struct Failure {
    pub(crate) step: String,
    pub(crate) reason: String,
}

/// Names the step that failed.
pub(crate) fn at<E: Display>(step: impl Into<String>) -> impl FnOnce(E) -> Failure {
    move |error| Failure { step: step.into(), reason: error.to_string() }
}

/// Runs the launcher; returns the process's exit code.
pub(crate) fn launch() -> i32 {
    tell(run())
}

/// The launcher's last word; returns the process's exit code.
pub(crate) fn tell(ended: Result<crate::cell::Usage, Failure>) -> i32 {
    let verdict = match ended {
        Ok(usage) => Verdict::Over(usage),
        Err(Failure { step, reason }) => Verdict::Failed { step, reason },
    };
    let failed = matches!(verdict, Verdict::Failed { .. });
    let mut out = io::stdout();
    let _ = serde_json::to_writer(&mut out, &verdict).map_err(io::Error::from).and_then(|()| out.flush());
    i32::from(failed)
}

fn run() -> Result<Usage, Failure> {
    sys::close_inherited().map_err(at("close what the host left open"))?;
    let control = rustix::stdio::stdin().try_clone_to_owned().map_err(at("take the control channel"))?;
    // Ctrl-C at the host's terminal is the host's affair; here something has to be put in order first.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let ground: Ground = receive(&control)?;
    let owners = identity::owners(ground.base.outside)?;
    let groups = cgroup::make(&ground.groups)?;
    let ended = settle(&ground, &groups, owners, control);
    let usage = groups.usage();
    groups.remove();
    ended.map(|met| Usage { met, ..usage })
}

/// Starts the first process, hands it the plan when it comes, and stays with it to its end.
fn settle(
    ground: &Ground,
    groups: &Made<'_>,
    owners: Option<OwnedFd>,
    control: OwnedFd,
) -> Result<Option<Limit>, Failure> {
    identity::leave(ground.base.outside)?;
    let (plan_in, plan_out) = pipe_with(PipeFlags::CLOEXEC).map_err(at("make a pipe"))?;
    let first = match sys::fork().map_err(at("start the first process"))? {
        Forked::Parent(first) => first,
        Forked::Child => {
            drop(plan_out);
            inside(ground, groups, owners.as_ref().map(AsFd::as_fd), control, plan_in)
        }
    };
    drop((owners, plan_in));
    let watch = pidfd_open(first, PidfdFlags::empty()).map_err(at("watch the first process"))?;
    let ended = pass_on(&control, &watch, plan_out).and_then(|warden| supervise(&control, &watch, warden));
    // The kernel ends the rest with the first process.
    let _ = pidfd_send_signal(&watch, Signal::KILL);
    let status = waitpid(Some(first), WaitOptions::empty()).map_err(at("wait for the first process"))?;
    match status.and_then(|(_, status)| status.exit_status()) {
        // The first process has told its own failure.
        Some(FAILED_INSIDE) => sys::exit_now(1),
        Some(_) | None => ended,
    }
}

/// Waits for the plan and hands it to the first process, unless that has failed meanwhile.
fn pass_on(control: &OwnedFd, first: &OwnedFd, plan_out: OwnedFd) -> Result<Warden, Failure> {
    let mut fds = [PollFd::new(first, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
    while let Err(errno) = poll(&mut fds, None) {
        if errno != Errno::INTR {
            return Err(at("wait for the plan")(errno));
        }
    }
    if !fds[0].revents().is_empty() {
        return Err(at("prepare the cell")("the first process ended"));
    }
    let json = receive_bytes(control)?;
    File::from(plan_out).write_all(&json).map_err(at("pass the plan on"))?;
    let plan: Plan = serde_json::from_slice(&json).map_err(at("read the plan"))?;
    Ok(Warden::new(&plan))
}

pub(crate) fn receive<T: DeserializeOwned>(control: &OwnedFd) -> Result<T, Failure> {
    serde_json::from_slice(&receive_bytes(control)?).map_err(at("read the plan"))
}

fn receive_bytes(control: &OwnedFd) -> Result<Vec<u8>, Failure> {
    let step = "read the plan";
    let mut stream = File::from(control.try_clone().map_err(at(step))?);
    match Frame::receive(&mut stream).map_err(at(step))? {
        Some(Frame { body: Body::Launch(json), .. }) => Ok(json),
        Some(_) | None => Err(at(step)("the host sent none")),
    }
}

/// Returns when the first process is over or should be: the host went away, or a limit is met, which it names.
fn supervise(control: &OwnedFd, first: &OwnedFd, mut warden: Warden) -> Result<Option<Limit>, Failure> {
    loop {
        // Nothing is read here: only the host's going away shows.
        let mut fds = [PollFd::new(control, PollFlags::empty()), PollFd::new(first, PollFlags::IN)];
        let pause = Timespec::try_from(warden.pause()).ok();
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(at("watch the cell")(errno)),
        }
        if fds.iter().any(|fd| !fd.revents().is_empty()) {
            return Ok(None);
        }
        if let Some(limit) = warden.met(None) {
            return Ok(Some(limit));
        }
    }
}

/// How the first process ends when it has told its own failure.
pub(crate) const FAILED_INSIDE: i32 = 121;

/// The first process of the cell. It never returns.
fn inside(
    ground: &Ground,
    groups: &Made<'_>,
    owners: Option<BorrowedFd<'_>>,
    control: OwnedFd,
    plan: OwnedFd,
) -> ! {
    match prepare(ground, groups).and_then(|()| build(owners, &control, plan)) {
        Ok(environment) => {
            let served = agent::serve(control, environment);
            sys::exit_now(i32::from(served.is_err()))
        }
        Err(failure) => {
            tell(Err(failure));
            sys::exit_now(FAILED_INSIDE)
        }
    }
}

/// What is the same for every cell of this kind, and is done before anything else is known of this one.
fn prepare(ground: &Ground, groups: &Made<'_>) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(at("tie to the launcher"))?;
    groups.enter()?;
    // Only now, so that the group the process was put into is the root that it sees.
    sys::unshare(UnshareFlags::NEWCGROUP | UnshareFlags::NEWNS).map_err(at("leave the host's mounts"))?;
    rustix::system::sethostname(b"cell").map_err(at("set the host name"))?;
    sys::loopback_up().map_err(at("turn the loopback on"))?;
    root::build(&ground.base)
}

/// Builds the rest of the walls, which the plan asks for, and returns what commands find as their environment.
fn build(
    owners: Option<BorrowedFd<'_>>,
    control: &OwnedFd,
    plan: OwnedFd,
) -> Result<Vec<(String, String)>, Failure> {
    let mut json = Vec::new();
    File::from(plan).read_to_end(&mut json).map_err(at("read the plan"))?;
    let plan: &Plan = &serde_json::from_slice(&json).map_err(at("read the plan"))?;
    let listener = if plan.policy.network.is_none() { None } else { Some(listen_inside()?) };
    root::enter(&plan.policy.mounts, owners)?;
    if let Some(listener) = listener {
        hand_over(control, &listener)?;
    }
    identity::become_nobody(plan)?;
    // Whoever changes their user loses this tie, so it is made again.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(at("tie to the launcher"))?;
    confine::confine(plan)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())
        .map_err(at("open /dev/null"))?;
    // The pipe for the verdict stays the launcher's own; here it would keep the host waiting.
    rustix::stdio::dup2_stdin(&null).map_err(at("close standard input"))?;
    rustix::stdio::dup2_stdout(&null).map_err(at("close standard output"))?;
    rustix::stdio::dup2_stderr(&null).map_err(at("close standard error"))?;
    Ok(plan.policy.environment.clone().into_iter().collect())
}

/// The proxy's socket: it belongs to the network inside, whoever answers on it.
pub(crate) fn listen_inside() -> Result<OwnedFd, Failure> {
    let step = "listen for the proxy";
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).map_err(at(step))?;
    set_socket_reuseaddr(&listener, true).map_err(at(step))?;
    bind(&listener, &PROXY).map_err(at(step))?;
    listen(&listener, 128).map_err(at(step))?;
    Ok(listener)
}

pub(crate) fn hand_over(control: &OwnedFd, listener: &OwnedFd) -> Result<(), Failure> {
    let fds = [listener.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let sent = sendmsg(control, &[io::IoSlice::new(b"!")], &mut ancillary, SendFlags::empty());
    sent.map(drop).map_err(at("hand the proxy's socket to the host"))
}
