//! The launcher: builds the isolation, starts the cell init, and waits for it to end.
//!
//! It has a single thread. Standard input is the socket to the host; standard output takes the report. Every failure
//! names its step, and a step that fails aborts the launch.

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

use super::monitor::LimitMonitor;
use super::{JailPlan, PROXY, SharedSetup, confine, identity, root};
use crate::cell::Usage;
use crate::cgroup::{self, CreatedGroups};
use crate::frames::{Body, Frame};
use crate::init;
use crate::launch_report::{LaunchReport, SetupError, step_failed};
use crate::policy::Limit;
use crate::sys::{self, Forked};

/// Runs the launcher; returns the process's exit code.
pub(crate) fn launch() -> i32 {
    report(run())
}

/// Writes the launcher's report; returns the process's exit code.
pub(crate) fn report(ended: Result<crate::cell::Usage, SetupError>) -> i32 {
    let report = match ended {
        Ok(usage) => LaunchReport::Ended(usage),
        Err(SetupError { step, reason }) => LaunchReport::Failed { step, reason },
    };
    let failed = matches!(report, LaunchReport::Failed { .. });
    let mut out = io::stdout();
    let _ = serde_json::to_writer(&mut out, &report).map_err(io::Error::from).and_then(|()| out.flush());
    i32::from(failed)
}

fn run() -> Result<Usage, SetupError> {
    sys::close_inherited().map_err(step_failed("close inherited files"))?;
    let control =
        rustix::stdio::stdin().try_clone_to_owned().map_err(step_failed("open the control channel"))?;
    // Ignore Ctrl-C at the host's terminal, because the launcher must clean up first.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let setup: SharedSetup = receive(&control)?;
    let owner_mapping = identity::owner_mapping(setup.base.outside)?;
    let groups = cgroup::make(&setup.groups)?;
    let ended = run_init(&setup, &groups, owner_mapping, control);
    let usage = groups.usage();
    groups.remove();
    ended.map(|exceeded| Usage { exceeded, ..usage })
}

/// Starts the init, forwards the plan to it when it arrives, and supervises it.
fn run_init(
    setup: &SharedSetup,
    groups: &CreatedGroups<'_>,
    owner_mapping: Option<OwnedFd>,
    control: OwnedFd,
) -> Result<Option<Limit>, SetupError> {
    identity::enter_namespaces(setup.base.outside)?;
    let (plan_in, plan_out) = pipe_with(PipeFlags::CLOEXEC).map_err(step_failed("make a pipe"))?;
    let init = match sys::fork().map_err(step_failed("start the init process"))? {
        Forked::Parent(init) => init,
        Forked::Child => {
            drop(plan_out);
            init_main(setup, groups, owner_mapping.as_ref().map(AsFd::as_fd), control, plan_in)
        }
    };
    drop((owner_mapping, plan_in));
    let watch = pidfd_open(init, PidfdFlags::empty()).map_err(step_failed("watch the init process"))?;
    let ended =
        forward_plan(&control, &watch, plan_out).and_then(|monitor| supervise(&control, &watch, monitor));
    // When the init ends, the kernel kills the rest.
    let _ = pidfd_send_signal(&watch, Signal::KILL);
    let status =
        waitpid(Some(init), WaitOptions::empty()).map_err(step_failed("wait for the init process"))?;
    match status.and_then(|(_, status)| status.exit_status()) {
        // The init has already reported its failure.
        Some(INIT_FAILED) => sys::exit_now(1),
        Some(_) | None => ended,
    }
}

