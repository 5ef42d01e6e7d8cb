//! The outbox: final calls wait there for a while, so that the person can still call them off.

use std::time::Duration;

use kernel::RunAction;
use shared_types::payload::run::{AskKind, Reply, RunAsk};
use shared_types::{OpId, Seq, TaskId, Timestamp};

use super::Job;
use super::call::Call;
use crate::ask_ids::outbox_ask_id;
use crate::port::PortError;

/// The longest wait in the outbox, even if a setting is larger or the clock was moved.
const MAX_WAIT: Duration = Duration::from_secs(60 * 60);

impl Job {
    /// Until when a call must wait in the outbox; `None` if it has started already or the outbox is switched off.
    pub(super) async fn outbox_deadline(&self, call: OpId) -> Result<Option<Timestamp>, PortError> {
        let wait = self.port().run_context(self.id()).await?.outbox.min(MAX_WAIT);
        if wait.is_zero() || self.history.is_open(call) {
            return Ok(None);
        }
        let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Ok(Some(Timestamp::from_millis(self.port().now().millis().saturating_add(millis))))
    }

    /// Records that a call waits in the outbox.
    pub(super) async fn put_in_outbox(
        &self,
        call: &Call<'_>,
        until: Timestamp,
    ) -> Result<Option<Seq>, PortError> {
        let staged = self.stage(serde_json::to_vec(call.input).unwrap_or_default()).await?;
        let about = AskKind::Outgoing {
            call: call.op,
            tool: call.tool.into(),
            title: call.title.clone().into(),
            input: staged.content,
            until,
        };
        let ask = RunAsk { ask: outbox_ask_id(call.op), task: call.task, about };
        self.record_by(call.task, RunAction::Ask(ask), staged.bytes.into_iter().collect()).await
    }

    /// Waits until the time of a call is up, and releases it. A call whose time passed while the run was paused or the
    /// server was down waits for the full time again, so that the person had a chance to see it.
    pub(super) async fn release(
        &self,
        task: TaskId,
        call: OpId,
        until: Timestamp,
    ) -> Result<Option<Seq>, PortError> {
        let left = until.millis().saturating_sub(self.port().now().millis());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        let ask = outbox_ask_id(call);
        if left.is_zero()
            && let Some(action) = self.renewed_entry(task, call).await?
        {
            return self.record_by(task, action, Vec::new()).await;
        }
        tokio::time::sleep(left.min(MAX_WAIT)).await;
        self.record_by(task, RunAction::Answer { ask, reply: Reply::Silence }, Vec::new()).await
    }

    /// The action that lets a call wait for the full time again, if it has to.
    async fn renewed_entry(&self, task: TaskId, call: OpId) -> Result<Option<RunAction>, PortError> {
        let entry = self.history.run().and_then(|run| run.ask(outbox_ask_id(call)));
        let Some(AskKind::Outgoing { tool, title, input, .. }) = entry.map(|entry| entry.about.clone())
        else {
            return Ok(None);
        };
        Ok(self.outbox_deadline(call).await?.map(|until| {
            let about = AskKind::Outgoing { call, tool, title, input, until };
            RunAction::AskAgain(RunAsk { ask: outbox_ask_id(call), task, about })
        }))
    }
}
