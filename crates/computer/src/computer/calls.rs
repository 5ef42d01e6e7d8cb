//! A tool call, gathered from the events of its operation.

use event_log::{EventLog, decode_event, read_content};
use shared_types::payload::tool::{ToolCall, ToolEvent, ToolStatus};
use shared_types::wire::{CallDetails, ChangeResult, CommandResult};
use shared_types::{Event, INLINE_LIMIT, OpId, Payload};

use super::Computer;
use crate::error::{ComputerError, ErrorCode};

/// The number of requests that are listed.
const REQUESTS: usize = 200;

/// The tool call of an operation, if it is one.
pub fn call_details(log: &dyn EventLog, events: &[Event]) -> Option<CallDetails> {
    let mut tools = events
        .iter()
        .filter_map(|event| if let Payload::Tool(tool) = &event.payload { Some(tool) } else { None });
    let call = tools.by_ref().find_map(|tool| if let ToolEvent::Call(p) = tool { Some(p) } else { None })?;
    let mut details = CallDetails {
        tool: call.tool.clone(),
        title: call.title.clone(),
        network: call.network,
        input: input(log, call),
        status: None,
        report: None,
        dry_run_changes: None,
        code: None,
        requests: Vec::new(),
        request_count: 0,
    };
    for tool in tools {
        match tool {
            ToolEvent::Call(_) => {}
            ToolEvent::Request(p) => {
                details.request_count += 1;
                if details.requests.len() < REQUESTS {
                    details.requests.push(p.clone());
                }
            }
            ToolEvent::Hold(p) => {
                details.dry_run_changes = Some(p.changes);
                details.code = p.code;
                details.report = Some(p.report.clone());
            }
            ToolEvent::Result(p) => {
                details.status = Some(p.status.clone());
                details.report = Some(p.report.clone());
            }
        }
    }
    Some(details)
}

impl Computer {
    pub(super) fn call(&self, op: OpId) -> Result<Option<CallDetails>, ComputerError> {
        let log = &**self.log();
        let events: Result<Vec<Event>, _> =
            log.operation(op)?.iter().map(|stored| decode_event(log, stored)).collect();
        Ok(call_details(log, &events?))
    }

    /// The recorded result of a command, without its changes.
    pub(crate) fn command_result(&self, op: OpId) -> Result<CommandResult, ComputerError> {
        let unknown = || ComputerError::new(ErrorCode::NotFound, format!("no command ran under the id {op}"));
        let call = self.call(op)?.ok_or_else(unknown)?;
        let done = ChangeResult { op: Some(op), ..ChangeResult::default() };
        Ok(CommandResult {
            op,
            status: call.status,
            code: call.code,
            report: call.report.unwrap_or_default(),
            done,
        })
    }

    /// True if the call has a result and its changes were recorded.
    pub(crate) fn call_completed(&self, op: OpId) -> Result<bool, ComputerError> {
        Ok(self.call(op)?.is_some_and(|call| matches!(call.status, Some(ToolStatus::Exited { .. }))))
    }

    /// True if the call has a result.
    pub(crate) fn call_is_answered(&self, op: OpId) -> Result<bool, ComputerError> {
        Ok(self.call(op)?.is_some_and(|call| call.status.is_some()))
    }
}

fn input(log: &dyn EventLog, call: &ToolCall) -> Option<String> {
    let short = call.input.size <= INLINE_LIMIT as u64;
    short
        .then(|| read_content(log, &call.input.hash).ok())
        .flatten()
        .and_then(|bytes| String::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use event_log::MemoryLog;
    use shared_types::payload::tool::{RequestVerdict, ToolHold, ToolReport, ToolRequest, ToolResult};
    use shared_types::{Actor, ContentRef, EventId, OpId, Seq, Source, Timestamp, UserId};

    use super::*;

    fn event(payload: impl Into<Payload>) -> Event {
        Event {
            seq: Seq(1),
            id: EventId::from_bytes([1; 16]),
            ts: Timestamp::from_millis(1),
            source: Source::User,
            op: OpId::from_bytes([1; 16]),
            actor: Actor::CLI,
            run_id: None,
            cause: None,
            taint: Vec::new(),
            payload: payload.into(),
        }
    }

    #[test]
    fn a_call_is_told_from_its_start_to_its_end() {
        let log = MemoryLog::new(UserId::parse("ada").unwrap());
        let report = |millis| ToolReport { millis, ..ToolReport::default() };
        let request = ToolRequest {
            method: "GET".into(),
            host: "example.org".into(),
            port: 443,
            verdict: RequestVerdict::Allowed,
            reason: None,
            sent: 1,
            received: 2,
        };
        let input = ContentRef::of(b"{}");
        let mut events = vec![event(ToolCall {
            tool: "exec".into(),
            title: "make".into(),
            input,
            network: true,
            task: None,
        })];
        events.extend((0..REQUESTS + 1).map(|_| event(request.clone())));
        let running = call_details(&log, &events).unwrap();
        assert_eq!((running.requests.len(), running.request_count), (REQUESTS, REQUESTS as u64 + 1));
        assert_eq!(
            (running.input, running.status, running.report, running.dry_run_changes),
            (None, None, None, None)
        );

        events.push(event(ToolHold { report: report(1), changes: 2, code: Some(3) }));
        let held = call_details(&log, &events).unwrap();
        assert_eq!((held.dry_run_changes, held.code), (Some(2), Some(3)));
        assert_eq!((held.report, held.status), (Some(report(1)), None));
        events.push(event(ToolResult { status: ToolStatus::Discarded, report: report(3) }));
        let over = call_details(&log, &events).unwrap();
        assert_eq!((over.status, over.report), (Some(ToolStatus::Discarded), Some(report(3))));
        assert_eq!(call_details(&log, &events[1..]), None, "no call, no details");
    }
}
