//! Calls of external tools.

use std::time::{Duration, Instant};

use kernel::Action;
use models::ChosenModel;
use models::chat::Tool;
use serde_json::{Map, Value};
use shared_types::payload::tool::{ToolReport, ToolStatus};
use shared_types::{Seq, Taint};

use super::Job;
use super::call::{Call, CallEffect, CallProgress, ToolOutcome};
use crate::budget::{OUT_OF_TIME, whole_millis, with_time_limit};
use crate::port::PortError;
use crate::roles::Role;
use crate::shorten::one_line;
use crate::tool_definitions::definition_size;
use crate::toolbox::{ExternalTool, ExternalToolResult, PREFIX, ToolOffer};
use crate::tools::ParsedCall;

/// The most bytes of definitions of external tools in a prompt: a model reads them again in every turn.
const DEFINITIONS_LIMIT: usize = 96 << 10;

impl Job {
    /// The external tools for an agent, as many as its model has room for.
    pub(super) async fn external_tools(&self, role: Role, chosen: &ChosenModel) -> ToolOffer {
        let Some(toolbox) = &self.environment.toolbox else { return ToolOffer::default() };
        let ToolOffer { tools, silent } = toolbox.offered(role).await;
        if chosen.is_local {
            // The local model reads slowly, so its prompt stays short.
            return ToolOffer { tools: fitting(tools, role.local_tool_bytes()), silent: Vec::new() };
        }
        ToolOffer { tools: fitting(tools, DEFINITIONS_LIMIT), silent }
    }

    /// Parses the call of an external tool; `None` if the tool is not external.
    pub(super) async fn parse_external(
        &self,
        role: Role,
        name: &str,
        input: &Value,
    ) -> Option<Result<ParsedCall, String>> {
        let toolbox = self.environment.toolbox.as_ref().filter(|_| name.starts_with(PREFIX))?;
        Some(match toolbox.find(role, name).await {
            Some(tool) => ParsedCall::parse_external(name, tool, input),
            None => Err(format!("there is no tool {:?} now; its server may be gone", one_line(name))),
        })
    }

    pub(super) async fn call_external(
        &self,
        call: &Call<'_>,
        tool: &ExternalTool,
        input: Map<String, Value>,
        left: Option<Duration>,
    ) -> Result<CallProgress, PortError> {
        let Some(toolbox) = &self.environment.toolbox else {
            return Ok(CallProgress::Done(Err("there are no tools of others on this computer".into())));
        };
        let effect = if tool.reads_only { CallEffect::ReadOnly } else { CallEffect::External };
        if effect == CallEffect::External && self.history.is_open(call.op) {
            let reason = "it was begun before, and nobody knows how far it came".to_owned();
            return self
                .record_interrupted(call, reason, Vec::new(), Duration::ZERO)
                .await
                .map(CallProgress::Recorded);
        }
        self.open_call(call, effect).await?;
        let started = Instant::now();
        let Some(ExternalToolResult { text, failed, cut_off }) =
            with_time_limit(left, toolbox.call(tool, input)).await
        else {
            let (why, took) = (OUT_OF_TIME.to_owned(), started.elapsed());
            return match effect {
                CallEffect::ReadOnly => self.close_call(call, Err(why), took).await,
                CallEffect::External => self.record_interrupted(call, why, Vec::new(), took).await,
            }
            .map(CallProgress::Recorded);
        };
        if cut_off && effect == CallEffect::External {
            return self
                .record_interrupted(call, text, vec![Taint::MCP], started.elapsed())
                .await
                .map(CallProgress::Recorded);
        }
        let failed = failed.then(|| "the tool says that it failed".to_owned());
        let outcome = ToolOutcome { taint: vec![Taint::MCP], failed, ..ToolOutcome::text(text) };
        self.close_call(call, Ok(outcome), started.elapsed()).await.map(CallProgress::Recorded)
    }

    /// Records that a call was interrupted and may have had effects. The person is asked before it is repeated.
    async fn record_interrupted(
        &self,
        call: &Call<'_>,
        reason: String,
        new_labels: Vec<Taint>,
        took: Duration,
    ) -> Result<Seq, PortError> {
        let status = ToolStatus::Interrupted { reason: reason.into() };
        let report = ToolReport { millis: whole_millis(took), ..ToolReport::default() };
        let action = Action::FinishCall { status, report, edits: Vec::new() };
        let mut taint = self.taint(call.task);
        taint.extend(new_labels.into_iter().filter(|label| !self.taint(call.task).contains(label)));
        let seq = self.submit_in_call(call.task, call.op, taint, action, Vec::new()).await?;
        Ok(seq.unwrap_or(Seq::ZERO))
    }
}

/// The first tools whose definitions fit into `limit` bytes.
fn fitting(tools: Vec<Tool>, limit: usize) -> Vec<Tool> {
    let mut used = 0;
    tools
        .into_iter()
        .take_while(|tool| {
            used += definition_size(tool);
            used <= limit
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_offered_as_many_tools_as_fit() {
        let tool = |name: &str| Tool {
            name: name.into(),
            description: "x".repeat(100),
            input: serde_json::json!({}),
        };
        let tools = vec![tool("a"), tool("b"), tool("c")];
        let names =
            |limit| fitting(tools.clone(), limit).into_iter().map(|tool| tool.name).collect::<Vec<_>>();
        assert_eq!(names(1_000), ["a", "b", "c"]);
        assert_eq!(names(300), ["a", "b"]);
        assert!(names(50).is_empty());
    }
}
