//! The host's side of a cell that a launcher builds: it starts the launcher, speaks to the agent inside, and waits for
//! the launcher's last word. What the walls are made of is the launcher's business.

use std::io::Read;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::cell::{
    Cell, Checkpoint, CheckpointError, Command, ExecError, Exit, Pty, Sink, Size, StartError, Status, Talk,
    Usage,
};
use crate::conversation::Conversation;
use crate::frames::{Body, Frame};
use crate::jail::Verdict;
use crate::jail::cgroup;
use crate::layer;
use crate::policy::{Limit, Policy};

/// A backend that starts launchers.
pub(crate) trait Launch: Send + Sync + std::fmt::Debug {
    fn launch(&self, policy: &Policy, scratch: &Path) -> Result<Running, StartError>;
}

/// One cell.
#[derive(Debug)]
pub(crate) struct Launched<L> {
    launch: L,
    policy: Policy,
    scratch: PathBuf,
    running: Mutex<Running>,
}

#[derive(Debug)]
pub(crate) struct Running {
    conversation: Arc<Conversation>,
    launcher: Option<Child>,
    listener: Option<TcpListener>,
    usage: Usage,
    /// Control groups, which the launcher removes, unless it was itself killed.
    groups: Vec<PathBuf>,
}

/// A launcher that has been started and told a first part of what it has to know. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Begun {
    control: Option<UnixStream>,
    launcher: Option<Child>,
    groups: Vec<PathBuf>,
}

impl Begun {
    pub(crate) fn start(
        program: &Path,
        argument: &str,
        part: Vec<u8>,
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
        let mut begun = Self { control: Some(ours), launcher: Some(launcher), groups };
        begun.tell(part)?;
        Ok(begun)
    }

    fn tell(&mut self, part: Vec<u8>) -> Result<(), StartError> {
        let Some(control) = self.control.as_mut() else { return Err(StartError::Died) };
        Frame::new(0, Body::Launch(part)).send(control).map_err(StartError::Launcher)
    }

    /// Tells the rest, and waits until the walls stand.
    pub(crate) fn finish(mut self, part: Vec<u8>, policy: &Policy) -> Result<Running, StartError> {
        let ready = self.tell(part).and_then(|()| {
            let Some(mut control) = self.control.take() else { return Err(StartError::Died) };
            let listener = if policy.network.is_none() { None } else { receive_listener(&control) };
            match Frame::receive(&mut control) {
                Ok(Some(Frame { body: Body::Ready, .. })) => Ok((control, listener)),
                Ok(_) | Err(_) => Err(StartError::Died),
            }
        });
        let (control, listener) = ready.map_err(|failure| self.explain(failure))?;
        let conversation =
            Conversation::start(Box::new(control), policy.clone()).map_err(StartError::Launcher)?;
        let (launcher, groups) = (self.launcher.take(), std::mem::take(&mut self.groups));
        Ok(Running { conversation, launcher, listener, usage: Usage::default(), groups })
    }

    /// What the launcher says of its failure, which is more than that it died.
    fn explain(&mut self, failure: StartError) -> StartError {
        let said = self.end();
        match serde_json::from_str(&said) {
            Ok(Verdict::Failed { step, reason }) => StartError::Walls { step, reason },
            Ok(Verdict::Over(_)) | Err(_) => failure,
        }
    }

    /// Lets the launcher go, and returns its last word.
    fn end(&mut self) -> String {
        self.control = None;
        let said = self.launcher.take().map(last_word);
        self.groups.drain(..).for_each(|folder| cgroup::remove(&folder));
        said.unwrap_or_default()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits for a launcher to end, and returns what it said last.
fn last_word(mut launcher: Child) -> String {
    let mut said = String::new();
    if let Some(out) = launcher.stdout.as_mut() {
        let _ = out.read_to_string(&mut said);
    }
    let _ = launcher.wait();
    said
}

impl Running {
    /// Ends everything inside and waits for it.
    fn stop(&mut self) -> Usage {
        self.conversation.close();
        if let Some(launcher) = self.launcher.take() {
            match serde_json::from_str(&last_word(launcher)) {
                Ok(Verdict::Over(usage)) => self.usage = usage,
                Ok(Verdict::Failed { .. }) | Err(_) => {
                    self.groups.iter().for_each(|folder| cgroup::remove(folder))
                }
            }
        }
        self.usage
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<L: Launch> Launched<L> {
    pub(crate) fn start(launch: L, policy: &Policy, scratch: &Path) -> Result<Self, StartError> {
        let running = Mutex::new(launch.launch(policy, scratch)?);
        Ok(Self { launch, policy: policy.clone(), scratch: scratch.to_owned(), running })
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn conversation(&self) -> Arc<Conversation> {
        Arc::clone(&self.running().conversation)
    }

    /// Why a cell was stopped under a command: the launcher knows if it was for a limit.
    fn reason(&self, conversation: &Arc<Conversation>, status: Status) -> Status {
        if status != Status::Stopped {
            return status;
        }
        let mut running = self.running();
        // It may be another one by now, put in place of the old.
        if !Arc::ptr_eq(&running.conversation, conversation) {
            return status;
        }
        let usage = running.stop();
        let starved = (usage.out_of_memory > 0).then_some(Limit::Memory);
        usage.met.or(starved).map_or(status, Status::Limited)
    }

    fn uppers(&self) -> Vec<PathBuf> {
        layer::uppers(&self.policy)
    }
}

impl<L: Launch> Cell for Launched<L> {
    fn exec(&self, command: &Command, output: Sink<'_>) -> Result<Exit, ExecError> {
        let conversation = self.conversation();
        let exit = conversation.exec(command, output)?;
        Ok(Exit { status: self.reason(&conversation, exit.status), ..exit })
    }

    fn pty(&self, command: &Command, size: Size) -> Result<Pty, ExecError> {
        self.conversation().pty(command, size)
    }

    fn talk(&self, command: &Command) -> Result<Talk, ExecError> {
        self.conversation().talk(command)
    }

    fn take_listener(&self) -> Option<TcpListener> {
        self.running().listener.take()
    }

    fn checkpoint(&self, into: &Path) -> Result<Checkpoint, CheckpointError> {
        if self.conversation().is_busy() {
            return Err(CheckpointError::Busy);
        }
        layer::copy_all(&self.uppers(), into).map_err(CheckpointError::Copy)?;
        Ok(Checkpoint { folder: into.to_owned() })
    }

    fn restore(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let mut running = self.running();
        // Under a mounted layer its folder may not change, so the cell is built anew over the old one.
        running.stop();
        layer::put_back(&checkpoint.folder, &self.uppers()).map_err(CheckpointError::Copy)?;
        *running = self.launch.launch(&self.policy, &self.scratch)?;
        Ok(())
    }

    fn stop(&self) -> Usage {
        // Whoever runs a command holds only the conversation, so this does not wait for it.
        self.running().stop()
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
    fn a_launcher_that_is_dropped_is_waited_for() {
        let begun = Begun::start(Path::new("/bin/cat"), "-", Vec::new(), Vec::new()).unwrap();
        let process = format!("/proc/{}", begun.launcher.as_ref().unwrap().id());
        assert!(Path::new(&process).exists());
        drop(begun);
        assert!(!Path::new(&process).exists(), "it is still there, if only to be waited for");
    }
}
