//! A program from before its start until nothing of it is left.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::{Launch, LaunchedProgram, Program, Secrets};

/// All programs of a server: one, and those that are on their way in or out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Programs(Arc<RwLock<()>>);

/// One of them. Dropping it ends the program, which takes its time, so that is done apart from whoever lets go.
pub(crate) struct ProgramHandle(Option<RunningProgram>);

/// The program goes before the word that it is there.
struct RunningProgram {
    launched: LaunchedProgram,
    _here: OwnedRwLockReadGuard<()>,
}

impl Programs {
    /// Starts one. Where nobody waits for that any more, it is ended as soon as it has started.
    pub(crate) async fn start(
        &self,
        launch: Arc<dyn Launch>,
        name: String,
        program: Program,
        secrets: Secrets,
    ) -> io::Result<ProgramHandle> {
        let here = Arc::clone(&self.0).read_owned().await;
        let start = move || {
            let launched = launch.launch(&name, &program, secrets)?;
            Ok(ProgramHandle(Some(RunningProgram { launched, _here: here })))
        };
        tokio::task::spawn_blocking(start).await.unwrap_or_else(|e| Err(io::Error::other(e)))
    }

    /// Waits until there is none, also none that is just being started.
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
