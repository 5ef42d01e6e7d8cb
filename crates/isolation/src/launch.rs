//! The host's side of a launched cell: starts the launcher, connects to the cell init, and reads the launcher's final
//! report. The launcher alone knows how the isolation is built.

use std::io::Read;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::cell::{Cell, Command, ExecError, Exit, PipedCommand, Pty, Sink, Size, StartError, Status, Usage};
use crate::cgroup;
use crate::frames::{Body, Frame};
use crate::launch_report::LaunchReport;
use crate::policy::{Limit, Policy};
use crate::session::ControlSession;

/// A launcher that has been started and has received the first part of its instructions. Dropping it ends the launcher.
#[derive(Debug)]
pub(crate) struct PendingLaunch {
    control: Option<UnixStream>,
    launcher: Option<Child>,
    groups: Vec<PathBuf>,
}

impl PendingLaunch {
    pub(crate) fn start(
        program: &Path,
        argument: &str,
        instructions: Vec<u8>,
        groups: Vec<PathBuf>,
    ) -> Result<Self, StartError> {
        let (ours, theirs) = UnixStream::pair().map_err(StartError::Launcher)?;
        let launcher = Program::new(program)
            .arg(argument)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(StartError::Launcher)?;
        let mut pending = Self { control: Some(ours), launcher: Some(launcher), groups };
        pending.send(instructions)?;
        Ok(pending)
    }

    fn send(&mut self, instructions: Vec<u8>) -> Result<(), StartError> {
        let Some(control) = self.control.as_mut() else { return Err(StartError::Died) };
        Frame::new(0, Body::Launch(instructions)).send(control).map_err(StartError::Launcher)
    }

    /// Sends the rest of the instructions and waits until the cell init is ready.
    pub(crate) fn finish(
        mut self,
        instructions: Vec<u8>,
        policy: &Policy,
    ) -> Result<LaunchedCell, StartError> {
        let ready = self.send(instructions).and_then(|()| {
            let Some(mut control) = self.control.take() else { return Err(StartError::Died) };
            let listener = if policy.network.is_none() { None } else { receive_listener(&control) };
            match Frame::receive(&mut control) {
                Ok(Some(Frame { body: Body::Ready, .. })) => Ok((control, listener)),
                Ok(_) | Err(_) => Err(StartError::Died),
            }
        });
        let (control, listener) = ready.map_err(|error| self.explain(error))?;
        let session =
            ControlSession::start(Box::new(control), policy.clone()).map_err(StartError::Launcher)?;
        let (launcher, groups) = (self.launcher.take(), std::mem::take(&mut self.groups));
        let launcher = Mutex::new(Launcher { process: launcher, usage: Usage::default(), groups });
        Ok(LaunchedCell { session, listener: Mutex::new(listener), launcher })
    }

    /// Prefers the failure that the launcher reports over the plain fact that it died.
    fn explain(&mut self, error: StartError) -> StartError {
        match serde_json::from_str(&self.end()) {
            Ok(LaunchReport::Failed { step, reason }) => StartError::Setup { step, reason },
            Ok(LaunchReport::Ended(_)) | Err(_) => error,
        }
    }

    /// Ends the launcher and returns its report as JSON.
    fn end(&mut self) -> String {
        self.control = None;
        let report = self.launcher.take().map(read_report);
        self.groups.drain(..).for_each(|folder| cgroup::remove(&folder));
        report.unwrap_or_default()
    }
}

impl Drop for PendingLaunch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits for a launcher to exit and returns the report from its standard output.
fn read_report(mut launcher: Child) -> String {
    let mut report = String::new();
    if let Some(out) = launcher.stdout.as_mut() {
        let _ = out.read_to_string(&mut report);
    }
    let _ = launcher.wait();
    report
}

/// A running cell that a launcher supervises.
#[derive(Debug)]
pub(crate) struct LaunchedCell {
    session: Arc<ControlSession>,
    listener: Mutex<Option<TcpListener>>,
    launcher: Mutex<Launcher>,
}

/// The launcher of a running cell, and the usage it reported at its end.
#[derive(Debug)]
struct Launcher {
    process: Option<Child>,
    usage: Usage,
    /// The cell's control groups. The launcher removes them itself unless it was killed.
    groups: Vec<PathBuf>,
}

impl LaunchedCell {
    fn launcher(&self) -> MutexGuard<'_, Launcher> {
        self.launcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces `Stopped` by the limit for which the launcher ended the cell, if there was one.
    fn with_limit(&self, status: Status) -> Status {
        if status != Status::Stopped {
            return status;
        }
        let usage = self.stop();
        let out_of_memory = (usage.out_of_memory > 0).then_some(Limit::Memory);
        usage.exceeded.or(out_of_memory).map_or(status, Status::Limited)
    }
}

impl Cell for LaunchedCell {
    fn exec(&self, command: &Command, output: Sink<'_>) -> Result<Exit, ExecError> {
        let exit = self.session.exec(command, output)?;
        Ok(Exit { status: self.with_limit(exit.status), ..exit })
    }

    fn pty(&self, command: &Command, size: Size) -> Result<Pty, ExecError> {
        self.session.pty(command, size)
    }

    fn spawn_piped(&self, command: &Command) -> Result<PipedCommand, ExecError> {
        self.session.spawn_piped(command)
    }

    fn take_listener(&self) -> Option<TcpListener> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn stop(&self) -> Usage {
        let mut launcher = self.launcher();
        self.session.close();
        if let Some(process) = launcher.process.take() {
            match serde_json::from_str(&read_report(process)) {
                Ok(LaunchReport::Ended(usage)) => launcher.usage = usage,
                Ok(LaunchReport::Failed { .. }) | Err(_) => {
                    launcher.groups.iter().for_each(|folder| cgroup::remove(folder));
                }
            }
        }
        launcher.usage
    }
}

impl Drop for LaunchedCell {
    fn drop(&mut self) {
        self.stop();
    }
}

fn receive_listener(control: &UnixStream) -> Option<TcpListener> {
    let mut byte = [0];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [std::io::IoSliceMut::new(&mut byte)];
    recvmsg(control.as_fd(), &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
    ancillary.drain().find_map(|message| {
        let RecvAncillaryMessage::ScmRights(mut fds) = message else { return None };
        fds.next().map(TcpListener::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_pending_launch_reaps_its_launcher() {
        let pending = PendingLaunch::start(Path::new("/bin/cat"), "-", Vec::new(), Vec::new()).unwrap();
        let process = format!("/proc/{}", pending.launcher.as_ref().unwrap().id());
        assert!(Path::new(&process).exists());
        drop(pending);
        assert!(!Path::new(&process).exists(), "the launcher is still running or a zombie");
    }
}
