//! The container's launcher: prepares the bundle, starts the runtime, and waits for the container to end. Whichever
//! of the host, the runtime or the cell init ends first, the others are ended and the control groups removed.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, wait, waitpid};
use rustix::thread::UnshareFlags;

use super::{ContainerPlan, bundle};
use crate::cell::Usage;
use crate::cgroup::{self, CreatedGroups};
use crate::jail::identity;
use crate::jail::launcher::{INIT_FAILED, receive, report};
use crate::jail::monitor::LimitMonitor;
use crate::jail::root::memory;
use crate::launch_report::{SetupError, step_failed};
use crate::policy::Limit;
use crate::sys;

/// The interval between attempts to kill the container's processes after the host went away, until the runtime has
/// exited.
const KILL_INTERVAL: Duration = Duration::from_millis(5);
/// The runtime's standard error, in the bundle.
const STDERR_FILE: &str = "errors";
/// Where the runtime writes the pid of the cell init, in the bundle.
const INIT_PID_FILE: &str = "init";

/// Runs the launcher; returns the process's exit code.
pub(crate) fn launch() -> i32 {
    match run() {
        Ok((ContainerEnd::Ended, usage)) => report(Ok(usage)),
        Ok((ContainerEnd::Reported, _)) => 1,
        Ok((ContainerEnd::Failed(failure), _)) | Err(failure) => report(Err(failure)),
    }
}

enum ContainerEnd {
    Ended,
    /// The cell init has already reported its failure.
    Reported,
    Failed(SetupError),
}

fn run() -> Result<(ContainerEnd, Usage), SetupError> {
    let control = sys::place_control().map_err(step_failed("open the control channel"))?;
    let plan: ContainerPlan = receive(&control)?;
    // Ignore Ctrl-C at the host's terminal, because the launcher must clean up first.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // Processes that the runtime leaves behind become children of this process, which ends them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(step_failed("adopt orphaned processes"))?;
    let owner_mapping = identity::owner_mapping(plan.jail_plan.outside)?;
    if owner_mapping.is_some() {
        // Reap the helper process, so that the runtime is this process's only child.
        let _ = rustix::process::wait(WaitOptions::empty());
    }
    enter_namespaces(&plan)?;
    bundle::build(&plan, owner_mapping.as_ref().map(std::os::fd::AsFd::as_fd))?;
    drop(owner_mapping);
    let started =
        start(&plan).and_then(|runtime| supervise(&control, runtime, LimitMonitor::new(&plan.jail_plan)));
    end_all();
    let usage = CreatedGroups(&plan.jail_plan.groups).usage();
    plan.group_paths.remove();
    started.map(|(ended, exceeded)| (ended, Usage { exceeded, ..usage }))
}

/// Enters a mount namespace, which vanishes with this process, and an IPC namespace that the container shares, so
/// that the monitor sees segments that no process has attached. For users other than root, enters a user namespace
/// first, in which the runtime can work.
fn enter_namespaces(plan: &ContainerPlan) -> Result<(), SetupError> {
    const LAUNCHER_NAMESPACES: UnshareFlags = UnshareFlags::NEWNS.union(UnshareFlags::NEWIPC);
    if plan.jail_plan.outside.is_some() {
        return sys::unshare(LAUNCHER_NAMESPACES).map_err(step_failed("enter a new mount namespace"));
    }
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(UnshareFlags::NEWUSER | LAUNCHER_NAMESPACES).map_err(step_failed("enter new namespaces"))?;
    identity::map(0, uid.as_raw(), gid.as_raw())
}

fn start(plan: &ContainerPlan) -> Result<Child, SetupError> {
    let bundle = &plan.bundle;
    let errors = File::create(STDERR_FILE).map_err(step_failed("create the runtime's error file"))?;
    let groups = if plan.group_paths.are_ours { Some(cgroup::make(&plan.jail_plan.groups)?) } else { None };
    let mut runtime = Command::new(&plan.runtime.path);
    if plan.runtime.is_crun() && plan.group_paths.path.is_none() {
        runtime.args(["--cgroup-manager", "disabled"]);
        hide_cgroup_v2()?;
    }
    // A detached runtime leaves the container's groups in place, so that usage can be read at the end.
    runtime
        .arg("--root")
        .arg(bundle.join("state"))
        .args([
            "run",
            "--detach",
            "--no-new-keyring",
            "--preserve-fds",
            "1",
            "--pid-file",
            INIT_PID_FILE,
            "--bundle",
        ])
        .arg(bundle)
        .arg(format!("choir-{}", plan.name))
        .stdin(Stdio::null())
        .stderr(errors);
    groups.as_ref().map_or(Ok(()), CreatedGroups::enter)?;
    let started = runtime.spawn().map_err(step_failed("start the runtime"));
    groups.as_ref().map_or(Ok(()), CreatedGroups::leave)?;
    started
}

