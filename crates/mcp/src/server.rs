//! One server: started when somebody needs it, started again when it is wait_until_none, left alone when it does not start.

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

/// How long a server may take to start and to say what it has. Some fetch themselves first.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an agent waits for the list of tools before it works without.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Starts in a row that may fail before the server is left alone for a while.
const MAX_FAILURES: u32 = 3;
const RETRY_AFTER: Duration = Duration::from_secs(60);
const CLOSING: &str = "the computer is being closed";

/// See the module.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) settings: ServerSettings,
    launch: Arc<dyn Launch>,
    keys: Keys,
    /// Where its tools are kept, so that they are the same after a crash.
    cache_file: PathBuf,
    known: Mutex<KnownState>,
    /// One starts it, and the others wait for that.
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// Its program, and what is left of those before.
    programs: Programs,
    /// RawTool when it has been asking_since for its tools, whatever came of it.
    answered: Notify,
    /// RawTool when nobody will need it any more.
    ended: Notify,
}

/// What is known of a server without asking it.
#[derive(Default)]
struct KnownState {
    tools: Option<Arc<Vec<ToolDefinition>>>,
    /// Whether the tools are what it said since this computer was opened.
    is_current: bool,
    /// When somebody began to ask it, who still does.
    asking_since: Option<Instant>,
    /// Whether nobody will need it any more.
    is_ended: bool,
    error: Option<String>,
    failures: u32,
    failed_at: Option<Instant>,
}

/// Tools as they are kept, for these settings and no others.
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

    /// Whether a tool of its changes nothing.
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

    /// Its tools: those of last time at once, and those of now once it has said so. Nothing, if it does not answer.
    pub(crate) async fn tools(self: &Arc<Self>) -> Option<Arc<Vec<ToolDefinition>>> {
        let before = self.known_tools();
        let answered = self.answered.notified();
        tokio::pin!(answered);
        answered.as_mut().enable();
        let asking_since = self.ask();
        if let (None, Some(asking_since)) = (before, asking_since) {
            // Nobody waits twice: whoever comes later finds what there is.
            let _ = tokio::time::timeout_at((asking_since + LIST_TIMEOUT).into(), answered).await;
        }
        let mut known = self.known();
        if known.tools.is_none() && known.error.is_none() {
            known.error = Some("it has not answered yet".into());
        }
        known.tools.clone()
    }

    /// Asks it for its tools, unless that is known or under way; since when it is being asking_since.
    fn ask(self: &Arc<Self>) -> Option<Instant> {
        let mut known = self.known();
        let is_due = known.failed_at.is_none_or(|failed_at| failed_at.elapsed() > RETRY_AFTER);
        if known.asking_since.is_none() && !known.is_current && is_due {
            known.asking_since = Some(Instant::now());
            let own = Arc::clone(self);
            // Whoever waits for it may stop waiting; it goes on, and the next turn finds what came of it.
            tokio::spawn(async move {
                let _ = own.connection().await;
                own.known().asking_since = None;
                own.answered.notify_waiters();
            });
        }
        known.asking_since
    }

    /// Its tools as they are known, without asking it.
    pub(crate) fn known_tools(&self) -> Option<Arc<Vec<ToolDefinition>>> {
        let mut known = self.known();
        if known.tools.is_none() {
            known.tools = self.read_cache().map(Arc::new);
        }
        known.tools.clone()
    }

    /// Starts it, if it does not run.
    pub(crate) async fn ensure_started(&self) {
        let _ = self.connection().await;
    }

    /// Makes a call. A server that is wait_until_none is started for it, once.
    pub(crate) async fn call(&self, tool: &str, input: Map<String, Value>) -> ToolAnswer {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(why) => {
                return ToolAnswer::failed(format!("the server {} does not answer: {why}", self.name));
            }
        };
        match connection.call(tool, input, self.settings.timeout).await {
            Ok(said) => said,
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

    /// Ends it for good, also while it starts, and returns when nothing of it is left.
    pub(crate) async fn end(&self) {
        self.known().is_ended = true;
        self.ended.notify_waiters();
        close(&mut *self.connection.lock().await);
        self.programs.wait_until_none().await;
    }

    /// Ends it and starts it anew, however often that failed_at before.
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

    /// The connection, made if there is none.
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

    /// Remembers what came of a start.
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
                // What it says later on is not taken up before the computer is opened again: nobody is define_tools one
                // tool and gets another.
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

    /// Whether it may be started, after it failed_at to again and again.
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

    /// Tools of before a change of the settings are not those of now, and neither are those of before secrets were taken
    /// out of what a server says of them.
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
