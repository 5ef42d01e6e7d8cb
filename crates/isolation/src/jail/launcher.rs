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
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitpid,
};
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
    let owners = identity::owners(ground.outside)?;
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
    identity::leave(ground.outside)?;
    let (plan_in, plan_out) = pipe_with(PipeFlags::CLOEXEC).map_err(at("make a pipe"))?;
    let first = match sys::fork().map_err(at("start the first process"))? {
        Forked::Parent(first) => first,
        Forked::Child => {
            drop(plan_out);
            inside(groups, owners.as_ref().map(AsFd::as_fd), control, plan_in)
        }
    };
    drop((owners, plan_in));
    let told = receive_bytes(&control).and_then(|json| {
        let plan: Plan = serde_json::from_slice(&json).map_err(at("read the plan"))?;
        File::from(plan_out).write_all(&json).map_err(at("pass the plan on"))?;
        Ok(Warden::new(&plan))
    });
    match told {
        Ok(warden) => supervise(&control, first, warden),
        Err(failure) => {
            let _ = kill_process(first, Signal::KILL);
            let _ = waitpid(Some(first), WaitOptions::empty());
            Err(failure)
        }
    }
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

/// Waits until the first process is over, and ends it when the host goes away or a limit is met, which it names.
fn supervise(control: &OwnedFd, first: Pid, mut warden: Warden) -> Result<Option<Limit>, Failure> {
    let watch = pidfd_open(first, PidfdFlags::empty()).map_err(at("watch the first process"))?;
    let mut met = None;
    loop {
        // Nothing is read here: only the host's going away shows.
        let mut fds = [PollFd::new(control, PollFlags::empty()), PollFd::new(&watch, PollFlags::IN)];
        let pause = Timespec::try_from(warden.pause()).ok();
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(at("watch the cell")(errno)),
        }
        if !fds[1].revents().is_empty() {
            break;
        }
        met = warden.met(None);
        if !fds[0].revents().is_empty() || met.is_some() {
            let _ = pidfd_send_signal(&watch, Signal::KILL);
            break;
        }
    }
    let ended = waitpid(Some(first), WaitOptions::empty()).map_err(at("wait for the first process"))?;
    match ended.and_then(|(_, status)| status.exit_status()) {
        // The first process has told its own failure.
        Some(FAILED_INSIDE) => sys::exit_now(1),
        Some(_) | None => Ok(met),
    }
}

/// How the first process ends when it has told its own failure.
pub(crate) const FAILED_INSIDE: i32 = 121;

/// The first process of the cell. It never returns.
fn inside(groups: &Made<'_>, owners: Option<BorrowedFd<'_>>, control: OwnedFd, plan: OwnedFd) -> ! {
    let environment = match prepare(groups).and_then(|()| build(owners, &control, plan)) {
        Ok(environment) => environment,
        Err(Failure { step, reason }) => {
            let verdict = Verdict::Failed { step, reason };
            let mut out = io::stdout();
            let _ =
                serde_json::to_writer(&mut out, &verdict).map_err(io::Error::from).and_then(|()| out.flush());
            sys::exit_now(FAILED_INSIDE);
        }
    };
    let served = agent::serve(control, environment);
    sys::exit_now(i32::from(served.is_err()))
}

/// What is the same for every cell, and can be done before anything is known of this one.
fn prepare(groups: &Made<'_>) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(at("tie to the launcher"))?;
    groups.enter()?;
    // Only now, so that the group the process was put into is the root that it sees.
    sys::unshare(UnshareFlags::NEWCGROUP | UnshareFlags::NEWNS).map_err(at("leave the host's mounts"))?;
    rustix::system::sethostname(b"cell").map_err(at("set the host name"))?;
    sys::loopback_up().map_err(at("turn the loopback on"))
}

/// Builds the walls that the plan asks for, and returns what commands find as their environment.
fn build(
    owners: Option<BorrowedFd<'_>>,
    control: &OwnedFd,
    plan: OwnedFd,
) -> Result<Vec<(String, String)>, Failure> {
    let mut json = Vec::new();
    File::from(plan).read_to_end(&mut json).map_err(at("read the plan"))?;
    let plan: &Plan = &serde_json::from_slice(&json).map_err(at("read the plan"))?;
    let listener = if plan.policy.network.is_none() { None } else { Some(listen_inside()?) };
    root::build(plan, owners)?;
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
