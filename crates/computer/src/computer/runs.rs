//! Runs of agents, as the person sees and controls them.
//!
//! What a person does to a run is only recorded; agents follow the log and act on it. So nothing here knows how agents
//! work, and everything that is shown is read from the events of the run ([`run_record`]).

mod display;
mod follow;
#[allow(clippy::wildcard_enum_match_arm, reason = "only some event types are shown")]
mod lists;
mod questions;
#[allow(clippy::wildcard_enum_match_arm, reason = "as above")]
mod run_record;
#[allow(clippy::wildcard_enum_match_arm, reason = "as above")]
mod steps;
mod take_over;

use event_log::writer::{ChangeRequest, Mode};
use event_log::{EventLog, decode_event};
use kernel::{Action, Rejection, RunAction};
use shared_types::payload::capability::CapabilityEvent;
use shared_types::payload::run::{Budget, PauseReason, Reply, RunEvent, RunResume, RunStart, RunSteer};
use shared_types::wire::{ChangeResult, RunControl, RunLine, StartRun};
use shared_types::{
    AskId, ContentHash, ContentRef, Event, EventId, FilePath, GrantId, OpId, Payload, RunId, TaskId,
};
use tokio::sync::broadcast;

use super::{Caller, Computer, Progress};
use crate::error::{ComputerError, ErrorCode};
use crate::protocol::{Answer, RunRequest, RunResponse};

/// Characters of a title.
const MAX_TITLE_CHARS: usize = 80;
/// The largest objective or message of a person.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;
/// How many parts of speech wait for a listener. One that misses some has lost nothing: the whole reply is an event.
const SPEECH_BUFFER: usize = 256;

/// Text that an agent's model streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSpeech {
    pub run: RunId,
    pub task: TaskId,
    /// An empty text discards the text so far: the model starts again.
    pub text: String,
}

/// The role of the lead agent.
const LEAD_ROLE: &str = "conductor";

/// The settings for the budget of a run, and of all runs of a day.
pub const RUN_BUDGET_SETTING: &str = "runs.budget";
pub const DAILY_BUDGET_SETTING: &str = "runs.daily";

/// The setting for how many seconds a call that cannot be undone waits in the outbox, and its default.
pub const OUTBOX_SECONDS_SETTING: &str = "runs.outbox";
pub const DEFAULT_OUTBOX: u64 = 5;

/// The budget of a run, unless the settings or the request have another.
pub const DEFAULT_BUDGET: Budget =
    Budget { steps: Some(200), seconds: None, tokens: Some(3_000_000), micros: None };

/// The setting for the budget of one agent of a role. Resuming a run that reached it grants the same amount again.
pub fn agent_budget_setting(role: &str) -> String {
    format!("runs.agent.{role}")
}

/// The setting for the model of a role.
pub fn role_model_setting(role: &str) -> String {
    format!("models.role.{role}")
}

pub(super) fn speech_channel() -> broadcast::Sender<AgentSpeech> {
    broadcast::channel(SPEECH_BUFFER).0
}

/// The operation that the events of a run itself belong to.
pub(crate) fn operation_of(run: RunId) -> OpId {
    OpId::from_bytes(*run.as_bytes())
}

fn run_of(op: OpId) -> RunId {
    RunId::from_bytes(*op.as_bytes())
}

impl Computer {
    /// Sends streamed text of an agent to the tabs that listen now. It never waits, and nothing is stored.
    pub fn stream_speech(&self, speech: AgentSpeech) {
        let _ = self.speech.send(speech);
    }

    pub fn subscribe_speech(&self) -> broadcast::Receiver<AgentSpeech> {
        self.speech.subscribe()
    }

