//! The person of a scenario. What they do follows from the events alone, so that they do it again after a crash only
//! where it is not recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use computer::Computer;
use computer::protocol::{Choices, Envelope, Request, RunRequest, RunResponse};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{ApprovalScope, Reply, RunAsk, RunEvent};
use shared_types::wire::RunControl;
use shared_types::{AskId, CommandId, Event, Payload, RunId};

use crate::cut::{InterruptedCalls, answer_to};
use crate::scenario::{PersonAction, RepeatPolicy, Scenario, ScriptedAction};
use crate::scenario_host::{ask, fixed_id, nth, write};

pub(crate) struct Person<'a> {
    scenario: &'a Scenario,
    actions: Vec<(&'a ScriptedAction, bool)>,
    run: RunId,
}

impl<'a> Person<'a> {
    pub(crate) fn new(scenario: &'a Scenario, run: RunId) -> Self {
        Self { scenario, actions: scenario.person.iter().map(|action| (action, false)).collect(), run }
    }

    /// Does the first thing whose time has come. True if something was done.
    pub(crate) fn act(&mut self, computer: &Computer, events: &[Event]) -> bool {
        let run = self.run;
        let control_run =
            |control| drop(ask(computer, RunRequest::Control { run: run.to_string(), control }));
        if let Some((asked, reply)) = self.raised(events) {
            sees_the_call(computer, asked);
            control_run(RunControl::Answer { ask: asked, reply });
            return true;
        }
        let planned = planned(events);
        for number in 0..self.actions.len() {
            let (action, done) = self.actions[number];
            let Some(cause) = nth(planned.iter().copied(), &action.after, action.number) else { continue };
            self.actions[number].1 = true;
            if done || self.is_recorded(number, cause, events) {
                continue;
            }
            std::thread::sleep(Duration::from_millis(action.takes_ms));
            if let Some(reply) = action.act.reply() {
                let Payload::Run(RunEvent::Ask(asked)) = &cause.payload else {
                    panic!("{} is no question", cause.payload.name())
                };
                control_run(RunControl::Answer { ask: asked.ask, reply });
                return true;
            }
            match &action.act {
                PersonAction::Allow(_) | PersonAction::Deny(_) | PersonAction::Answer(_) => {}
                PersonAction::Steer(words) => {
                    control_run(RunControl::Steer { task: None, words: words.clone() })
                }
                PersonAction::Stop(_) => control_run(RunControl::Stop),
                PersonAction::Revoke(_) => revoke_all(computer),
                PersonAction::Pause(millis) => {
                    control_run(RunControl::Pause);
                    std::thread::sleep(Duration::from_millis(*millis));
                    control_run(RunControl::Resume { budget: None });
                }
                PersonAction::Raise(budget) => control_run(RunControl::Resume { budget: Some(*budget) }),
                PersonAction::Retry(turn) => retry(computer, run, events, *turn),
                PersonAction::Write((path, text)) => {
                    write(computer, CommandId::from_bytes(fixed_id(9, number)), path, text)
                }
            }
            return true;
        }
        false
    }

    /// Whether something is still to be done whose time has come.
    pub(crate) fn has_more(&self, events: &[Event]) -> bool {
        let planned = planned(events);
        let is_due =
            |action: &ScriptedAction| nth(planned.iter().copied(), &action.after, action.number).is_some();
        self.actions.iter().any(|(action, done)| !done && is_due(action))
    }

    /// A question that is there only because a call was cut off, and what is said to it. What is asked about a call
    /// that is made again is answered as it was the first time.
    fn raised(&self, events: &[Event]) -> Option<(AskId, Reply)> {
        let (cut, planned) = (InterruptedCalls::of(events), planned(events));
        let answers = |first: &RunAsk| {
            self.actions.iter().find_map(|(action, _)| {
                let cause = nth(planned.iter().copied(), &action.after, action.number)?;
                let Payload::Run(RunEvent::Ask(asked)) = &cause.payload else { return None };
                action.act.reply().filter(|_| asked.ask == first.ask)
            })
        };
        open_asks(events).into_iter().find_map(|asked| {
            let reply = match (cut.is_about_cut(asked), self.scenario.crash.again) {
                (true, RepeatPolicy::Yes) => Some(Reply::Allow(ApprovalScope::Once)),
                (true, RepeatPolicy::No) => Some(Reply::Deny("".into())),
                (false, _) => cut.first_of(asked).and_then(answers),
            };
            Some((asked.ask, reply?))
        })
    }

