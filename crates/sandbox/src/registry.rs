//! The computers of this machine: opened on the first request of their user, closed after a while without use.
//!
//! A computer is looked up by its user's id, and only the guard does so, for the authenticated principal. No request
//! can name another user's computer.
//!
//! Every [`OpenComputer`] comes from here, so one without another handle is idle.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event_log::{EventLog, SqliteLog};
use futures_util::future::join_all;
use hypervisor::identity::User;
use kernel::run::RunPhase;
use shared_types::UserId;

use crate::open_computer::{OpenComputer, blocking};
use crate::supervision::Application;
use crate::welcome;
use agent_host::agent_services::AgentServices;
use computer::Computer;
use computer::client;
use computer::error::{ComputerError, ErrorCode};
use computer::paths::{ComputerPaths, STATE, WORKSPACE};

/// How long to wait until a failed computer is released.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(30);
const REOPEN_PAUSE: Duration = Duration::from_millis(50);
/// The minimum and maximum interval between checks for idle computers.
const IDLE_CHECK_INTERVALS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));

/// The open computers.
#[derive(Debug)]
pub struct Registry {
    users: PathBuf,
    services: AgentServices,
    application: Application,
    slots: Mutex<HashMap<UserId, Arc<UserSlot>>>,
}

/// The open computer of one user.
#[derive(Debug, Default)]
struct UserSlot {
    entry: Mutex<Option<OpenEntry>>,
    /// Locked while the computer is being opened or closed; other requests for it wait.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct OpenEntry {
    computer: OpenComputer,
    last_used: Instant,
}

impl UserSlot {
    fn entry(&self) -> MutexGuard<'_, Option<OpenEntry>> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The computer, if it is open; it counts as used.
    fn get(&self) -> Option<OpenComputer> {
        let mut entry = self.entry();
        let entry = entry.as_mut()?;
        entry.last_used = Instant::now();
        Some(entry.computer.clone())
    }

    /// Removes the computer if it has been idle for this long. Then the caller has the only handle.
    fn take_idle(&self, idle: Duration) -> Option<OpenComputer> {
        let mut entry = self.entry();
        let open = entry.as_mut()?;
        if open.computer.is_in_use() {
            open.last_used = Instant::now();
            return None;
        }
        if open.last_used.elapsed() < idle {
            return None;
        }
        entry.take().map(|entry| entry.computer)
    }
}

impl Registry {
    /// Computers below a data folder, and the services of their agents.
    pub fn new(data: &std::path::Path, services: AgentServices, application: Application) -> Self {
        Self { users: data.join("users"), services, application, slots: Mutex::default() }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<UserId, Arc<UserSlot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<UserSlot>> {
        self.slots().values().cloned().collect()
    }

    /// The folders of a user's computer.
    pub fn paths(&self, user: &UserId) -> ComputerPaths {
        let home = self.users.join(user.as_str());
        ComputerPaths { state: home.join(STATE), workspace: home.join(WORKSPACE) }
    }

    /// A user's computer. It is opened if it is closed, and created if there is none.
    pub async fn open_for(&self, user: &UserId, name: &str) -> Result<OpenComputer, ComputerError> {
        let slot = Arc::clone(self.slots().entry(user.clone()).or_default());
        if let Some(open_computer) = slot.get() {
            return Ok(open_computer);
        }
        let _opening = slot.opening.lock().await;
        // Another request may have opened it meanwhile.
        if let Some(open_computer) = slot.get() {
            return Ok(open_computer);
        }
        let open_computer = self.open(user, name).await?;
        *slot.entry() = Some(OpenEntry { computer: open_computer.clone(), last_used: Instant::now() });
        Ok(open_computer)
    }

    async fn open(&self, user: &UserId, name: &str) -> Result<OpenComputer, ComputerError> {
        let (paths, user, name) = (self.paths(user), user.clone(), name.to_owned());
        let computer = blocking(move || open(&paths, user, &name)).await?;
        OpenComputer::open_supervised(computer, &self.services, &self.application).await
    }

    /// Closes computers whose log failed and opens them again, for as long as this is polled.
    pub async fn reopen_failed(&self) {
        loop {
            let user = self.application.next_failed().await;
            let slot = Arc::clone(self.slots().entry(user.clone()).or_default());
            let _opening = slot.opening.lock().await;
            let failed = slot.entry().take();
            if let Some(failed) = failed {
                failed.computer.close().await;
            }
            // Tabs and requests release the old one shortly.
            let started = Instant::now();
            let opened = loop {
                match self.open(&user, "").await {
                    Err(e) if e.code == ErrorCode::Busy && started.elapsed() < REOPEN_TIMEOUT => {
                        tokio::time::sleep(REOPEN_PAUSE).await;
                    }
                    opened => break opened,
                }
            };
            match opened {
                Ok(computer) => *slot.entry() = Some(OpenEntry { computer, last_used: Instant::now() }),
                // The next request tries again.
                Err(failure) => tracing::error!(%user, %failure, "a computer could not be opened again"),
            }
        }
    }

    /// Opens the computers with unfinished runs, one after the other, so that their agents continue without a sign-in.
    pub async fn open_computers_with_runs(&self, users: &[User]) {
        for User { id, name, .. } in users {
            let paths = self.paths(id);
            let woken = match blocking(move || has_open_runs(&paths)).await {
                Ok(true) => self.open_for(id, name).await.map(drop),
                Ok(false) => Ok(()),
                Err(failure) => Err(failure),
            };
            if let Err(failure) = woken {
                tracing::warn!(user = %id, %failure, "cannot check for unfinished runs");
            }
        }
    }

    /// The computers that are open now.
    pub fn open_computers(&self) -> Vec<OpenComputer> {
        self.all()
            .iter()
            .filter_map(|slot| slot.entry().as_ref().map(|entry| entry.computer.clone()))
            .collect()
    }

    /// Closes computers that have been idle for this long, for as long as this is polled.
    pub async fn close_idle(&self, idle: Duration) {
        let (shortest, longest) = IDLE_CHECK_INTERVALS;
        loop {
            tokio::time::sleep((idle / 4).clamp(shortest, longest)).await;
            for slot in self.all() {
                let _opening = slot.opening.lock().await;
                if let Some(open_computer) = slot.take_idle(idle) {
                    open_computer.close().await;
                }
            }
        }
    }

    /// Closes all computers.
    pub async fn close(&self) {
        let slots = self.all();
        let closing = slots.iter().map(|slot| async {
            let _opening = slot.opening.lock().await;
            let entry = slot.entry().take();
            if let Some(entry) = entry {
                entry.computer.close().await;
            }
        });
        join_all(closing).await;
    }
}

fn has_open_runs(paths: &ComputerPaths) -> Result<bool, ComputerError> {
    if !paths.exists() {
        return Ok(false);
    }
    let log = SqliteLog::open_read_only(&paths.state)?;
    let view = event_log::replay::view_at(&log, log.head().seq)?;
    Ok(view.runs.iter().any(|(_, run)| run.phase == RunPhase::Working))
}

fn open(paths: &ComputerPaths, user: UserId, name: &str) -> Result<Computer, ComputerError> {
    if paths.exists() {
        return client::open_exclusive(paths);
    }
    std::fs::create_dir_all(&paths.workspace)?;
    let (computer, _) = Computer::create(paths, user, name, &|_, _, _| ())?;
    welcome::prepare(&computer)?;
    Ok(computer)
}