    pub(super) fn answer_about_runs(
        &self,
        caller: &Caller,
        request: &RunRequest,
        progress: Progress<'_>,
    ) -> Result<Answer, ComputerError> {
        let told = match request {
            RunRequest::Start(start) => RunResponse::Line(self.start_run(caller, start)?),
            RunRequest::List { before } => RunResponse::List(self.run_list(*before)?),
            RunRequest::Show { run } => {
                RunResponse::Details(Box::new(self.run_details(self.run_named(run)?)?))
            }
            RunRequest::Steps { run, before } => {
                RunResponse::Steps(self.run_steps(self.run_named(run)?, *before)?)
            }
            RunRequest::StepDetail { run, seq } => {
                RunResponse::StepDetail(Box::new(self.step_detail(self.run_named(run)?, *seq)?))
            }
            RunRequest::Control { run, control } => {
                let run = self.run_named(run)?;
                RunResponse::Line(self.control_run(caller, run, control)?)
            }
            RunRequest::Undo { run, choices, preview } => {
                let run = self.run_named(run)?;
                return Ok(Answer::Done(self.undo_run(caller, run, choices, *preview, progress)?));
            }
            RunRequest::Redo { run, choices, preview } => {
                let run = self.run_named(run)?;
                return Ok(Answer::Done(self.redo_run(caller, run, choices, *preview, progress)?));
            }
            RunRequest::Retry { run, step, choices, preview } => {
                let run = self.run_named(run)?;
                return Ok(Answer::Done(self.retry_run(caller, run, *step, choices, *preview, progress)?));
            }
            RunRequest::Questions => RunResponse::Questions(self.questions(None)?),
            RunRequest::Answer { ask, reply } => {
                RunResponse::Line(self.answer_question(caller, ask.as_deref(), reply)?)
            }
            RunRequest::Model => RunResponse::Model(self.model_of_role(LEAD_ROLE)?),
            RunRequest::Grants => RunResponse::Grants(self.grants()?),
            RunRequest::Revoke { grant } => return Ok(Answer::Done(self.revoke(caller, grant)?)),
            RunRequest::Follow { run, after } => {
                RunResponse::Line(self.follow_run(run, *after, &|| true, &mut |_| Ok(()))?)
            }
        };
        Ok(Answer::AgentRuns(told))
    }

    fn start_run(&self, caller: &Caller, start: &StartRun) -> Result<RunLine, ComputerError> {
        // On a resend, attached files need not exist any more.
        if self.log().answer(caller.origin.command)?.is_none() {
            self.check_attached(&start.attached)?;
        }
        let (objective, contents) = self.stage_message("an objective", &start.objective)?;
        let begin = RunStart {
            title: title(&start.objective).into(),
            objective,
            attached: start.attached.clone(),
            model: start.model.as_deref().map(str::trim).filter(|model| !model.is_empty()).map(Into::into),
            budget: self.budget_with_defaults(start.budget)?,
        };
        self.record_in_run(caller, start.run, RunAction::Start(begin), contents)?;
        self.run_line(start.run)
    }

    /// Fills absent limits from the settings.
    fn budget_with_defaults(&self, requested: Budget) -> Result<Budget, ComputerError> {
        let set = self.writer.inspect(|view| view.setting(RUN_BUDGET_SETTING))?;
        let set = set.and_then(|value| serde_json::from_value(value).ok()).unwrap_or(DEFAULT_BUDGET);
        Ok(Budget {
            steps: requested.steps.or(set.steps),
            seconds: requested.seconds.or(set.seconds),
            tokens: requested.tokens.or(set.tokens),
            micros: requested.micros.or(set.micros),
        })
    }

    /// Refuses a file to attach that does not exist.
    fn check_attached(&self, attached: &[FilePath]) -> Result<(), ComputerError> {
        let paths = attached.to_vec();
        let absent =
            self.writer.inspect(|view| paths.into_iter().find(|path| view.files.get(path).is_none()))?;
        absent.map_or(Ok(()), |path| Err(Rejection::NotFound { path }.into()))
    }

