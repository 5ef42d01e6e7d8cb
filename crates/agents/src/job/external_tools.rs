//! Calls of tools that somebody else runs.

use std::time::{Duration, Instant};

use kernel::Action;
use models::ChosenModel;
use models::chat::Tool;
use serde_json::{Map, Value};
use shared_types::payload::tool::{ToolReport, ToolStatus};
use shared_types::{Seq, Taint};

use super::Job;
use super::call::{Call, CallProgress, CallEffect, ToolOutcome};
use crate::budget::{OUT_OF_TIME, whole_millis, with_time_limit};
use crate::port::PortError;
use crate::roles::Role;
use crate::toolbox::{ExternalToolResult, Foreign, ToolOffer, PREFIX};
use crate::tools::{ParsedCall, one_line, size};

/// Bytes of tools of others that a model is told of: they are read again in every turn.
const ROOM: usize = 96 << 10;

impl Job {
    /// What an agent is offered beside its own tools, as far as its model has room for it.
    pub(super) async fn offer(&self, role: Role, chosen: &ChosenModel) -> ToolOffer {
        let Some(toolbox) = &self.environment.toolbox else { return ToolOffer::default() };
        let ToolOffer { tools, silent } = toolbox.offered(role).await;
        if chosen.is_local {
            // It reads slowly, and is told no more than it has to know.
            return ToolOffer { tools: fitting(tools, role.local_tool_bytes()), silent: Vec::new() };
        }
        ToolOffer { tools: fitting(tools, ROOM), silent }
    }

    /// A call of a tool that somebody else runs, understood; nothing, if it is no such call.
    pub(super) async fn foreign(&self, role: Role, name: &str, input: &Value) -> Option<Result<ParsedCall, String>> {
        let toolbox = self.environment.toolbox.as_ref().filter(|_| name.starts_with(PREFIX))?;
        Some(match toolbox.find(role, name).await {
            Some(tool) => ParsedCall::foreign(name, tool, input),
            None => Err(format!("there is no tool {:?} now; its server may be gone", one_line(name))),
        })
    }

    pub(super) async fn use_foreign(
        &self,
        call: &Call<'_>,
        tool: &Foreign,
        input: Map<String, Value>,
        left: Option<Duration>,
    ) -> Result<CallProgress, PortError> {
        let Some(toolbox) = &self.environment.toolbox else {
            return Ok(CallProgress::Done(Err("there are no tools of others on this computer".into())));
        };
        let effect = if tool.reads_only { CallEffect::ReadOnly } else { CallEffect::External };
        if effect == CallEffect::External && self.history.is_open(call.op) {
            let reason = "it was begun before, and nobody knows how far it came".to_owned();
            return self.interrupted(call, reason, Vec::new(), Duration::ZERO).await.map(CallProgress::Recorded);
        }
        self.open(call, effect).await?;
        let since = Instant::now();
        let Some(ExternalToolResult { text, failed, cut_off }) = with_time_limit(left, toolbox.call(tool, input)).await else {
            let (why, took) = (OUT_OF_TIME.to_owned(), since.elapsed());
            return match effect {
                CallEffect::ReadOnly => self.close(call, Err(why), took).await,
                CallEffect::External => self.interrupted(call, why, Vec::new(), took).await,
            }
            .map(CallProgress::Recorded);
        };
        if cut_off && effect == CallEffect::External {
            return self
                .interrupted(call, text, vec![Taint::MCP], since.elapsed())
                .await
                .map(CallProgress::Recorded);
        }
        let failed = failed.then(|| "the tool says that it failed".to_owned());
        let came = ToolOutcome { taint: vec![Taint::MCP], failed, ..ToolOutcome::text(text) };
        self.close(call, Ok(came), since.elapsed()).await.map(CallProgress::Recorded)
    }

    /// Nobody knows how far it came, and the person is asked before it is made again.
    async fn interrupted(
        &self,
        call: &Call<'_>,
        reason: String,
        heard: Vec<Taint>,
        took: Duration,
    ) -> Result<Seq, PortError> {
        let status = ToolStatus::Interrupted { reason: reason.into() };
        let report = ToolReport { millis: whole_millis(took), ..ToolReport::default() };
        let action = Action::FinishCall { status, report, edits: Vec::new() };
        let mut taint = self.taint(call.task);
        taint.extend(heard.into_iter().filter(|label| !self.taint(call.task).contains(label)));
        let seq = self.submit(call.op, self.actor(call.task), taint, action, Vec::new()).await?;
        Ok(seq.unwrap_or(Seq::ZERO))
    }
}

/// The first of them that fit.
fn fitting(tools: Vec<Tool>, room: usize) -> Vec<Tool> {
    let mut used = 0;
    tools
        .into_iter()
        .take_while(|tool| {
            used += size(tool);
            used <= room
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_told_of_as_many_tools_as_it_has_room_for() {
        let tool = |name: &str| Tool {
            name: name.into(),
            description: "x".repeat(100),
            input: serde_json::json!({}),
        };
        let tools = vec![tool("a"), tool("b"), tool("c")];
        let names = |room| fitting(tools.clone(), room).into_iter().map(|tool| tool.name).collect::<Vec<_>>();
        assert_eq!(names(1_000), ["a", "b", "c"]);
        assert_eq!(names(300), ["a", "b"]);
        assert!(names(50).is_empty());
    }
}
