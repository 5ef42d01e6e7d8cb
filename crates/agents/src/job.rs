//! Steps of a run being carried out. A job has its own copy of the history; whatever it comes to is recorded before it
//! ends, and reaches the run as an event.

mod call;
mod end;
mod files;
mod foreign;
mod outbox;
mod turn;
mod verbs;

use std::sync::{Arc, Mutex, PoisonError};

use kernel::{Action, RunAction};
use models::chat::Reply;
use shared_types::payload::run::PauseReason;
use shared_types::payload::task::TaskStart;
use shared_types::{Actor, ContentHash, ContentRef, EventId, INLINE_LIMIT, OpId, RunId, Seq, Taint, TaskId};
use tokio::sync::Notify;

use crate::environment::AgentEnvironment;
use crate::history::History;
use crate::plan::Act;
use crate::port::{AgentSubmission, ComputerPort, PortError};
use crate::roles::Role;
use crate::tools::one_line;
use crate::transcript::Texts;
use call::Wanted;

/// Bytes of texts that a run keeps at hand; whatever else is needed is read again.
const AT_HAND: usize = 16 << 20;
/// How long a step rests that could not be recorded.
const REST: std::time::Duration = std::time::Duration::from_secs(2);

/// What a job works with.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) kit: Arc<AgentEnvironment>,
    pub(crate) history: Arc<History>,
    pub(crate) texts: Arc<Mutex<Texts>>,
    /// What turns of this run that are under way take at most.
    pub(crate) reserved: Arc<Mutex<crate::budget::Reserved>>,
    /// Whether a call that is open in the log is being carried out by nobody.
    pub(crate) is_orphan: bool,
    /// Told when nobody waits for the turn any more that is being taken.
    pub(crate) unwanted: Arc<Notify>,
}

/// Bytes with the name under which they are recorded.
pub(crate) struct Kept {
    pub(crate) content: ContentRef,
    pub(crate) bytes: Option<(ContentHash, Vec<u8>)>,
}

impl Job {
    /// Carries a step out. Where the log stands with what came of it, if it came to anything.
    pub(crate) async fn run(self, act: Act) -> Result<Option<Seq>, PortError> {
        match act {
            Act::Begin => self.begin().await,
            Act::TakeTurn { task } => self.take_turn(task).await,
            Act::Make { task, call, place, reply, permission, is_released } => {
                let wanted = Wanted { op: call, place, reply, permission, is_released };
                self.make(task, wanted).await
            }
            Act::Release { task, call, until } => self.release(task, call, until).await,
            Act::AskRepeat { task, call } => self.ask_repeat(task, call).await,
            Act::End { task, outcome, words } => self.end(task, outcome, words).await,
            Act::Complete { words } => self.complete(words).await,
            Act::Fail { reason } => self.record(RunAction::Fail { reason }, Vec::new()).await,
            Act::Stop { call } => self.stop(call).await,
        }
    }

    fn port(&self) -> &dyn ComputerPort {
        &*self.kit.port
    }

    fn id(&self) -> RunId {
        self.history.id
    }

    async fn begin(&self) -> Result<Option<Seq>, PortError> {
        let Some(start) = self.history.start.clone() else { return Ok(None) };
        let mut objective = self.text(start.objective.hash).await?.to_string();
        if !start.attached.is_empty() {
            let list: Vec<String> = start.attached.iter().map(ToString::to_string).collect();
            objective = format!("{objective}\n\nFiles that the person put beside this: {}", list.join(", "));
        }
        let title = one_line(&objective);
        let kept = self.keep(objective.into_bytes()).await?;
        let task = TaskStart {
            task: self.history.first(),
            parent: None,
            role: Role::Conductor.name().into(),
            title: title.into(),
            instruction: kept.content,
        };
        self.record(RunAction::StartTask(task), kept.bytes.into_iter().collect()).await
    }

    /// Stands still for a reason that only the person can do something about.
    pub(crate) async fn pause(self, why: Box<str>) -> Result<Option<Seq>, PortError> {
        let why = if why.is_empty() { "the next step could not be taken".into() } else { why };
        self.record(RunAction::Pause(PauseReason::Model(why)), Vec::new()).await
    }