    fn stage_message(&self, what: &'static str, text: &str) -> Result<StagedMessage, ComputerError> {
        if text.trim().is_empty() {
            return Err(Rejection::Invalid { what, reason: "it is empty".into() }.into());
        }
        let size = text.len() as u64;
        if size > MAX_MESSAGE_BYTES {
            return Err(Rejection::TooLarge { what, size, limit: MAX_MESSAGE_BYTES }.into());
        }
        let staged = self.log().stage(&mut text.as_bytes())?;
        Ok((staged.content(), staged.into_inline().into_iter().collect()))
    }

    fn control_run(
        &self,
        caller: &Caller,
        run: RunId,
        control: &RunControl,
    ) -> Result<RunLine, ComputerError> {
        let (action, contents) = match control {
            RunControl::Steer { task, words } => {
                let (words, contents) = self.stage_message("a message", words)?;
                (RunAction::Steer(RunSteer { task: *task, words }), contents)
            }
            RunControl::Pause => (RunAction::Pause(PauseReason::Person), Vec::new()),
            RunControl::TakeOver => (RunAction::Pause(PauseReason::TakenOver), Vec::new()),
            RunControl::Resume { budget } => self.resume_action(run, RunResume { budget: *budget })?,
            RunControl::Stop => (RunAction::Cancel, Vec::new()),
            RunControl::Answer { ask, reply } => {
                (RunAction::Answer { ask: *ask, reply: reply.clone() }, Vec::new())
            }
            RunControl::Trust { task } => (RunAction::Trust(*task), Vec::new()),
        };
        let cause =
            if let RunControl::Answer { ask, .. } = control { self.ask_event(run, *ask) } else { None };
        self.record_in_run(&caller.clone().because_of(cause), run, action, contents)?;
        self.run_line(run)
    }

    /// The newest event of a question, which may have been asked again. An answer is recorded without it if it cannot be
    /// read.
    fn ask_event(&self, run: RunId, ask: AskId) -> Option<EventId> {
        let events = self.log.run(run).ok()?;
        let mut asks = events.iter().rev().filter(|stored| stored.name == "run.ask");
        let is_it =
            |payload: Payload| matches!(payload, Payload::Run(RunEvent::Ask(asked)) if asked.ask == ask);
        asks.find(|stored| decode_event(&*self.log, stored).is_ok_and(|event| is_it(event.payload)))
            .map(|stored| stored.id)
    }

    fn answer_question(
        &self,
        caller: &Caller,
        ask: Option<&str>,
        reply: &Reply,
    ) -> Result<RunLine, ComputerError> {
        // On a resend, the first request has closed the question.
        let answered = |event: Event| {
            let Payload::Run(RunEvent::Answer(answer)) = event.payload else { return None };
            Some((event.run_id?, answer.ask))
        };
        let (run, ask) = self.target(caller, answered, || self.question_named(ask))?;
        self.control_run(caller, run, &RunControl::Answer { ask, reply: reply.clone() })
    }

    fn revoke(&self, caller: &Caller, grant: &str) -> Result<ChangeResult, ComputerError> {
        let revoked = |event: Event| {
            let Payload::Capability(CapabilityEvent::Revoke(revoked)) = event.payload else { return None };
            Some(revoked.id)
        };
        let grant: GrantId = self.target(caller, revoked, || self.grant_named(grant))?;
        let change = ChangeRequest::Do(Action::Revoke { grant });
        let outcome = self.submit(caller, change, Vec::new(), Mode::Commit)?;
        Ok(self.describe(caller.origin.op, &outcome, Mode::Commit))
    }

    /// Records an action of the person in a run. It does not change files, so the caller does not wait for the
    /// projector.
    fn record_in_run(
        &self,
        caller: &Caller,
        run: RunId,
        action: RunAction,
        contents: Vec<(ContentHash, Vec<u8>)>,
    ) -> Result<(), ComputerError> {
        let caller = caller.clone().with_op(operation_of(run)).in_run(run);
        self.submit(&caller, ChangeRequest::Do(Action::Run(action)), contents, Mode::Commit).map(drop)
    }

