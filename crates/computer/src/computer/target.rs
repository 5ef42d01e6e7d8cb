//! Finds the operation that a request refers to: the latest, one by its id or a part of it, or that of an event.

use std::ops::ControlFlow;

use event_log::EventLog;
use shared_types::payload::revert::{Redo, RevertEvent, Undo};
use shared_types::{Event, OpId, Payload, Seq};

use super::{Caller, Computer};
use crate::error::{ComputerError, ErrorCode};

impl Computer {
    /// The operation that a request refers to. For a resend it is read from the events of the first answer, because a
    /// new lookup could give another result.
    pub(super) fn target<T>(
        &self,
        caller: &Caller,
        target_in: impl Fn(Event) -> Option<T>,
        find: impl FnOnce() -> Result<T, ComputerError>,
    ) -> Result<T, ComputerError> {
        if let Some(before) = self.target_of_resend(caller, &target_in)? {
            return Ok(before);
        }
        // The first request may have been recorded since then.
        find().or_else(|failure| self.target_of_resend(caller, &target_in)?.ok_or(failure))
    }

    fn target_of_resend<T>(
        &self,
        caller: &Caller,
        target_in: impl Fn(Event) -> Option<T>,
    ) -> Result<Option<T>, ComputerError> {
        let Some(first) = self.log().answer(caller.origin.command)? else { return Ok(None) };
        let mut found = None;
        self.log().scan(first.first, &mut |stored| {
            if stored.seq > first.last || found.is_some() {
                return ControlFlow::Break(());
            }
            found = stored.decode().ok().and_then(&target_in);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    pub(super) fn undo_target(&self, named: Option<&str>) -> Result<OpId, ComputerError> {
        match named {
            Some(text) => self.operation_named(text),
            None => match self.projector().views().undoable()? {
                Some(row) => Ok(row.op),
                None => Err(ComputerError::new(ErrorCode::NotFound, "there is nothing of yours to undo")),
            },
        }
    }

    /// Redo takes the undo itself; naming the operation that was undone works as well.
    pub(super) fn redo_target(&self, named: Option<&str>) -> Result<OpId, ComputerError> {
        let Some(text) = named else {
            return match self.projector().views().redoable()? {
                Some(row) => Ok(row.op),
                None => Err(ComputerError::new(ErrorCode::NotFound, "there is nothing to redo")),
            };
        };
        let op = self.operation_named(text)?;
        let undone_by = self.writer.inspect(move |view| {
            let is_undo = view.undone.iter().any(|(_, by)| *by == op);
            if is_undo { Some(op) } else { view.undone.get(&op).copied() }
        })?;
        undone_by
            .ok_or_else(|| ComputerError::new(ErrorCode::Refused, format!("operation {text} is not undone")))
    }

    pub(super) fn operation_named(&self, text: &str) -> Result<OpId, ComputerError> {
        self.operation_named_as(text, "operation")
    }

    /// The same; `what` is the word for it in messages.
    pub(super) fn operation_named_as(&self, text: &str, what: &str) -> Result<OpId, ComputerError> {
        if let Ok(op) = text.parse() {
            return Ok(op);
        }
        if let Some(seq) = text.strip_prefix('@').and_then(|seq| seq.parse().ok()) {
            return operation_at(&**self.log(), seq);
        }
        find_operation(self.projector().views(), text, what)
    }
}

/// The operation that an undo or redo reverted.
pub(super) fn reverted(event: Event) -> Option<OpId> {
    let Payload::Revert(revert) = event.payload else { return None };
    match revert {
        RevertEvent::Undo(Undo { target, .. }) | RevertEvent::Redo(Redo { target, .. }) => Some(target),
        RevertEvent::Restore(_) => None,
    }
}

/// The operation with a part of its id.
fn find_operation(views: &projector::Views, text: &str, what: &str) -> Result<OpId, ComputerError> {
    let digits = text.chars().filter(char::is_ascii_hexdigit).count();
    let others = text.chars().filter(|c| !c.is_ascii_hexdigit() && *c != '-').count();
    if digits < 4 || others > 0 {
        let message = format!("{text:?} names no {what}: give four or more digits of its id, or @SEQ");
        return Err(ComputerError::new(ErrorCode::BadRequest, message));
    }
    match views.matching(text)?.as_slice() {
        [op] => Ok(*op),
        [] => Err(ComputerError::new(
            ErrorCode::NotFound,
            format!("there is no {what} {text}; choir log lists them"),
        )),
        _ => Err(ComputerError::new(
            ErrorCode::BadRequest,
            format!("more than one {what} matches {text}; give more digits"),
        )),
    }
}

/// The operation of the event at a seq.
pub fn operation_at(log: &dyn EventLog, seq: Seq) -> Result<OpId, ComputerError> {
    let mut found = None;
    log.scan(seq, &mut |stored| {
        found = (stored.seq == seq).then_some(stored.op);
        ControlFlow::Break(())
    })?;
    found.ok_or_else(|| ComputerError::new(ErrorCode::NotFound, format!("the log has no event {seq}")))
}
