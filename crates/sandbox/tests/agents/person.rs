//! The person of a scenario. What they do follows from the events alone, so that they do it again after a crash only
//! where it is not recorded.

use sandbox::computer::Computer;
use sandbox::protocol::{Choices, Envelope, Request, RunAnswer, RunRequest};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::run::{Reply, RunEvent};
use shared_types::wire::RunGesture;
use shared_types::{CommandId, Event, Payload, RunId};

use crate::scenario::{Gesture, PersonAct, Scenario};
use crate::stage::{ask, fixed_id, nth, write};

pub(crate) struct Person<'a> {
    gestures: Vec<(&'a Gesture, bool)>,
    run: RunId,
}

impl<'a> Person<'a> {
    pub(crate) fn new(scenario: &'a Scenario, run: RunId) -> Self {
        Self { gestures: scenario.person.iter().map(|gesture| (gesture, false)).collect(), run }
    }

    /// Does the first thing whose time has come. True if something was done.
    pub(crate) fn act(&mut self, computer: &Computer, events: &[Event]) -> bool {
        let run = self.run;
        for (number, (gesture, done)) in self.gestures.iter_mut().enumerate() {
            let Some(cause) = nth(events, &gesture.after, gesture.number) else { continue };
            if std::mem::replace(done, true) || is_recorded(gesture, cause, events) {
                continue;
            }
            let gesture_on =
                |gesture| drop(ask(computer, RunRequest::Gesture { run: run.to_string(), gesture }));
            let answer = |reply: Reply| match &cause.payload {
                Payload::Run(RunEvent::Ask(asked)) => {
                    gesture_on(RunGesture::Answer { ask: asked.ask, reply })
                }
                other => panic!("{} is no question", other.name()),
            };
            match &gesture.act {
                PersonAct::Allow(scope) => answer(Reply::Allow(*scope)),
                PersonAct::Deny(why) => answer(Reply::Deny(why.as_str().into())),
                PersonAct::Answer(words) => answer(Reply::Words(words.as_str().into())),
                PersonAct::Steer(words) => gesture_on(RunGesture::Steer { task: None, words: words.clone() }),
                PersonAct::Stop(_) => gesture_on(RunGesture::Stop),
                PersonAct::Revoke(_) => revoke_all(computer),
                PersonAct::Pause(millis) => {
                    gesture_on(RunGesture::Pause);
                    std::thread::sleep(std::time::Duration::from_millis(*millis));
                    gesture_on(RunGesture::Resume { budget: None });
                }
                PersonAct::Raise(budget) => gesture_on(RunGesture::Resume { budget: Some(*budget) }),
                PersonAct::Retry(turn) => retry(computer, run, events, *turn),
                PersonAct::Write((path, text)) => {
                    write(computer, CommandId::from_bytes(fixed_id(9, number)), path, text)
                }
            }
            return true;
        }
        false
    }

    /// Whether something is still to be done whose time has come.
    pub(crate) fn has_more(&self, events: &[Event]) -> bool {
        self.gestures
            .iter()
            .any(|(gesture, done)| !done && nth(events, &gesture.after, gesture.number).is_some())
    }
}

fn retry(computer: &Computer, run: RunId, events: &[Event], turn: usize) {
    let is_turn = |event: &&Event| matches!(event.payload, Payload::Llm(LlmEvent::Reply(_)));
    let step = events.iter().filter(is_turn).nth(turn - 1).unwrap().seq;
    let request =
        RunRequest::Retry { run: run.to_string(), step, choices: Choices::default(), preview: false };
    let envelope = Envelope::new(Request::Runs(request));
    computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()).into_done().unwrap();
}

fn revoke_all(computer: &Computer) {
    let RunAnswer::Grants(list) = ask(computer, RunRequest::Grants) else { panic!("no list of grants") };
    for line in list.grants {
        let revoke = Request::Runs(RunRequest::Revoke { grant: line.grant.to_string() });
        computer.handle(&Envelope::new(revoke), &mut std::io::empty(), &|_, _, _| ()).into_done().unwrap();
    }
}

/// Whether the log says that it was done before.
fn is_recorded(gesture: &Gesture, cause: &Event, events: &[Event]) -> bool {
    let later = |wanted: fn(&RunEvent) -> bool| {
        events.iter().any(|event| {
            event.seq > cause.seq && matches!(&event.payload, Payload::Run(found) if wanted(found))
        })
    };
    match &gesture.act {
        PersonAct::Allow(_) | PersonAct::Deny(_) | PersonAct::Answer(_) => {
            let Payload::Run(RunEvent::Ask(asked)) = &cause.payload else { return false };
            events.iter().any(
                |event| matches!(&event.payload, Payload::Run(RunEvent::Answer(found)) if found.ask == asked.ask),
            )
        }
        PersonAct::Steer(_) => later(|event| matches!(event, RunEvent::Steer(_))),
        PersonAct::Stop(_) => later(|event| matches!(event, RunEvent::Cancel(_))),
        PersonAct::Pause(_) | PersonAct::Raise(_) => later(|event| matches!(event, RunEvent::Resume(_))),
        PersonAct::Retry(_) => later(|event| matches!(event, RunEvent::Rewind(_))),
        // There is nothing left to revoke.
        PersonAct::Revoke(_) => false,
        // It is the same command again, which the log knows.
        PersonAct::Write(_) => false,
    }
}
