//! The lifetime of a server's program, from before its start until it has ended completely.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::{Launch, LaunchedProgram, Program, Secrets};

/// Tracks all programs of a server: the current one, and those that are starting or ending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Programs(Arc<RwLock<()>>);

/// One program. Dropping it ends the program; that can block, so it happens on another thread.
pub(crate) struct ProgramHandle(Option<RunningProgram>);

/// Fields drop in order: first the program, then the guard that reports its presence.
struct RunningProgram {
    launched: LaunchedProgram,
    _presence: OwnedRwLockReadGuard<()>,
}

impl Programs {
    /// Starts a program. If the caller stops waiting, the program is ended as soon as it has started.
    pub(crate) async fn start(
        &self,
        launch: Arc<dyn Launch>,
        name: String,
        program: Program,
        secrets: Secrets,
    ) -> io::Result<ProgramHandle> {
        let presence = Arc::clone(&self.0).read_owned().await;
        let start = move || {
            let launched = launch.launch(&name, &program, secrets)?;
            Ok(ProgramHandle(Some(RunningProgram { launched, _presence: presence })))
        };
        tokio::task::spawn_blocking(start).await.unwrap_or_else(|e| Err(io::Error::other(e)))
    }

    /// Waits until no program is running, starting or ending.
    pub(crate) async fn wait_until_none(&self) {
        drop(self.0.write().await);
    }
}

impl ProgramHandle {
    pub(crate) fn launched(&self) -> Option<&LaunchedProgram> {
        self.0.as_ref().map(|running| &running.launched)
    }
}

impl Drop for ProgramHandle {
    fn drop(&mut self) {
        let running = self.0.take();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(running));
        }
    }
}
