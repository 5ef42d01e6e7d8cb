//! Records the network requests of a command as events.

use std::sync::atomic::{AtomicU64, Ordering};

use event_log::writer::{ChangeRequest, Mode, Origin, Submission, Writer};
use isolation::proxy::{ProxiedRequest, Verdict};
use kernel::Action;
use shared_types::payload::tool::{RequestVerdict, ToolRequest};
use shared_types::{Actor, OpId, Source};

/// The number of requests of one command that are recorded, since a command could make any number.
const MAX_RECORDED_REQUESTS: u64 = 1_000;

/// A function that records the first requests of a command.
pub(super) fn request_recorder(writer: Writer, op: OpId) -> impl Fn(ProxiedRequest) + Send + Sync + 'static {
    let recorded = AtomicU64::new(0);
    move |request| {
        if recorded.fetch_add(1, Ordering::Relaxed) >= MAX_RECORDED_REQUESTS {
            return;
        }
        let origin = Origin::new(crate::ids::new_command(), op, Source::System, Actor::CELLS);
        let submission = Submission::new(
            origin,
            ChangeRequest::Do(Action::RecordRequest { call: op, request: requested(request) }),
            Vec::new(),
        );
        if let Err(e) = writer.submit(submission, Mode::Commit) {
            tracing::warn!(%op, error = %e, "a request of a command could not be recorded");
        }
    }
}

fn requested(request: ProxiedRequest) -> ToolRequest {
    let short = |text: String, most: usize| {
        let mut text: String = text.chars().filter(|c| !c.is_control()).collect();
        text.truncate(text.floor_char_boundary(most));
        text
    };
    ToolRequest {
        method: short(request.method, 32).into(),
        host: short(request.host, 255).into(),
        port: request.port,
        verdict: match request.verdict {
            Verdict::Allowed => RequestVerdict::Allowed,
            Verdict::Refused => RequestVerdict::Refused,
        },
        reason: request.reason.map(|reason| short(reason, 500).into()),
        sent: request.sent,
        received: request.received,
    }
}