    /// Ends a call: whoever carries it out is told, and where nobody does, it is answered here.
    async fn stop(&self, call: OpId) -> Result<Option<Seq>, PortError> {
        if !self.is_orphan {
            self.port().stop(call);
            return Ok(None);
        }
        let status = shared_types::payload::tool::ToolStatus::Stopped {
            why: shared_types::payload::tool::StopReason::Cancelled,
        };
        let action = Action::FinishCall { status, report: Default::default(), edits: Vec::new() };
        self.deed(call, Actor::CHOIR, Vec::new(), action, Vec::new()).await
    }

    /// Records something that happens in the run as a whole.
    async fn record(
        &self,
        action: RunAction,
        contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Option<Seq>, PortError> {
        let op = OpId::from_bytes(*self.id().as_bytes());
        self.deed(op, Actor::CHOIR, Vec::new(), Action::Run(action), contents).await
    }

    /// Records something that an agent does: its labels go with it.
    async fn record_by(
        &self,
        task: TaskId,
        action: RunAction,
        contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Option<Seq>, PortError> {
        let op = OpId::from_bytes(*self.id().as_bytes());
        self.deed(op, self.actor(task), self.taint(task), Action::Run(action), contents).await
    }

    async fn deed(
        &self,
        op: OpId,
        actor: Actor,
        taint: Vec<Taint>,
        action: Action,
        contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Option<Seq>, PortError> {
        let cause: Option<EventId> = None;
        let command = self.port().new_command();
        let deed = AgentSubmission { command, op, run: self.id(), actor, cause, taint, action, contents };
        loop {
            match self.port().record(deed.clone()).await {
                // What was paid for is not paid for again: it waits until it can be recorded.
                Err(PortError::Unavailable(why)) => {
                    tracing::warn!(run = %self.id(), why, "a step cannot be recorded; it is tried again");
                    tokio::time::sleep(REST).await;
                }
                other => return other,
            }
        }
    }

    fn actor(&self, task: TaskId) -> Actor {
        let role = self.history.tasks.get(&task).map_or("choir", |task| &*task.role);
        Actor::parse(role).unwrap_or(Actor::CHOIR)
    }

    fn taint(&self, task: TaskId) -> Vec<Taint> {
        self.history.state(task).map(|task| task.taint.clone()).unwrap_or_default()
    }

    /// Bytes under their name: few travel with what names them, many are kept first.
    async fn keep(&self, bytes: Vec<u8>) -> Result<Kept, PortError> {
        if bytes.len() <= INLINE_LIMIT {
            let content = ContentRef::of(&bytes);
            return Ok(Kept { content, bytes: Some((content.hash, bytes)) });
        }
        Ok(Kept { content: self.port().keep(bytes).await?, bytes: None })
    }

    /// Keeps words that the agent or its model will read next, and remembers them.
    async fn keep_words(&self, words: String) -> Result<Kept, PortError> {
        let text: Arc<str> = words.as_str().into();
        let kept = self.keep(words.into_bytes()).await?;
        remember(&mut self.texts(), kept.content.hash, text);
        Ok(kept)
    }

    async fn text(&self, hash: ContentHash) -> Result<Arc<str>, PortError> {
        if let Some(known) = self.texts().get(&hash) {
            return Ok(Arc::clone(known));
        }
        let bytes = self.port().content(hash).await?;
        let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
        remember(&mut self.texts(), hash, Arc::clone(&text));
        Ok(text)
    }

    fn texts(&self) -> std::sync::MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reply(&self, content: ContentRef) -> Result<Option<Reply>, PortError> {
        let text = self.text(content.hash).await?;
        Ok(serde_json::from_str(&text).ok())
    }
}

/// Keeps a text at hand. Where there are too many, all others are let go: a run lasts for days, and reads megabytes.
fn remember(texts: &mut Texts, hash: ContentHash, text: Arc<str>) {
    let known: usize = texts.values().map(|text| text.len()).sum();
    if known + text.len() > AT_HAND {
        texts.clear();
    }
    texts.insert(hash, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_at_hand_than_there_is_room_for() {
        let mut texts = Texts::new();
        for number in 0_u8..40 {
            let text = "x".repeat(1 << 20);
            remember(&mut texts, ContentHash::of(&[number]), text.into());
            let bytes: usize = texts.values().map(|text| text.len()).sum();
            assert!(bytes <= AT_HAND, "{bytes} bytes after {number} texts");
            assert!(texts.contains_key(&ContentHash::of(&[number])), "what was read last is there");
        }
    }
}