    /// The run with an id or a part of it.
    pub(crate) fn run_named(&self, text: &str) -> Result<RunId, ComputerError> {
        if let Ok(run) = text.parse() {
            return Ok(run);
        }
        let known = self.writer.inspect(|view| view.runs.iter().map(|(id, _)| *id).collect::<Vec<_>>())?;
        if let Some(run) = unique_match(text, known, "run")? {
            return Ok(run);
        }
        match self.operation_named_as(text, "run") {
            Ok(op) => Ok(run_of(op)),
            Err(failure) if failure.code == ErrorCode::NotFound => Err(ComputerError::new(
                ErrorCode::NoRun,
                format!("there is no run {text}; choir runs lists them"),
            )),
            Err(failure) => Err(failure),
        }
    }
}

/// How many digits of an id lists show: the last ones.
const SHORT_ID_DIGITS: usize = 8;

type StagedMessage = (ContentRef, Vec<(ContentHash, Vec<u8>)>);

/// The only id that matches the text that a person typed: as a prefix, a suffix, or a prefix of the eight digits that
/// lists show. `None` if no id does.
fn unique_match<T: ToString>(text: &str, known: Vec<T>, what: &str) -> Result<Option<T>, ComputerError> {
    if text.chars().filter(char::is_ascii_hexdigit).count() < 4 {
        let message = format!("{text:?} is no {what}: give four or more digits of its id");
        return Err(ComputerError::new(ErrorCode::BadRequest, message));
    }
    let fits = |id: &T| {
        let id = id.to_string();
        let shown = &id[id.len().saturating_sub(SHORT_ID_DIGITS)..];
        id.starts_with(text) || id.ends_with(text) || shown.starts_with(text)
    };
    let mut found = known.into_iter().filter(fits);
    match (found.next(), found.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(ComputerError::new(
            ErrorCode::BadRequest,
            format!("more than one {what} matches {text}; give more digits"),
        )),
    }
}

/// One line of an objective, for lists.
fn title(objective: &str) -> String {
    let first = objective.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    display::line(first, MAX_TITLE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_cut_to_what_a_list_can_show() {
        assert_eq!(title("\n  Write a report \n about bees"), "Write a report");
        assert_eq!(title("tab\there\u{7}"), "tab here");
        let long = title(&"bee ".repeat(50));
        assert_eq!((long.chars().count(), long.ends_with('…')), (MAX_TITLE_CHARS, true), "{long}");
    }

    #[test]
    fn a_part_of_an_id_stands_for_the_one_that_it_fits() {
        let [a, b] = [1, 2].map(|byte| RunId::from_bytes([byte; 16]));
        assert_eq!(unique_match("0101", vec![a, b], "run").unwrap(), Some(a));
        assert_eq!(unique_match("0303", vec![a, b], "run").unwrap(), None);
        let listed: RunId = "019a8692-3480-7303-8303-0303f068a1b2".parse().unwrap();
        let like_it: RunId = "019a8692-3480-7303-8303-0303f068ffff".parse().unwrap();
        assert_eq!(unique_match("f068", vec![a, listed], "run").unwrap(), Some(listed));
        assert_eq!(unique_match("f068a1", vec![like_it, listed], "run").unwrap(), Some(listed));
        let several = unique_match("f068", vec![like_it, listed], "run").unwrap_err();
        assert_eq!((several.code, several.message.contains("more than one")), (ErrorCode::BadRequest, true));
        assert_eq!(unique_match("01", vec![a, b], "run").unwrap_err().code, ErrorCode::BadRequest);
        assert_eq!(unique_match("0101", vec![a, a], "run").unwrap_err().code, ErrorCode::BadRequest);
    }
}
