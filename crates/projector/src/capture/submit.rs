//! Handing edits to the writer.

use event_log::ContentError;
use event_log::writer::{Change, Mode, Submission, SubmitError};
use kernel::Action;
use kernel::command::OutsideEdit;
use shared_types::payload::file::FileNode;
use shared_types::{Actor, ContentHash, Source};

use super::gather::Gathered;
use super::{Capture, CaptureIds, Found};
use crate::error::ProjectError;

impl Capture<'_> {
    /// True if there was something to record.
    pub(super) fn submit(
        &self,
        found: &[Found],
        gathered: Gathered,
        ids: CaptureIds,
    ) -> Result<bool, ProjectError> {
        let mut edits: Vec<OutsideEdit> = found
            .iter()
            .filter(|f| f.is_edit())
            .map(|f| OutsideEdit { path: f.path.clone(), base: f.base.clone(), now: f.node().cloned() })
            .collect();
        if edits.is_empty() {
            return Ok(false);
        }
        loop {
            let submission = Submission {
                command: ids.command,
                op: ids.op,
                source: Source::User,
                actor: Actor::CAPTURE,
                run_id: None,
                cause: None,
                taint: Vec::new(),
                change: Change::Do(Action::CaptureEdits { edits: edits.clone() }),
                contents: gathered.contents.clone(),
            };
            match self.writer.submit(submission, Mode::Commit) {
                Ok(outcome) => return Ok(outcome.appended.is_some()),
                // A merge needs bytes that are gone. Without a base the two versions are kept side by side.
                Err(SubmitError::Content(e)) if self.give_up_merging(&mut edits, gone(&e))? => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Drops the base of every edit whose merge needs this content. False if there is none.
    fn give_up_merging(
        &self,
        edits: &mut [OutsideEdit],
        gone: Option<ContentHash>,
    ) -> Result<bool, ProjectError> {
        let Some(gone) = gone else { return Ok(false) };
        let paths: Vec<_> = edits.iter().map(|edit| edit.path.clone()).collect();
        let today: Vec<Option<FileNode>> = self
            .writer
            .inspect(move |view| paths.iter().map(|path| view.files.get(path).cloned()).collect())?;
        let mut found = false;
        for (edit, today) in edits.iter_mut().zip(today) {
            let needs = |node: &Option<FileNode>| {
                node.as_ref().and_then(FileNode::content).is_some_and(|content| content.hash == gone)
            };
            if edit.base.is_some() && edit.now.is_some() && (needs(&edit.base) || needs(&today)) {
                edit.base = None;
                found = true;
            }
        }
        Ok(found)
    }
}

fn gone(error: &ContentError) -> Option<ContentHash> {
    match error {
        ContentError::Missing(hash) | ContentError::Purged(hash) | ContentError::Damaged(hash) => Some(*hash),
        ContentError::Storage(_) => None,
    }
}
