//! Taking over a run: when the person resumes it, the agents get a message that lists the files the person changed.

use std::ops::ControlFlow;

use event_log::{EventLog, decode_event};
use kernel::run::RunPhase;
use kernel::{RunAction, touched_files};
use shared_types::payload::run::{PauseReason, RunResume};
use shared_types::{ContentHash, FilePath, RunId, Source};

use super::Computer;
use crate::error::ComputerError;

/// The number of files that the message lists; of further ones only the number is given.
const MAX_LISTED_FILES: usize = 50;

/// The contents of an action.
type Contents = Vec<(ContentHash, Vec<u8>)>;

impl Computer {
    /// The action that resumes a run.
    pub(super) fn resume_action(
        &self,
        run: RunId,
        resume: RunResume,
    ) -> Result<(RunAction, Contents), ComputerError> {
        let changed = if self.is_taken_over(run)? { self.changed_by_person(run)? } else { Vec::new() };
        if changed.is_empty() {
            return Ok((RunAction::Resume(resume), Vec::new()));
        }
        let (words, contents) = self.stage_message("a message", &take_over_message(&changed))?;
        Ok((RunAction::HandBack { resume, words }, contents))
    }

    pub(super) fn is_taken_over(&self, run: RunId) -> Result<bool, ComputerError> {
        Ok(self.writer.inspect(move |view| {
            let phase = view.runs.get(&run).map(|run| &run.phase);
            matches!(phase, Some(RunPhase::Paused(PauseReason::TakenOver)))
        })?)
    }

    /// Files that the person changed since they took a run over.
    fn changed_by_person(&self, run: RunId) -> Result<Vec<FilePath>, ComputerError> {
        let log = &**self.log();
        let pauses = log.run(run)?.into_iter().filter(|stored| stored.name == "run.pause");
        let since = pauses.map(|stored| stored.seq).max().unwrap_or_default();
        let (mut events, mut failed) = (Vec::new(), None);
        log.scan(since, &mut |stored| {
            if stored.source != Source::User || !stored.name.starts_with("file.") {
                return ControlFlow::Continue(());
            }
            match decode_event(log, stored) {
                Ok(event) => {
                    events.push(event);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        Ok(touched_files(&events).into_iter().map(|(path, _)| path).collect())
    }
}

fn take_over_message(changed: &[FilePath]) -> String {
    let named: Vec<&str> = changed.iter().take(MAX_LISTED_FILES).map(FilePath::as_str).collect();
    let more = changed.len().saturating_sub(MAX_LISTED_FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "I took over for a while and changed these files: {}{more}. Look at them before you go on with them.",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_files_are_named() {
        let paths = |count: usize| -> Vec<FilePath> {
            (0..count).map(|n| FilePath::parse(&format!("{n}.md")).unwrap()).collect()
        };
        assert!(take_over_message(&paths(2)).contains("these files: 0.md, 1.md. Look"));
        assert!(take_over_message(&paths(53)).contains("49.md and 3 more. Look"));
    }
}
