//! One server: started on demand, restarted after it has ended, and paused after repeated failures.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::answer::{ToolAnswer, one_line};
use crate::connection::{CallFailure, Connection};
use crate::definition::{self, ToolDefinition};
use crate::process::Programs;
use crate::settings::{Endpoint, ServerSettings};
use crate::{Keys, Launch};

/// The time for a server to start and list its tools. Some download themselves first.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The time an agent waits for the list of tools before it continues without.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Failed starts in a row before the server is paused.
const MAX_FAILURES: u32 = 3;
const RETRY_AFTER: Duration = Duration::from_secs(60);
const CLOSING: &str = "the computer is being closed";

/// See the module documentation.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) settings: ServerSettings,
    launch: Arc<dyn Launch>,
    keys: Keys,
    /// The cache of its tools, so that they are the same after a crash.
    cache_file: PathBuf,
    known: Mutex<KnownState>,
    /// Locked while a caller starts the server; others wait.
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// Its current program, and earlier ones that are still ending.
    programs: Programs,
    /// Notified when a request for the tool list has finished, with or without success.
    answered: Notify,
    /// Notified when the server is ended for good.
    ended: Notify,
}

/// What is known about a server without asking it.
#[derive(Default)]
struct KnownState {
    tools: Option<Arc<Vec<ToolDefinition>>>,
    /// True if the tools were listed since this computer was opened.
    is_current: bool,
    /// When the pending request for the tool list began.
    asking_since: Option<Instant>,
    /// True once the server is ended for good.
    is_ended: bool,
    error: Option<String>,
    failures: u32,
    failed_at: Option<Instant>,
}

/// The cached tools, valid only for the same settings.
#[derive(Serialize, Deserialize)]
struct CachedTools {
    settings: String,
    tools: Vec<ToolDefinition>,
}

