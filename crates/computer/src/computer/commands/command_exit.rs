//! Converts the end of a command into its status and report for the log.

use event_log::EventLog;
use isolation::{Exit, Limit, Status, Usage};
use shared_types::ContentHash;
use shared_types::payload::tool::{StopReason, ToolReport, ToolStatus};

use super::output::TruncatedOutput;
use crate::error::ComputerError;

/// Small contents that are appended with an event.
pub(super) type Contents = Vec<(ContentHash, Vec<u8>)>;

/// How a command ended, and its output.
pub(super) struct CommandExit {
    pub(super) exit: Exit,
    pub(super) usage: Usage,
    pub(super) kept: TruncatedOutput,
}

impl CommandExit {
    pub(super) fn status(&self) -> ToolStatus {
        let out_of_memory = self.usage.out_of_memory > 0;
        match self.exit.status {
            Status::Exited(code) => ToolStatus::Exited { code },
            Status::Signaled(signal) if out_of_memory && signal == KILL => {
                ToolStatus::Stopped { why: StopReason::Memory }
            }
            Status::Signaled(signal) => ToolStatus::Killed { signal },
            Status::Limited(limit) => ToolStatus::Stopped { why: reason(limit) },
            Status::Stopped => ToolStatus::Stopped { why: StopReason::Cancelled },
        }
    }

    /// The report, and the contents that must be appended with it.
    pub(super) fn report(self, log: &dyn EventLog) -> Result<(ToolReport, Contents), ComputerError> {
        let mut limits = Vec::new();
        if let Status::Limited(limit) = self.exit.status {
            limits.push(reason(limit));
        }
        if self.usage.out_of_memory > 0 {
            limits.push(StopReason::Memory);
        }
        if self.usage.out_of_processes > 0 {
            limits.push(StopReason::Processes);
        }
        let bytes = self.kept.into_bytes();
        let staged = if bytes.is_empty() { None } else { Some(log.stage(&mut &*bytes)?) };
        let output = staged.as_ref().map(|staged| staged.content());
        let report = ToolReport {
            output,
            written: self.exit.written,
            millis: u64::try_from(self.exit.elapsed.as_millis()).unwrap_or(u64::MAX),
            limits,
            notes: Vec::new(),
        };
        Ok((report, staged.and_then(|staged| staged.into_inline()).into_iter().collect()))
    }
}

const KILL: i32 = rustix::process::Signal::KILL.as_raw();

fn reason(limit: Limit) -> StopReason {
    match limit {
        Limit::Memory => StopReason::Memory,
        Limit::Processes => StopReason::Processes,
        Limit::Time => StopReason::Time,
        Limit::Disk => StopReason::Disk,
        Limit::Files => StopReason::Files,
        Limit::Output => StopReason::Output,
    }
}
