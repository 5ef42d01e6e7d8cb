//! Answers to resent requests.

use std::ops::ControlFlow;

use event_log::writer::{Mode, Outcome};
use event_log::{EventLog, decode_event};
use kernel::Decision;
use shared_types::{Event, Seq};

use super::{Caller, Computer};
use crate::error::ComputerError;
use crate::protocol::ChangeResult;

impl Computer {
    /// The answer to the first request, if this is a resend.
    pub(super) fn first_answer(&self, caller: &Caller) -> Result<Option<ChangeResult>, ComputerError> {
        let Some(appended) = self.log.answer(caller.origin.command)? else { return Ok(None) };
        let events = events_between(&*self.log, appended.first, appended.last)?;
        let decision = Decision { events, contents: Vec::new() };
        let outcome = Outcome { appended: Some(appended), resent: true, decision };
        Ok(Some(self.describe(caller.origin.op, &outcome, Mode::Commit)))
    }
}

fn events_between(log: &dyn EventLog, first: Seq, last: Seq) -> Result<Vec<Event>, ComputerError> {
    let (mut events, mut failure) = (Vec::new(), None);
    log.scan(first, &mut |stored| {
        if stored.seq > last {
            return ControlFlow::Break(());
        }
        match decode_event(log, stored) {
            Ok(event) => events.push(event),
            Err(e) => failure = Some(e),
        }
        ControlFlow::Continue(())
    })?;
    failure.map_or(Ok(events), |error| Err(error.into()))
}
