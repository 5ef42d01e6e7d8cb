//! Executes the steps of a run. A job has its own copy of the history. It records its result before it ends, and the run
//! learns of the result by the recorded event.

mod call;
mod coordination;
mod end;
mod external_tools;
mod files;
mod outbox;
mod turn;

use std::sync::{Arc, Mutex, PoisonError};

use kernel::{Action, Origin, RunAction};
use models::chat::Reply;
use shared_types::payload::run::PauseReason;
use shared_types::payload::task::TaskStart;
use shared_types::{
    Actor, ContentHash, ContentRef, EventId, INLINE_LIMIT, OpId, RunId, Seq, Source, Taint, TaskId,
};
use tokio::sync::Notify;

use crate::environment::AgentEnvironment;
use crate::history::History;
use crate::plan::PlannedStep;
use crate::port::{AgentSubmission, ComputerPort, PortError};
use crate::roles::Role;
use crate::shorten::one_line;
use crate::transcript::Texts;
use call::PlannedCall;

/// Bytes of texts that a run caches; other texts are read again.
const TEXT_CACHE_BYTES: usize = 16 << 20;
/// The pause before a step that could not be recorded is recorded again.
const RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(2);

/// One step of a run in progress.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) environment: Arc<AgentEnvironment>,
    pub(crate) history: Arc<History>,
    pub(crate) texts: Arc<Mutex<Texts>>,
    /// The most that the turns of this run in progress can use.
    pub(crate) reserved: Arc<Mutex<crate::budget::Reserved>>,
    /// Whether no process works on the open call that this job stops.
    pub(crate) is_orphaned: bool,
    /// Notified when the turn in progress is no longer needed.
    pub(crate) cancelled: Arc<Notify>,
}

/// A content that is ready to be recorded. Large contents are stored already; small ones have their bytes here.
pub(crate) struct StagedContent {
    pub(crate) content: ContentRef,
    pub(crate) bytes: Option<(ContentHash, Vec<u8>)>,
}

impl Job {
    /// Executes a step. Returns the position of its last event, if it recorded any.
    pub(crate) async fn run(self, step: PlannedStep) -> Result<Option<Seq>, PortError> {
        match step {
            PlannedStep::Begin => self.begin().await,
            PlannedStep::TakeTurn { task } => self.take_turn(task).await,
            PlannedStep::MakeCall { task, call, index, reply, permission, is_released } => {
                let planned = PlannedCall { op: call, index, reply, permission, is_released };
                self.make_call(task, planned).await
            }
            PlannedStep::Release { task, call, until } => self.release(task, call, until).await,
            PlannedStep::AskRepeat { task, call } => self.ask_repeat(task, call).await,
            PlannedStep::EndTask { task, outcome, text } => self.end_task(task, outcome, text).await,
            PlannedStep::Complete { text } => self.complete(text).await,
            PlannedStep::Fail { reason } => self.record(RunAction::Fail { reason }, Vec::new()).await,
            PlannedStep::StopCall { call } => self.stop_call(call).await,
        }
    }

    fn port(&self) -> &dyn ComputerPort {
        &*self.environment.port
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
        let staged = self.stage(objective.into_bytes()).await?;
        let task = TaskStart {
            task: self.history.root_task(),
            parent: None,
            role: Role::Conductor.name().into(),
            title: title.into(),
            instruction: staged.content,
        };
        self.record(RunAction::StartTask(task), staged.bytes.into_iter().collect()).await
    }

    /// Pauses the run with a reason that only the person can deal with.
    pub(crate) async fn pause(self, why: Box<str>) -> Result<Option<Seq>, PortError> {
        let why = if why.is_empty() { "the next step was refused".into() } else { why };
        self.record(RunAction::Pause(PauseReason::Model(why)), Vec::new()).await
    }

    /// Pauses the run because a budget is used up. The person can raise it and continue.
    async fn pause_for_budget(&self, why: String) -> Result<Option<Seq>, PortError> {
        self.record(RunAction::Pause(PauseReason::Budget(why.into())), Vec::new()).await
    }

    /// Stops a call: its running command is stopped, or, if nothing runs any more, its result is recorded here.
    async fn stop_call(&self, call: OpId) -> Result<Option<Seq>, PortError> {
        if !self.is_orphaned {
            self.port().stop(call);
            return Ok(None);
        }
        let status = shared_types::payload::tool::ToolStatus::Stopped {
            why: shared_types::payload::tool::StopReason::Cancelled,
        };
        let action = Action::FinishCall { status, report: Default::default(), edits: Vec::new() };
        self.submit(call, Actor::CHOIR, None, Vec::new(), action, Vec::new()).await
    }

