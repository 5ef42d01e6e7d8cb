//! What happens next in a run, computed from its history alone.
//!
//! A step is named by a [`Key`], so that whoever carries steps out knows which are under way already.

use kernel::run::{Run, RunPhase};
use shared_types::payload::llm::ReplyEnd;
use shared_types::payload::run::{AskKind, Reply};
use shared_types::payload::task::TaskOutcome;
use shared_types::{AskId, ContentRef, OpId, TaskId, Timestamp};

use crate::history::{History, TaskHistory};
use crate::roles::{self, Role};
use crate::rounds::rounds;
use crate::tools::{self, Verb};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// The first agent begins.
    Begin,
    /// A model takes a turn for an agent.
    TakeTurn {
        task: TaskId,
    },
    /// A call of an agent's is looked at, asked for or made.
    Make {
        task: TaskId,
        call: OpId,
        place: usize,
        reply: ContentRef,
        permission: Permission,
        /// Whether its time in the outbox is over.
        is_released: bool,
    },
    /// A call waits in the outbox until its time is up.
    Release {
        task: TaskId,
        call: OpId,
        until: Timestamp,
    },
    /// The person is asked whether a call that may have reached the outside is to be made again.
    AskRepeat {
        task: TaskId,
        call: OpId,
    },
    /// The work of an agent ends, and its requester is told.
    End {
        task: TaskId,
        outcome: TaskOutcome,
        words: Words,
    },
    /// The run ends.
    Complete {
        words: Words,
    },
    Fail {
        reason: Box<str>,
    },
    /// What still runs of a run that was ended is ended.
    Stop {
        call: OpId,
    },
}

/// What the person has said to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Nothing: the rules decide.
    Unasked,
    Said(Reply),
}

/// Where the words are that somebody is told at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Words {
    /// The text of a model's reply.
    Of(ContentRef),
    /// The summary in the call at this place of a reply.
    In(ContentRef, usize),
    These(Box<str>),
}

/// A name for a step: no two with the same name are under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    Run,
    Task(TaskId),
    Call(OpId),
    Release(OpId),
    Stop(OpId),
}

impl Act {
    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Begin | Self::Complete { .. } | Self::Fail { .. } => Key::Run,
            Self::TakeTurn { task } | Self::End { task, .. } => Key::Task(*task),
            Self::Make { call, .. } | Self::AskRepeat { call, .. } => Key::Call(*call),
            Self::Release { call, .. } => Key::Release(*call),
            Self::Stop { call } => Key::Stop(*call),
        }
    }
}

/// Everything that can happen now.
pub(crate) fn plan(history: &History) -> Vec<Act> {
    let Some(run) = history.run() else { return Vec::new() };
    match &run.phase {
        RunPhase::Working => working(history, run),
        RunPhase::Paused(_) => Vec::new(),
        RunPhase::Cancelled => put_away(history),
        RunPhase::Failed(_) | RunPhase::Completed => Vec::new(),
    }
}

fn working(history: &History, run: &Run) -> Vec<Act> {
    if run.tasks.is_empty() {
        return vec![Act::Begin];
    }
    let Some(first) = history.tasks.get(&history.first()) else { return Vec::new() };
    if let Some(outcome) = &first.outcome {
        return vec![over(first, outcome)];
    }
    history
        .tasks
        .values()
        .filter(|task| history.is_working(task.id))
        .flat_map(|task| next(history, run, task))
        .collect()
}

/// The run ends as its first agent did.
fn over(first: &TaskHistory, outcome: &TaskOutcome) -> Act {
    match outcome {
        TaskOutcome::Done => Act::Complete { words: last_words(first) },
        TaskOutcome::Failed(reason) => Act::Fail { reason: reason.clone() },
        TaskOutcome::Cancelled => Act::Fail { reason: "its first agent was stopped".into() },
    }
}

