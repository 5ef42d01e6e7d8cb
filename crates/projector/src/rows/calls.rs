//! The `calls` table: the state of each tool call, by its operation.

use shared_types::Event;
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::wire::CallStatus;

use crate::views::{Views, ViewsError};

pub(super) fn apply(views: &Views, event: &Event, tool: &ToolEvent) -> Result<(), ViewsError> {
    match tool {
        ToolEvent::Call(p) => {
            let mut insert = views.prepare(
                "INSERT OR REPLACE INTO calls (op, title, status, code, network) VALUES (?1, ?2, ?3, NULL, ?4)",
            )?;
            let row = (event.op.as_bytes(), &*p.title, CallStatus::Running.as_str(), p.network);
            views.map(insert.execute(row)).map(drop)
        }
        ToolEvent::Request(_) => Ok(()),
        ToolEvent::Hold(p) => set(views, event, CallStatus::Held, p.code),
        ToolEvent::Result(p) => {
            let code = if let ToolStatus::Exited { code } = p.status { Some(code) } else { None };
            set(views, event, CallStatus::of(&p.status), code)
        }
    }
}

fn set(views: &Views, event: &Event, status: CallStatus, code: Option<i32>) -> Result<(), ViewsError> {
    let mut update = views.prepare("UPDATE calls SET status = ?2, code = ?3 WHERE op = ?1")?;
    views.map(update.execute((event.op.as_bytes(), status.as_str(), code))).map(drop)
}
