//! One server: started when somebody needs it, started again when it is gone, left alone when it does not start.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::link::{Broken, Link};
use crate::offer::{self, Offered};
use crate::running::Programs;
use crate::settings::{ServerSettings, Way};
use crate::words::{Said, reason};
use crate::{Keys, Launch};

/// How long a server may take to start and to say what it has. Some fetch themselves first.
const START: Duration = Duration::from_secs(30);
/// How long an agent waits for the list of tools before it works without.
const PATIENCE: Duration = Duration::from_secs(5);
/// Starts in a row that may fail before the server is left alone for a while.
const ATTEMPTS: u32 = 3;
const REST: Duration = Duration::from_secs(60);
const CLOSING: &str = "the computer is being closed";

/// See the module.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) settings: ServerSettings,
    launch: Arc<dyn Launch>,
    keys: Keys,
    /// Where its tools are kept, so that they are the same after a crash.
    copy: PathBuf,
    known: Mutex<Known>,
    /// One starts it, and the others wait for that.
    link: tokio::sync::Mutex<Option<Arc<Link>>>,
    /// Its program, and what is left of those before.
    programs: Programs,
    /// Told when it has been asked for its tools, whatever came of it.
    answered: Notify,
    /// Told when nobody will need it any more.
    ended: Notify,
}

/// What is known of a server without asking it.
#[derive(Default)]
struct Known {
    tools: Option<Arc<Vec<Offered>>>,
    /// Whether the tools are what it said since this computer was opened.
    is_fresh: bool,
    /// When somebody began to ask it, who still does.
    asked: Option<Instant>,
    /// Whether nobody will need it any more.
    is_ended: bool,
    trouble: Option<String>,
    failures: u32,
    failed: Option<Instant>,
}

/// Tools as they are kept, for these settings and no others.
#[derive(Serialize, Deserialize)]
struct Copy {
    settings: String,
    tools: Vec<Offered>,
}