/// Waits for the plan and forwards it to the init, unless the init has failed meanwhile.
fn forward_plan(control: &OwnedFd, init: &OwnedFd, plan_out: OwnedFd) -> Result<LimitMonitor, SetupError> {
    let mut fds = [PollFd::new(init, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
    while let Err(errno) = poll(&mut fds, None) {
        if errno != Errno::INTR {
            return Err(step_failed("wait for the plan")(errno));
        }
    }
    if !fds[0].revents().is_empty() {
        return Err(step_failed("prepare the cell")("the init process ended"));
    }
    let json = receive_bytes(control)?;
    File::from(plan_out).write_all(&json).map_err(step_failed("forward the plan"))?;
    let plan: JailPlan = serde_json::from_slice(&json).map_err(step_failed("read the plan"))?;
    Ok(LimitMonitor::new(&plan))
}

pub(crate) fn receive<T: DeserializeOwned>(control: &OwnedFd) -> Result<T, SetupError> {
    serde_json::from_slice(&receive_bytes(control)?).map_err(step_failed("read the plan"))
}

fn receive_bytes(control: &OwnedFd) -> Result<Vec<u8>, SetupError> {
    let step = "read the plan";
    let mut stream = File::from(control.try_clone().map_err(step_failed(step))?);
    match Frame::receive(&mut stream).map_err(step_failed(step))? {
        Some(Frame { body: Body::Launch(json), .. }) => Ok(json),
        Some(_) | None => Err(step_failed(step)("the host sent none")),
    }
}

/// Returns when the init has ended or must end: the host closed the channel, or a limit was exceeded, which is
/// returned.
fn supervise(
    control: &OwnedFd,
    init: &OwnedFd,
    mut monitor: LimitMonitor,
) -> Result<Option<Limit>, SetupError> {
    loop {
        // Nothing is read here; only a hang-up of the host wakes it.
        let mut fds = [PollFd::new(control, PollFlags::empty()), PollFd::new(init, PollFlags::IN)];
        let pause = Timespec::try_from(monitor.until_next_check()).ok();
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(step_failed("watch the cell")(errno)),
        }
        if fds.iter().any(|fd| !fd.revents().is_empty()) {
            return Ok(None);
        }
        if let Some(limit) = monitor.exceeded(None) {
            return Ok(Some(limit));
        }
    }
}

/// The exit code of an init that has already reported its failure.
pub(crate) const INIT_FAILED: i32 = 121;

/// The cell init's main function. It never returns.
fn init_main(
    setup: &SharedSetup,
    groups: &CreatedGroups<'_>,
    owner_mapping: Option<BorrowedFd<'_>>,
    control: OwnedFd,
    plan: OwnedFd,
) -> ! {
    match prepare_common(setup, groups).and_then(|()| apply_plan(owner_mapping, &control, plan)) {
        Ok(environment) => {
            let served = init::serve(control, environment);
            sys::exit_now(i32::from(served.is_err()))
        }
        Err(failure) => {
            report(Err(failure));
            sys::exit_now(INIT_FAILED)
        }
    }
}

/// The steps that are the same for every cell, done before the plan arrives.
fn prepare_common(setup: &SharedSetup, groups: &CreatedGroups<'_>) -> Result<(), SetupError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(step_failed("set the parent death signal"))?;
    groups.enter()?;
    // After joining the group, so that the group appears as the root of the cgroup namespace.
    sys::unshare(UnshareFlags::NEWCGROUP | UnshareFlags::NEWNS)
        .map_err(step_failed("enter a new mount namespace"))?;
    rustix::system::sethostname(b"cell").map_err(step_failed("set the host name"))?;
    sys::loopback_up().map_err(step_failed("enable the loopback interface"))?;
    root::build(&setup.base)
}

/// Builds the rest of the isolation according to the plan, and returns the environment for commands.
fn apply_plan(
    owner_mapping: Option<BorrowedFd<'_>>,
    control: &OwnedFd,
    plan: OwnedFd,
) -> Result<Vec<(String, String)>, SetupError> {
    let mut json = Vec::new();
    File::from(plan).read_to_end(&mut json).map_err(step_failed("read the plan"))?;
    let plan: &JailPlan = &serde_json::from_slice(&json).map_err(step_failed("read the plan"))?;
    let listener = if plan.policy.network.is_none() { None } else { Some(bind_proxy_listener()?) };
    root::enter(&plan.policy.mounts, owner_mapping)?;
    if let Some(listener) = listener {
        send_listener(control, &listener)?;
    }
    identity::drop_root(plan)?;
    // Changing the user resets the parent death signal, so set it again.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(step_failed("set the parent death signal"))?;
    confine::confine(plan)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())
        .map_err(step_failed("open /dev/null"))?;
    // Only the launcher keeps the report's pipe; an open copy here would keep the host waiting.
    rustix::stdio::dup2_stdin(&null).map_err(step_failed("close standard input"))?;
    rustix::stdio::dup2_stdout(&null).map_err(step_failed("close standard output"))?;
    rustix::stdio::dup2_stderr(&null).map_err(step_failed("close standard error"))?;
    Ok(plan.policy.environment.clone().into_iter().collect())
}

/// Binds the proxy's socket in the cell's network; the host accepts on it.
pub(crate) fn bind_proxy_listener() -> Result<OwnedFd, SetupError> {
    let step = "listen for the proxy";
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).map_err(step_failed(step))?;
    set_socket_reuseaddr(&listener, true).map_err(step_failed(step))?;
    bind(&listener, &PROXY).map_err(step_failed(step))?;
    listen(&listener, 128).map_err(step_failed(step))?;
    Ok(listener)
}

pub(crate) fn send_listener(control: &OwnedFd, listener: &OwnedFd) -> Result<(), SetupError> {
    let fds = [listener.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let sent = sendmsg(control, &[io::IoSlice::new(b"!")], &mut ancillary, SendFlags::empty());
    sent.map(drop).map_err(step_failed("send the proxy's socket to the host"))
}