    /// Whether the log says that it was done before. Gestures of one kind are made in their order.
    fn is_recorded(&self, number: usize, cause: &Event, events: &[Event]) -> bool {
        let act = &self.actions[number].0.act;
        let Some(is_record) = act.record() else {
            let Payload::Run(RunEvent::Ask(asked)) = &cause.payload else { return false };
            return act.reply().is_some() && answer_to(events, asked.ask).is_some();
        };
        let earlier =
            self.actions[..number].iter().filter(|(action, _)| action.act.record() == Some(is_record));
        let recorded = events.iter().filter(|event| event.payload.name().as_str() == is_record);
        recorded.count() > earlier.count()
    }
}

impl PersonAction {
    /// What is said to a question, if it is an answer.
    fn reply(&self) -> Option<Reply> {
        match self {
            Self::Allow(scope) => Some(Reply::Allow(*scope)),
            Self::Deny(why) => Some(Reply::Deny(why.as_str().into())),
            Self::Answer(words) => Some(Reply::Words(words.as_str().into())),
            Self::Steer(_)
            | Self::Stop(_)
            | Self::Pause(_)
            | Self::Raise(_)
            | Self::Retry(_)
            | Self::Revoke(_)
            | Self::Write(_) => None,
        }
    }

    /// The type of event that nothing else leads to, and that tells of it when it is done.
    fn record(&self) -> Option<&'static str> {
        match self {
            Self::Steer(_) => Some("run.steer"),
            Self::Stop(_) => Some("run.cancel"),
            Self::Pause(_) | Self::Raise(_) => Some("run.resume"),
            Self::Retry(_) => Some("run.rewind"),
            // An answer is known by its question, what was revoked is there no more, and a file is written by the same
            // command again, which the log knows.
            Self::Allow(_) | Self::Deny(_) | Self::Answer(_) | Self::Revoke(_) | Self::Write(_) => None,
        }
    }
}

/// Everything whose time has come was done once, and nothing else was.
pub(crate) fn did_each_once(scenario: &Scenario, events: &[Event]) -> Result<(), String> {
    let planned = planned(events);
    let mut due: BTreeMap<&str, usize> = BTreeMap::new();
    for action in &scenario.person {
        let Some(record) = action.act.record() else { continue };
        let has_come = nth(planned.iter().copied(), &action.after, action.number).is_some();
        *due.entry(record).or_default() += usize::from(has_come);
    }
    for (record, due) in due {
        let done = events.iter().filter(|event| event.payload.name().as_str() == record).count();
        if done != due {
            return Err(format!("{record} was to happen {due} times, and happened {done} times"));
        }
    }
    Ok(())
}

/// Events without the questions that a stop has raised.
fn planned(events: &[Event]) -> Vec<&Event> {
    let cut = InterruptedCalls::of(events);
    let is_planned = |event: &&Event| match &event.payload {
        Payload::Run(RunEvent::Ask(asked)) => !cut.raised(asked),
        _ => true,
    };
    events.iter().filter(is_planned).collect()
}

/// Questions that are not answered, in a run that goes on since.
fn open_asks(events: &[Event]) -> Vec<&RunAsk> {
    let mut open = Vec::new();
    for event in events {
        match &event.payload {
            Payload::Run(RunEvent::Ask(asked)) => open.push(asked),
            Payload::Run(
                RunEvent::Complete(_) | RunEvent::Fail(_) | RunEvent::Cancel(_) | RunEvent::Rewind(_),
            ) => open.clear(),
            _ => {}
        }
    }
    open.retain(|asked| answer_to(events, asked.ask).is_none());
    open
}

/// A question about a call must show the call's arguments.
fn sees_the_call(computer: &Computer, asked: AskId) {
    let RunResponse::Questions(open) = ask(computer, RunRequest::Questions) else { panic!("no questions") };
    let question = open.questions.iter().find(|question| question.id == asked);
    assert!(question.is_none_or(|question| question.input.is_some()), "{question:?}");
}

pub(crate) fn retry(computer: &Computer, run: RunId, events: &[Event], turn: usize) {
    let is_turn = |event: &&Event| matches!(event.payload, Payload::Llm(LlmEvent::Reply(_)));
    let step = events.iter().filter(is_turn).nth(turn - 1).unwrap().seq;
    let request =
        RunRequest::Retry { run: run.to_string(), step, choices: Choices::default(), preview: false };
    let envelope = Envelope::new(Request::AgentRuns(request));
    computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()).into_done().unwrap();
}

fn revoke_all(computer: &Computer) {
    let RunResponse::Grants(list) = ask(computer, RunRequest::Grants) else { panic!("no list of grants") };
    for line in list.grants {
        let revoke = Request::AgentRuns(RunRequest::Revoke { grant: line.grant.to_string() });
        computer.handle(&Envelope::new(revoke), &mut std::io::empty(), &|_, _, _| ()).into_done().unwrap();
    }
}