fn next(history: &History, run: &Run, task: &TaskHistory) -> Vec<Act> {
    if let Some(reason) = hopeless(history, task) {
        return give_up(history, task, reason);
    }
    let Some(turn) = task.last_turn() else { return vec![Act::TakeTurn { task: task.id }] };
    let is_waiting_for = |place: usize| {
        let earlier = turn.calls[..place].iter().filter(|wanted| task.result(wanted.call).is_none());
        tools::depends_on(&turn.calls[place].tool, earlier.map(|wanted| &*wanted.tool))
    };
    let unanswered = turn.calls.iter().enumerate().filter(|(place, wanted)| {
        // What one call of a turn writes the next may read or write again.
        task.result(wanted.call).is_none() && !is_waiting_for(*place)
    });
    let acts: Vec<Act> = unanswered
        .filter_map(|(place, wanted)| {
            let (task, call, reply) = (task.id, wanted.call, turn.reply);
            let (permission, is_released) = match said_to(history, run, call) {
                Said::Nothing => (Permission::Unasked, false),
                Said::Waits => return None,
                Said::Holds(until) => return Some(Act::Release { task, call, until }),
                Said::Asked(reply) => (Permission::Said(reply.clone()), false),
                Said::Released(permission) => (permission, true),
            };
            Some(Act::Make { task, call, place, reply, permission, is_released })
        })
        .collect();
    let is_answered = |at: usize| task.result(turn.calls[at].call).is_some();
    if !(0..turn.calls.len()).all(is_answered) {
        return acts;
    }
    let asked: Vec<_> =
        turn.calls.iter().filter_map(|wanted| repeat(history, run, task, wanted.call)).collect();
    if !asked.is_empty() {
        return asked.into_iter().flatten().collect();
    }
    let finished = turn.calls.iter().find(|wanted| {
        Verb::Finish.is(&wanted.tool) && task.result(wanted.call).is_some_and(|(status, _)| is_fine(status))
    });
    let is_waiting = history.helpers(task.id).next().is_some();
    let asked = task
        .parent
        .and_then(|parent| history.tasks.get(&parent))
        .is_some_and(|parent| task.has_asked(parent));
    // Whatever it was told since, it has to hear before it ends.
    if task.has_news(turn.seen) || task.stumbles() > 0 {
        return vec![Act::TakeTurn { task: task.id }];
    }
    match (finished, turn.calls.is_empty()) {
        (Some(_), _) | (None, true) if is_waiting => Vec::new(),
        (Some(_), _) | (None, true) => {
            vec![Act::End { task: task.id, outcome: TaskOutcome::Done, words: last_words(task) }]
        }
        // Whoever only handed work on has nothing to say before somebody comes back with it, and whoever asked waits
        // until the question was heard.
        (None, false) if asked || is_waiting && only_waits(task, turn.calls) => Vec::new(),
        (None, false) => vec![Act::TakeTurn { task: task.id }],
    }
}

/// What the person has said to a call that is not answered.
enum Said<'a> {
    Nothing,
    /// They have not answered yet.
    Waits,
    Asked(&'a Reply),
    /// It lies in the outbox.
    Holds(Timestamp),
    Released(Permission),
}

fn said_to<'a>(history: &'a History, run: &Run, call: OpId) -> Said<'a> {
    let (approval, outbox) = (approval_of(call), outbox_of(call));
    if let Some(AskKind::Outgoing { until, .. }) = run.ask(outbox).map(|ask| &ask.about) {
        return Said::Holds(*until);
    }
    if run.ask(approval).is_some() {
        return Said::Waits;
    }
    match (history.answers.get(&outbox), history.answers.get(&approval)) {
        (Some(no @ Reply::Deny(_)), _) => Said::Asked(no),
        (Some(_), Some(yes)) => Said::Released(Permission::Said(yes.clone())),
        // What was allowed without a word is judged again: a grant may have been revoked meanwhile.
        (Some(_), None) => Said::Released(Permission::Unasked),
        (None, Some(reply)) => Said::Asked(reply),
        (None, None) => Said::Nothing,
    }
}

/// A call that was interrupted waits until the person has said whether it may be made again.
fn repeat(history: &History, run: &Run, task: &TaskHistory, call: OpId) -> Option<Option<Act>> {
    let (status, _) = task.result(call)?;
    if !matches!(status, shared_types::payload::tool::ToolStatus::Interrupted { .. }) {
        return None;
    }
    let ask = repeat_of(call);
    match (history.answers.contains_key(&ask), run.ask(ask).is_some()) {
        (true, _) => None,
        (false, true) => Some(None),
        (false, false) => Some(Some(Act::AskRepeat { task: task.id, call })),
    }
}

/// The question whether a call may be made, or that a call is.
pub(crate) fn approval_of(call: OpId) -> AskId {
    AskId::from_bytes(*call.as_bytes())
}

/// The question whether a call is to be made again is another than the one whether it may be made.
pub(crate) fn repeat_of(call: OpId) -> AskId {
    another(call, 15)
}

/// And so is the one whether it is to be called off.
pub(crate) fn outbox_of(call: OpId) -> AskId {
    another(call, 14)
}

fn another(call: OpId, byte: usize) -> AskId {
    let mut bytes = *call.as_bytes();
    bytes[byte] ^= 0xff;
    AskId::from_bytes(bytes)
}

fn is_fine(status: &shared_types::payload::tool::ToolStatus) -> bool {
    matches!(status, shared_types::payload::tool::ToolStatus::Exited { code: 0 })
}

