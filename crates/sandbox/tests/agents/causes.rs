//! Every event of a run says because of which event it happened.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use computer::Computer;
use event_log::EventLog;
use shared_types::{EventId, Seq, Source};

use crate::scenario_host::ScenarioHost;

impl ScenarioHost<'_> {
    /// The person acts by themselves, and the harness resumes a run because the server was started. Everything else in
    /// a run has a cause that is in the log before it, and so does the result of every call.
    pub(crate) fn every_step_has_a_cause(&self, computer: &Computer) -> Result<(), String> {
        let (mut known, mut missing) = (BTreeSet::<EventId>::new(), Vec::new());
        let read = computer.log().scan(Seq(1), &mut |stored| {
            let acts_by_itself = stored.source == Source::User || stored.name == "run.wake";
            let needs_cause = (stored.run_id.is_some() && !acts_by_itself) || stored.name == "tool.result";
            if needs_cause && !stored.cause.is_some_and(|cause| known.contains(&cause)) {
                missing.push(format!("{} ({}, {})", stored.name, stored.seq, stored.actor));
            }
            known.insert(stored.id);
            ControlFlow::Continue(())
        });
        read.map_err(|e| e.to_string())?;
        if missing.is_empty() { Ok(()) } else { Err(format!("no cause is known of {missing:?}")) }
    }
}
