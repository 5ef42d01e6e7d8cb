//! What cannot be taken back lies in the outbox for a while, where the person can still call it off.

use std::time::Duration;

use kernel::RunAction;
use shared_types::payload::run::{AskKind, Reply, RunAsk};
use shared_types::{OpId, Seq, TaskId, Timestamp};

use super::Job;
use super::call::Call;
use crate::plan::outbox_of;
use crate::port::PortError;

/// Nothing is held for longer, whatever the settings say and however the clock was moved.
const LONGEST: Duration = Duration::from_secs(60 * 60);

impl Job {
    /// Until when a call is to be held; nothing, if it is under way already or nothing is held on this computer.
    pub(super) async fn held_until(&self, call: OpId) -> Result<Option<Timestamp>, PortError> {
        let hold = self.port().standing(self.id()).await?.outbox.min(LONGEST);
        if hold.is_zero() || self.history.is_open(call) {
            return Ok(None);
        }
        let millis = i64::try_from(hold.as_millis()).unwrap_or(i64::MAX);
        Ok(Some(Timestamp::from_millis(self.port().now().millis().saturating_add(millis))))
    }

    pub(super) async fn hold(&self, call: &Call<'_>, until: Timestamp) -> Result<Option<Seq>, PortError> {
        let kept = self.keep(serde_json::to_vec(call.input).unwrap_or_default()).await?;
        let about = AskKind::Outgoing {
            call: call.op,
            tool: call.tool.into(),
            title: call.title.clone().into(),
            input: kept.content,
            until,
        };
        let ask = RunAsk { ask: outbox_of(call.op), task: call.task, about };
        self.record_by(call.task, RunAction::Ask(ask), kept.bytes.into_iter().collect()).await
    }

    /// Waits until the time of a call is up, and lets it go. One whose time passed while nobody could see it, since the
    /// run stood still or there was no server, is held for a whole time again.
    pub(super) async fn release(
        &self,
        task: TaskId,
        call: OpId,
        until: Timestamp,
    ) -> Result<Option<Seq>, PortError> {
        let left = until.millis().saturating_sub(self.port().now().millis());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        let ask = outbox_of(call);
        if left.is_zero()
            && let Some(action) = self.held_again(task, call).await?
        {
            return self.record_by(task, action, Vec::new()).await;
        }
        tokio::time::sleep(left.min(LONGEST)).await;
        self.record_by(task, RunAction::Answer { ask, reply: Reply::Silence }, Vec::new()).await
    }

    async fn held_again(&self, task: TaskId, call: OpId) -> Result<Option<RunAction>, PortError> {
        let held = self.history.run().and_then(|run| run.ask(outbox_of(call)));
        let Some(AskKind::Outgoing { tool, title, input, .. }) = held.map(|held| held.about.clone()) else {
            return Ok(None);
        };
        Ok(self.held_until(call).await?.map(|until| {
            let about = AskKind::Outgoing { call, tool, title, input, until };
            RunAction::AskAgain(RunAsk { ask: outbox_of(call), task, about })
        }))
    }
}