/// Whether somebody handed work on, or wanted to finish while others still work for it, and did nothing else.
fn only_waits(task: &TaskHistory, calls: &[shared_types::payload::llm::RequestedCall]) -> bool {
    calls.iter().all(|wanted| {
        let handed_on = [Verb::Delegate, Verb::Tell].iter().any(|verb| verb.is(&wanted.tool));
        let is_fine = task.result(wanted.call).is_some_and(|(status, _)| is_fine(status));
        handed_on && is_fine || Verb::Finish.is(&wanted.tool)
    })
}

/// Where the words of the end are: in the call that said so, or in the last reply.
fn last_words(task: &TaskHistory) -> Words {
    let Some(turn) = task.last_turn() else {
        return Words::These("It ended before it said anything.".into());
    };
    match turn.calls.iter().position(|wanted| Verb::Finish.is(&wanted.tool)) {
        Some(place) => Words::In(turn.reply, place),
        None => Words::Of(turn.reply),
    }
}

/// Why it makes no sense to go on with an agent.
fn hopeless(history: &History, task: &TaskHistory) -> Option<Box<str>> {
    let role = roles::named(&task.role);
    let limit = role.map_or(0, Role::turns);
    let has_finished = task.last_turn().is_some_and(|turn| {
        let fine = |call| task.result(call).is_some_and(|(status, _)| is_fine(status));
        turn.calls.iter().any(|wanted| Verb::Finish.is(&wanted.tool) && fine(wanted.call))
    });
    if !has_finished && task.turns() >= limit && task.last_turn().is_some_and(|turn| !turn.calls.is_empty()) {
        let open =
            task.last_turn().is_some_and(|turn| turn.calls.iter().any(|w| task.result(w.call).is_none()));
        if !open && history.helpers(task.id).next().is_none() {
            return Some(format!("it took {limit} turns and was not done").into());
        }
    }
    let ended = task.last_turn().map(|turn| turn.ended);
    if ended == Some(ReplyEnd::Refused) {
        return Some("its model refused to go on".into());
    }
    if task.stumbles() >= STUMBLES {
        return Some("its model said nothing whole, again and again".into());
    }
    // Whoever waits for somebody may well try the same again.
    let waits = history.helpers(task.id).next().is_some();
    if !waits && rounds(&task.entries) >= ROUNDS {
        return Some("it made the same calls with the same results again and again".into());
    }
    task.failures.iter().find_map(|reason| reason.strip_prefix(GIVEN_UP)).map(Into::into)
}

/// How often an agent goes through the very same turns before it is taken to be lost. It is told so before.
const ROUNDS: usize = 4;
pub(crate) const ROUNDS_BEFORE_A_WORD: usize = ROUNDS - 1;
/// Turns in a row that are cut off or empty.
const STUMBLES: usize = 3;
/// How the reason of a turn begins that will not be taken however often it is tried.
pub(crate) const GIVEN_UP: &str = "given up: ";

/// Those who work for it are stopped first.
fn give_up(history: &History, task: &TaskHistory, reason: Box<str>) -> Vec<Act> {
    let helpers: Vec<Act> = history.helpers(task.id).flat_map(|helper| stop(history, helper)).collect();
    if !helpers.is_empty() {
        return helpers;
    }
    if history.has_open_calls(task.id) {
        return stop_calls(history, task);
    }
    let words = Words::These(reason.clone());
    vec![Act::End { task: task.id, outcome: TaskOutcome::Failed(reason), words }]
}

/// Ends the work of an agent and of all who work for it, from the leaves on.
fn stop(history: &History, task: &TaskHistory) -> Vec<Act> {
    let helpers: Vec<Act> = history.helpers(task.id).flat_map(|helper| stop(history, helper)).collect();
    if !helpers.is_empty() {
        return helpers;
    }
    if history.has_open_calls(task.id) {
        return stop_calls(history, task);
    }
    vec![Act::End {
        task: task.id,
        outcome: TaskOutcome::Cancelled,
        words: Words::These("It was stopped.".into()),
    }]
}

fn stop_calls(history: &History, task: &TaskHistory) -> Vec<Act> {
    let turn = task.last_turn();
    let calls = turn.iter().flat_map(|turn| turn.calls.iter().map(|wanted| wanted.call));
    calls.filter(|call| history.is_open(*call)).map(|call| Act::Stop { call }).collect()
}

/// What the person ended is put away: calls that still run, then agents.
fn put_away(history: &History) -> Vec<Act> {
    let Some(first) = history.tasks.get(&history.first()) else { return Vec::new() };
    if history.is_working(first.id) { stop(history, first) } else { Vec::new() }
}