/// Hides cgroup version 2 in this mount namespace. crun refuses a machine where version 2 is mounted beside version 1
/// and has a controller, even if it manages no groups.
fn hide_cgroup_v2() -> Result<(), SetupError> {
    let beside = Path::new("/sys/fs/cgroup/unified");
    if !beside.is_dir() {
        return Ok(());
    }
    memory(beside, "mode=755,size=4k", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC)
}

/// Waits until the runtime has started the container and the container has ended. Ends it when the host goes away or
/// a limit is exceeded, which is returned.
fn supervise(
    control: &OwnedFd,
    mut runtime: Child,
    monitor: LimitMonitor,
) -> Result<(ContainerEnd, Option<Limit>), SetupError> {
    let mut watch = ContainerWatch { control, monitor, is_ending: false, exceeded: None };
    let pid = to_pid(runtime.id()).ok_or_else(|| step_failed("watch the runtime")("it has no pid"))?;
    watch.wait_for(pid, pid, &|| end_children(pid))?;
    let status = runtime.wait().map_err(step_failed("wait for the runtime"))?;
    if !status.success() {
        let failed = ContainerEnd::Failed(step_failed("run the container")(stderr_line(status)));
        return Ok((if watch.is_ending { ContainerEnd::Ended } else { failed }, watch.exceeded));
    }
    // The runtime has exited, so the init has become a child of this process.
    let init = fs::read_to_string(INIT_PID_FILE).map_err(step_failed("find the init process"))?;
    let init = init.trim().parse().ok().and_then(to_pid);
    let init = init.ok_or_else(|| step_failed("find the init process")("it has no pid"))?;
    watch.wait_for(init, rustix::process::getpid(), &|| end(init))?;
    let status = waitpid(Some(init), WaitOptions::empty()).map_err(step_failed("wait for the container"))?;
    let code = status.and_then(|(_, status)| status.exit_status());
    let ended = match code {
        Some(INIT_FAILED) => ContainerEnd::Reported,
        Some(code) if code != 0 && !watch.is_ending => ContainerEnd::Failed(
            step_failed("run the container")(format!("its init process ended with {code}")),
        ),
        Some(_) | None => ContainerEnd::Ended,
    };
    Ok((ended, watch.exceeded))
}

fn end(process: Pid) {
    let _ = kill_process(process, Signal::KILL);
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// The conditions to watch while a container starts and runs.
struct ContainerWatch<'a> {
    control: &'a OwnedFd,
    monitor: LimitMonitor,
    /// The host went away, or a limit was exceeded.
    is_ending: bool,
    exceeded: Option<Limit>,
}

impl ContainerWatch<'_> {
    /// Waits for a process to end, and kills it if the container must end. The container's processes are descendants
    /// of `starter`.
    fn wait_for(&mut self, process: Pid, starter: Pid, end: &dyn Fn()) -> Result<(), SetupError> {
        let watched = pidfd_open(process, PidfdFlags::empty()).map_err(step_failed("watch the container"))?;
        loop {
            // Nothing is read here; only a hang-up of the host wakes it.
            let mut fds =
                [PollFd::new(&watched, PollFlags::IN), PollFd::new(self.control, PollFlags::empty())];
            let again = Timespec { tv_sec: 0, tv_nsec: i64::from(KILL_INTERVAL.subsec_nanos()) };
            let polled = if self.is_ending {
                // When the init ends, the kernel kills the rest.
                end();
                poll(&mut fds[..1], Some(&again))
            } else {
                poll(&mut fds, Timespec::try_from(self.monitor.until_next_check()).ok().as_ref())
            };
            match polled {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(step_failed("watch the container")(errno)),
            }
            if !fds[0].revents().is_empty() {
                return Ok(());
            }
            self.exceeded = self.exceeded.or_else(|| self.monitor.exceeded(Some(starter)));
            self.is_ending |= !fds[1].revents().is_empty() || self.exceeded.is_some();
        }
    }
}

/// The last line of the runtime's standard error.
fn stderr_line(status: std::process::ExitStatus) -> String {
    let stderr = fs::read(STDERR_FILE).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&stderr);
    stderr
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .map_or_else(|| format!("the runtime ended with {status}"), str::to_owned)
}

/// Ends everything that a killed runtime left to this process.
fn end_all() {
    loop {
        end_children(rustix::process::getpid());
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Kills the children of a process, including adopted ones.
fn end_children(of: Pid) {
    let tasks = fs::read_dir(format!("/proc/{}/task", of.as_raw_nonzero())).into_iter().flatten().flatten();
    for list in tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok()) {
        for child in list.split_whitespace().filter_map(|to_pid| to_pid.parse().ok().and_then(Pid::from_raw))
        {
            end(child);
        }
    }
}