    /// Records an action of the harness in the run.
    async fn record(
        &self,
        action: RunAction,
        contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Option<Seq>, PortError> {
        let op = OpId::from_bytes(*self.id().as_bytes());
        let cause = self.history.newest_event();
        self.submit(op, Actor::CHOIR, cause, Vec::new(), Action::Run(action), contents).await
    }

    /// Records an action of an agent, with the agent's taint labels.
    async fn record_by(
        &self,
        task: TaskId,
        action: RunAction,
        contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Option<Seq>, PortError> {
        let op = OpId::from_bytes(*self.id().as_bytes());
        let cause = self.history.newest_event_of(task);
        self.submit(op, self.actor(task), cause, self.taint(task), Action::Run(action), contents).await
    }

    /// Submits an action in a call of an agent.
    async fn submit_in_call(
        &self,
        task: TaskId,
        call: OpId,
        taint: Vec<Taint>,
        action: Action,
        contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Option<Seq>, PortError> {
        let cause = self
            .history
            .request_of(call)
            .filter(|_| matches!(action, Action::StartCall(_) | Action::MakeCall { .. }));
        self.submit(call, self.actor(task), cause, taint, action, contents).await
    }

    /// Submits an action, and retries while the computer is unavailable.
    async fn submit(
        &self,
        op: OpId,
        actor: Actor,
        cause: Option<EventId>,
        taint: Vec<Taint>,
        action: Action,
        contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<Option<Seq>, PortError> {
        let origin = Origin { cause, taint, ..self.origin(op, actor) };
        let submission = AgentSubmission { origin, action, contents };
        loop {
            match self.port().record(submission.clone()).await {
                // The step may have cost money, so its result is kept until it can be recorded.
                Err(PortError::Unavailable(why)) => {
                    tracing::warn!(run = %self.id(), why, "cannot record a step; retrying");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                other => return other,
            }
        }
    }

    fn origin(&self, op: OpId, actor: Actor) -> Origin {
        let origin = Origin::new(self.port().new_command(), op, Source::Agent, actor);
        Origin { run_id: Some(self.id()), ..origin }
    }

    fn actor(&self, task: TaskId) -> Actor {
        let role = self.history.tasks.get(&task).map_or("choir", |task| &*task.role);
        Actor::parse(role).unwrap_or(Actor::CHOIR)
    }

    fn taint(&self, task: TaskId) -> Vec<Taint> {
        self.history.task(task).map(|task| task.taint.clone()).unwrap_or_default()
    }

    /// Prepares a content to be recorded. A large one is stored now, a small one is stored with the event that refers to it.
    async fn stage(&self, bytes: Vec<u8>) -> Result<StagedContent, PortError> {
        if bytes.len() <= INLINE_LIMIT {
            let content = ContentRef::of(&bytes);
            return Ok(StagedContent { content, bytes: Some((content.hash, bytes)) });
        }
        Ok(StagedContent { content: self.port().store_content(bytes).await?, bytes: None })
    }

    /// Prepares a text to be recorded, and caches it because the model will read it next.
    async fn stage_text(&self, text: String) -> Result<StagedContent, PortError> {
        let cached: Arc<str> = text.as_str().into();
        let staged = self.stage(text.into_bytes()).await?;
        cache_text(&mut self.texts(), staged.content.hash, cached);
        Ok(staged)
    }

    /// The text of a content, from the cache if it is there.
    async fn text(&self, hash: ContentHash) -> Result<Arc<str>, PortError> {
        if let Some(known) = self.texts().get(&hash) {
            return Ok(Arc::clone(known));
        }
        let bytes = self.port().content(hash).await?;
        let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
        cache_text(&mut self.texts(), hash, Arc::clone(&text));
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

/// Caches a text, and drops all others when the cache is full: a run lasts for days and reads megabytes.
fn cache_text(texts: &mut Texts, hash: ContentHash, text: Arc<str>) {
    let cached: usize = texts.values().map(|text| text.len()).sum();
    if cached + text.len() > TEXT_CACHE_BYTES {
        texts.clear();
    }
    texts.insert(hash, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_cache_stays_within_its_limit() {
        let mut texts = Texts::new();
        for number in 0_u8..40 {
            let text = "x".repeat(1 << 20);
            cache_text(&mut texts, ContentHash::of(&[number]), text.into());
            let bytes: usize = texts.values().map(|text| text.len()).sum();
            assert!(bytes <= TEXT_CACHE_BYTES, "{bytes} bytes after {number} texts");
            assert!(texts.contains_key(&ContentHash::of(&[number])), "the newest text is cached");
        }
    }
}