impl Server {
    pub(crate) fn new(
        name: String,
        settings: ServerSettings,
        launch: Arc<dyn Launch>,
        keys: Keys,
        cache_file: PathBuf,
    ) -> Self {
        Self {
            name,
            settings,
            launch,
            keys,
            cache_file,
            known: Mutex::default(),
            connection: tokio::sync::Mutex::default(),
            programs: Programs::default(),
            answered: Notify::new(),
            ended: Notify::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a tool is trusted to change nothing.
    pub(crate) fn is_read_only(&self, tool: &ToolDefinition) -> bool {
        self.settings.read_only.contains(&tool.tool) || self.settings.trust_hints && tool.hint
    }

    pub(crate) fn error(&self) -> Option<String> {
        self.known().error.clone()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.connection
            .try_lock()
            .is_ok_and(|connection| connection.as_ref().is_some_and(|connection| !connection.is_closed()))
    }

    /// Its tools: cached ones at once, otherwise those it lists in time. `None` if it does not answer.
    pub(crate) async fn tools(self: &Arc<Self>) -> Option<Arc<Vec<ToolDefinition>>> {
        let before = self.known_tools();
        let answered = self.answered.notified();
        tokio::pin!(answered);
        answered.as_mut().enable();
        let asking_since = self.ask();
        if let (None, Some(asking_since)) = (before, asking_since) {
            // All callers share one deadline, so a later caller does not wait the full time again.
            let _ = tokio::time::timeout_at((asking_since + LIST_TIMEOUT).into(), answered).await;
        }
        let mut known = self.known();
        if known.tools.is_none() && known.error.is_none() {
            known.error = Some("it has not answered yet".into());
        }
        known.tools.clone()
    }

    /// Requests the tool list, unless it is current or already requested; returns when the pending request began.
    fn ask(self: &Arc<Self>) -> Option<Instant> {
        let mut known = self.known();
        let is_due = known.failed_at.is_none_or(|failed_at| failed_at.elapsed() > RETRY_AFTER);
        if known.asking_since.is_none() && !known.is_current && is_due {
            known.asking_since = Some(Instant::now());
            let own = Arc::clone(self);
            // The request continues if the caller stops waiting; the next turn uses its result.
            tokio::spawn(async move {
                let _ = own.connection().await;
                own.known().asking_since = None;
                own.answered.notify_waiters();
            });
        }
        known.asking_since
    }

    /// Its known tools, without asking it.
    pub(crate) fn known_tools(&self) -> Option<Arc<Vec<ToolDefinition>>> {
        let mut known = self.known();
        if known.tools.is_none() {
            known.tools = self.read_cache().map(Arc::new);
        }
        known.tools.clone()
    }

    /// Starts it, if it is not running.
    pub(crate) async fn ensure_started(&self) {
        let _ = self.connection().await;
    }

    /// Calls a tool. A server that has ended is started first, once.
    pub(crate) async fn call(&self, tool: &str, input: Map<String, Value>) -> ToolAnswer {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(why) => {
                return ToolAnswer::failed(format!("the server {} does not answer: {why}", self.name));
            }
        };
        match connection.call(tool, input, self.settings.timeout).await {
            Ok(answer) => answer,
            Err(CallFailure::Refused(why)) => ToolAnswer::failed(why),
            Err(CallFailure::Disconnected(why)) => {
                self.disconnect(&connection).await;
                ToolAnswer::cut_off(format!("the server {} ended during the call: {why}", self.name))
            }
            Err(CallFailure::TimedOut) => {
                self.disconnect(&connection).await;
                let seconds = self.settings.timeout.as_secs();
                ToolAnswer::cut_off(format!("the server {} did not answer within {seconds} s", self.name))
            }
        }
    }

    /// Ends it for good, even while it is starting; returns when its program has ended completely.
    pub(crate) async fn end(&self) {
        self.known().is_ended = true;
        self.ended.notify_waiters();
        close(&mut *self.connection.lock().await);
        self.programs.wait_until_none().await;
    }

    /// Restarts it, regardless of earlier failures.
    pub(crate) async fn restart(&self) {
        close(&mut *self.connection.lock().await);
        self.reset_failures();
        self.ensure_started().await;
    }

    fn reset_failures(&self) {
        let mut known = self.known();
        (known.failures, known.failed_at) = (0, None);
    }

    async fn disconnect(&self, broken: &Arc<Connection>) {
        self.connection.lock().await.take_if(|connection| Arc::ptr_eq(connection, broken));
        broken.end();
    }

    /// The connection; starts the server if there is none.
    async fn connection(&self) -> Result<Arc<Connection>, String> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_closed())
            && connection.is_confined().await
        {
            return Ok(Arc::clone(connection));
        }
        close(&mut slot);
        let ended = self.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        self.may_start()?;
        let started = tokio::select! {
            started = tokio::time::timeout(START_TIMEOUT, self.start()) => started,
            () = ended => return Err(CLOSING.into()),
        };
        let late = || Err(format!("it did not start within {} s", START_TIMEOUT.as_secs()));
        self.record_start(started.unwrap_or_else(|_| late()), &mut slot)
    }

    /// Records the result of a start.
    fn record_start(
        &self,
        started: Result<(Connection, Vec<ToolDefinition>), String>,
        slot: &mut Option<Arc<Connection>>,
    ) -> Result<Arc<Connection>, String> {
        let mut known = self.known();
        match started {
            Ok((connection, tools)) => {
                known.error = None;
                (known.failures, known.failed_at) = (0, None);
                // A list that changes later is not used until the computer is opened again, so that a tool's meaning
                // cannot change after it was offered.
                if !known.is_current {
                    self.write_cache(&tools);
                    (known.tools, known.is_current) = (Some(Arc::new(tools)), true);
                }
                Ok(Arc::clone(slot.insert(Arc::new(connection))))
            }
            Err(why) => {
                tracing::debug!(server = self.name, why, "an MCP server did not start");
                known.error = Some(why.clone());
                known.failures += 1;
                known.failed_at = Some(Instant::now());
                Err(why)
            }
        }
    }

    /// Checks that the server is not paused after repeated failures.
    fn may_start(&self) -> Result<(), String> {
        let known = self.known();
        if known.is_ended {
            return Err(CLOSING.into());
        }
        let waiting =
            known.failed_at.map(|failed_at| failed_at.elapsed()).filter(|passed| *passed < RETRY_AFTER);
        match (waiting, &known.error) {
            (Some(passed), Some(error)) if known.failures >= MAX_FAILURES => {
                let seconds = (RETRY_AFTER - passed).as_secs() + 1;
                Err(format!("{error} (tried {} times; again in {seconds} s)", known.failures))
            }
            _ => Ok(()),
        }
    }

    async fn start(&self) -> Result<(Connection, Vec<ToolDefinition>), String> {
        let connection = match &self.settings.endpoint {
            Endpoint::Program(program) => {
                let launch = Arc::clone(&self.launch);
                Connection::to_program(&self.name, program, launch, &self.keys, &self.programs).await?
            }
            Endpoint::Address(address) => Connection::to_address(address, &self.keys).await?,
        };
        let tools = definition::define_tools(&self.name, connection.tools().await?);
        Ok((connection, tools))
    }

    /// Identifies the settings for which tools were cached. The prefix also invalidates caches from before secrets
    /// were redacted.
    fn fingerprint(&self) -> String {
        let digest = Sha256::digest(format!("without secrets: {:?}", self.settings.endpoint).as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    fn read_cache(&self) -> Option<Vec<ToolDefinition>> {
        let cached: CachedTools = serde_json::from_slice(&std::fs::read(&self.cache_file).ok()?).ok()?;
        (cached.settings == self.fingerprint()).then_some(cached.tools)
    }

    fn write_cache(&self, tools: &[ToolDefinition]) {
        let cached = CachedTools { settings: self.fingerprint(), tools: tools.to_vec() };
        let written = serde_json::to_vec(&cached).map_err(std::io::Error::from).and_then(|bytes| {
            if let Some(folder) = self.cache_file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let beside = self.cache_file.with_extension("new");
            std::fs::write(&beside, bytes)?;
            std::fs::rename(&beside, &self.cache_file)
        });
        if let Err(error) = written {
            let why = one_line(&error.to_string());
            tracing::warn!(server = self.name, why, "the tools of an MCP server could not be kept");
        }
    }
}

fn close(slot: &mut Option<Arc<Connection>>) {
    if let Some(connection) = slot.take() {
        connection.end();
    }
}

#[cfg(test)]
mod tests;