impl Server {
    pub(crate) fn new(
        name: String,
        settings: ServerSettings,
        launch: Arc<dyn Launch>,
        keys: Keys,
        copy: PathBuf,
    ) -> Self {
        Self {
            name,
            settings,
            launch,
            keys,
            copy,
            known: Mutex::default(),
            link: tokio::sync::Mutex::default(),
            programs: Programs::default(),
            answered: Notify::new(),
            ended: Notify::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a tool of its changes nothing.
    pub(crate) fn is_read_only(&self, tool: &Offered) -> bool {
        self.settings.read_only.contains(&tool.tool) || self.settings.trust_hints && tool.hint
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.known().trouble.clone()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.link.try_lock().is_ok_and(|link| link.as_ref().is_some_and(|link| !link.is_over()))
    }

    /// Its tools: those of last time at once, and those of now once it has said so. Nothing, if it does not answer.
    pub(crate) async fn tools(self: &Arc<Self>) -> Option<Arc<Vec<Offered>>> {
        let before = self.known_tools();
        let answered = self.answered.notified();
        tokio::pin!(answered);
        answered.as_mut().enable();
        let asked = self.ask();
        if let (None, Some(asked)) = (before, asked) {
            // Nobody waits twice: whoever comes later finds what there is.
            let _ = tokio::time::timeout_at((asked + PATIENCE).into(), answered).await;
        }
        let mut known = self.known();
        if known.tools.is_none() && known.trouble.is_none() {
            known.trouble = Some("it has not answered yet".into());
        }
        known.tools.clone()
    }

    /// Asks it for its tools, unless that is known or under way; since when it is being asked.
    fn ask(self: &Arc<Self>) -> Option<Instant> {
        let mut known = self.known();
        let is_due = known.failed.is_none_or(|failed| failed.elapsed() > REST);
        if known.asked.is_none() && !known.is_fresh && is_due {
            known.asked = Some(Instant::now());
            let own = Arc::clone(self);
            // Whoever waits for it may stop waiting; it goes on, and the next turn finds what came of it.
            tokio::spawn(async move {
                let _ = own.link().await;
                own.known().asked = None;
                own.answered.notify_waiters();
            });
        }
        known.asked
    }

    /// Its tools as they are known, without asking it.
    pub(crate) fn known_tools(&self) -> Option<Arc<Vec<Offered>>> {
        let mut known = self.known();
        if known.tools.is_none() {
            known.tools = self.read_copy().map(Arc::new);
        }
        known.tools.clone()
    }

    /// Starts it, if it does not run.
    pub(crate) async fn reach(&self) {
        let _ = self.link().await;
    }

    /// Makes a call. A server that is gone is started for it, once.
    pub(crate) async fn call(&self, tool: &str, input: Map<String, Value>) -> Said {
        let link = match self.link().await {
            Ok(link) => link,
            Err(why) => return Said::failed(format!("the server {} does not answer: {why}", self.name)),
        };
        match link.call(tool, input, self.settings.patience).await {
            Ok(said) => said,
            Err(Broken::Refused(why)) => Said::failed(why),
            Err(Broken::Gone(why)) => {
                self.forget(&link).await;
                Said::cut_off(format!("the server {} ended during the call: {why}", self.name))
            }
            Err(Broken::Silent) => {
                self.forget(&link).await;
                let seconds = self.settings.patience.as_secs();
                Said::cut_off(format!("the server {} did not answer within {seconds} s", self.name))
            }
        }
    }

    /// Ends it for good, also while it starts, and returns when nothing of it is left.
    pub(crate) async fn end(&self) {
        self.known().is_ended = true;
        self.ended.notify_waiters();
        let_go(&mut *self.link.lock().await);
        self.programs.gone().await;
    }

    /// Ends it and starts it anew, however often that failed before.
    pub(crate) async fn restart(&self) {
        let_go(&mut *self.link.lock().await);
        self.forgive();
        self.reach().await;
    }

    fn forgive(&self) {
        let mut known = self.known();
        (known.failures, known.failed) = (0, None);
    }

    async fn forget(&self, broken: &Arc<Link>) {
        self.link.lock().await.take_if(|link| Arc::ptr_eq(link, broken));
        broken.end();
    }

    /// The connection, made if there is none.
    async fn link(&self) -> Result<Arc<Link>, String> {
        let mut place = self.link.lock().await;
        if let Some(link) = place.as_ref().filter(|link| !link.is_over())
            && link.is_confined().await
        {
            return Ok(Arc::clone(link));
        }
        let_go(&mut place);
        let ended = self.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        self.may_start()?;
        let started = tokio::select! {
            started = tokio::time::timeout(START, self.start()) => started,
            () = ended => return Err(CLOSING.into()),
        };
        let late = || Err(format!("it did not start within {} s", START.as_secs()));
        self.note(started.unwrap_or_else(|_| late()), &mut place)
    }

    /// Remembers what came of a start.
    fn note(
        &self,
        started: Result<(Link, Vec<Offered>), String>,
        place: &mut Option<Arc<Link>>,
    ) -> Result<Arc<Link>, String> {
        let mut known = self.known();
        match started {
            Ok((link, tools)) => {
                known.trouble = None;
                (known.failures, known.failed) = (0, None);
                // What it says later on is not taken up before the computer is opened again: nobody is offered one
                // tool and gets another.
                if !known.is_fresh {
                    self.write_copy(&tools);
                    (known.tools, known.is_fresh) = (Some(Arc::new(tools)), true);
                }
                Ok(Arc::clone(place.insert(Arc::new(link))))
            }
            Err(why) => {
                tracing::debug!(server = self.name, why, "an MCP server did not start");
                known.trouble = Some(why.clone());
                known.failures += 1;
                known.failed = Some(Instant::now());
                Err(why)
            }
        }
    }

    /// Whether it may be started, after it failed to again and again.
    fn may_start(&self) -> Result<(), String> {
        let known = self.known();
        if known.is_ended {
            return Err(CLOSING.into());
        }
        let rests = known.failed.map(|failed| failed.elapsed()).filter(|passed| *passed < REST);
        match (rests, &known.trouble) {
            (Some(passed), Some(trouble)) if known.failures >= ATTEMPTS => {
                let seconds = (REST - passed).as_secs() + 1;
                Err(format!("{trouble} (tried {} times; again in {seconds} s)", known.failures))
            }
            _ => Ok(()),
        }
    }

    async fn start(&self) -> Result<(Link, Vec<Offered>), String> {
        let link = match &self.settings.way {
            Way::Program(program) => {
                let launch = Arc::clone(&self.launch);
                Link::to_program(&self.name, program, launch, &self.keys, &self.programs).await?
            }
            Way::Address(address) => Link::to_address(address, &self.keys).await?,
        };
        let tools = offer::offered(&self.name, link.tools().await?);
        Ok((link, tools))
    }

    /// Tools of before a change of the settings are not those of now, and neither are those of before secrets were taken
    /// out of what a server says of them.
    fn fingerprint(&self) -> String {
        let digest = Sha256::digest(format!("without secrets: {:?}", self.settings.way).as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    fn read_copy(&self) -> Option<Vec<Offered>> {
        let copy: Copy = serde_json::from_slice(&std::fs::read(&self.copy).ok()?).ok()?;
        (copy.settings == self.fingerprint()).then_some(copy.tools)
    }

    fn write_copy(&self, tools: &[Offered]) {
        let copy = Copy { settings: self.fingerprint(), tools: tools.to_vec() };
        let written = serde_json::to_vec(&copy).map_err(std::io::Error::from).and_then(|bytes| {
            if let Some(folder) = self.copy.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let beside = self.copy.with_extension("new");
            std::fs::write(&beside, bytes)?;
            std::fs::rename(&beside, &self.copy)
        });
        if let Err(error) = written {
            let why = reason(&error.to_string());
            tracing::warn!(server = self.name, why, "the tools of an MCP server could not be kept");
        }
    }
}

fn let_go(place: &mut Option<Arc<Link>>) {
    if let Some(link) = place.take() {
        link.end();
    }
}

#[cfg(test)]
mod tests;
