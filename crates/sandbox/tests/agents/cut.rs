//! Calls that a stop cut off, and what is asked and done only because of that.
//!
//! A call that may have reached the outside is not made again by itself: it is `interrupted`, and the person is asked.
//! If they let it be made again its agent takes that turn once more, and the person is not asked about that call again.

use std::collections::BTreeSet;

use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{AskKind, Reply, RunAsk, RunEvent};
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::{ContentRef, Event, OpId, Payload};

/// The calls of a run that were cut off.
pub(crate) struct InterruptedCalls<'e> {
    events: &'e [Event],
    pub(crate) calls: BTreeSet<OpId>,
}

/// What turns that were taken once more took the first time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RepeatedTurns {
    pub(crate) turns: u64,
    pub(crate) micros: u64,
}

/// What a question about a call is about, but for which call it is.
#[derive(PartialEq)]
struct QuestionSubject<'e> {
    kind: &'static str,
    tool: &'e str,
    input: ContentRef,
}

impl<'e> InterruptedCalls<'e> {
    /// A call whose server ended, or whose time was over, was cut off without any stop.
    pub(crate) fn of(events: &'e [Event]) -> Self {
        let is_cut = |event: &&Event| match &event.payload {
            Payload::Tool(ToolEvent::Result(result)) => match &result.status {
                ToolStatus::Interrupted { reason } => {
                    !reason.starts_with("the server ") && !reason.ends_with("a budget left no more time")
                }
                _ => false,
            },
            _ => false,
        };
        Self { events, calls: events.iter().filter(is_cut).map(|event| event.op).collect() }
    }

    /// Whether a question is there only because a call was cut off.
    pub(crate) fn raised(&self, ask: &RunAsk) -> bool {
        self.is_about_cut(ask) || self.first_of(ask).is_some()
    }

    /// Whether it is the question whether a call that was cut off is to be made again.
    pub(crate) fn is_about_cut(&self, ask: &RunAsk) -> bool {
        matches!(&ask.about, AskKind::Interrupted { call, .. } if self.calls.contains(call))
    }

    /// The question about a call that was cut off, where this is the one about the same call made again.
    pub(crate) fn first_of(&self, ask: &RunAsk) -> Option<&'e RunAsk> {
        let (call, subject) = about_call(&ask.about)?;
        let same = |first: &&RunAsk| {
            first.task == ask.task && about_call(&first.about).is_some_and(|(_, other)| other == subject)
        };
        let first = asks(self.events).find(same)?;
        let (cut, _) = about_call(&first.about)?;
        (cut != call && self.calls.contains(&cut)).then_some(first)
    }

    /// A call that the person allowed, was cut off once, was let be made again as the only one of its turn, and was
    /// asked about once more all the same.
    pub(crate) fn asked_twice(&self) -> Option<&'e RunAsk> {
        let is_approval = |ask: &&RunAsk| matches!(ask.about, AskKind::Approval { .. });
        let is_alone = |call: OpId| {
            self.events.iter().any(|event| match &event.payload {
                Payload::Llm(LlmEvent::Reply(reply)) => {
                    reply.calls.iter().map(|wanted| wanted.call).eq([call])
                }
                _ => false,
            })
        };
        asks(self.events).filter(is_approval).filter(|_| self.calls.len() == 1).find(|ask| {
            let first = self.first_of(ask).and_then(|first| about_call(&first.about));
            first.is_some_and(|(cut, _)| is_alone(cut) && self.is_to_be_made_again(cut))
        })
    }

    /// Calls that the person was asked about, as they are about one that was cut off.
    pub(crate) fn asked_about(&self) -> BTreeSet<OpId> {
        let call = |ask: &RunAsk| match &ask.about {
            AskKind::Interrupted { call, .. } => Some(*call),
            _ => None,
        };
        asks(self.events).filter(|ask| self.is_about_cut(ask)).filter_map(call).collect()
    }

    pub(crate) fn wasted(&self) -> RepeatedTurns {
        let again: BTreeSet<OpId> =
            self.asked_about().into_iter().filter(|call| self.is_to_be_made_again(*call)).collect();
        let replies = self.events.iter().filter_map(|event| match &event.payload {
            Payload::Llm(LlmEvent::Reply(reply)) => Some(reply),
            _ => None,
        });
        let cut = replies.filter(|reply| reply.calls.iter().any(|wanted| again.contains(&wanted.call)));
        cut.fold(RepeatedTurns::default(), |wasted, reply| RepeatedTurns {
            turns: wasted.turns + 1,
            micros: wasted.micros + reply.micros.unwrap_or_default(),
        })
    }

    fn is_to_be_made_again(&self, call: OpId) -> bool {
        let is_about =
            |ask: &&RunAsk| matches!(ask.about, AskKind::Interrupted { call: cut, .. } if cut == call);
        let ask = asks(self.events).find(is_about).map(|ask| ask.ask);
        ask.and_then(|ask| answer_to(self.events, ask)).is_some_and(|reply| matches!(reply, Reply::Allow(_)))
    }
}

fn about_call(about: &AskKind) -> Option<(OpId, QuestionSubject<'_>)> {
    match about {
        AskKind::Approval { call, tool, input, .. } => {
            Some((*call, QuestionSubject { kind: "approval", tool, input: *input }))
        }
        AskKind::Outgoing { call, tool, input, .. } => {
            Some((*call, QuestionSubject { kind: "outgoing", tool, input: *input }))
        }
        AskKind::Question { .. } | AskKind::Interrupted { .. } => None,
    }
}

pub(crate) fn asks(events: &[Event]) -> impl Iterator<Item = &RunAsk> {
    events.iter().filter_map(|event| match &event.payload {
        Payload::Run(RunEvent::Ask(ask)) => Some(ask),
        _ => None,
    })
}

pub(crate) fn answer_to(events: &[Event], ask: shared_types::AskId) -> Option<&Reply> {
    events.iter().find_map(|event| match &event.payload {
        Payload::Run(RunEvent::Answer(answer)) if answer.ask == ask => Some(&answer.reply),
        _ => None,
    })
}

/// Calls that may reach the outside and are not answered.
pub(crate) fn open_outside(events: &[Event]) -> BTreeSet<OpId> {
    let mut open = BTreeSet::new();
    for event in events {
        match &event.payload {
            Payload::Tool(ToolEvent::Call(call)) if call.network => drop(open.insert(event.op)),
            Payload::Tool(ToolEvent::Result(_)) => drop(open.remove(&event.op)),
            _ => {}
        }
    }
    open
}
