//! Submitting captured edits to the writer.

use event_log::ContentError;
use event_log::writer::{ChangeRequest, Mode, Origin, Submission, SubmitError};
use kernel::Action;
use kernel::command::OutsideEdit;
use shared_types::payload::file::FileNode;
use shared_types::{Actor, ContentHash, Source};

use super::gather::GatheredContents;
use super::{Capture, CaptureIds, Difference};
use crate::error::ProjectError;

impl Capture<'_> {
    /// Submits the edits. False if there was nothing to record.
    pub(super) fn submit(
        &self,
        found: &[Difference],
        gathered: GatheredContents,
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
            let origin = Origin::new(ids.command, ids.op, Source::User, Actor::CAPTURE);
            let change = ChangeRequest::Do(Action::CaptureEdits { edits: edits.clone() });
            let submission = Submission::new(origin, change, gathered.contents.clone());
            match self.writer.submit(submission, Mode::Commit) {
                Ok(outcome) => return Ok(outcome.appended.is_some()),
                // A merge needs bytes that are missing. Without a base, both versions are kept.
                Err(SubmitError::Content(e)) if self.drop_bases(&mut edits, missing_content(&e))? => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Removes the base of every edit whose merge needs the missing content. False if there is none.
    fn drop_bases(
        &self,
        edits: &mut [OutsideEdit],
        missing: Option<ContentHash>,
    ) -> Result<bool, ProjectError> {
        let Some(missing) = missing else { return Ok(false) };
        let paths: Vec<_> = edits.iter().map(|edit| edit.path.clone()).collect();
        let today: Vec<Option<FileNode>> = self
            .writer
            .inspect(move |view| paths.iter().map(|path| view.files.get(path).cloned()).collect())?;
        let mut found = false;
        for (edit, today) in edits.iter_mut().zip(today) {
            let needs = |node: &Option<FileNode>| {
                node.as_ref().and_then(FileNode::content).is_some_and(|content| content.hash == missing)
            };
            if edit.base.is_some() && edit.now.is_some() && (needs(&edit.base) || needs(&today)) {
                edit.base = None;
                found = true;
            }
        }
        Ok(found)
    }
}

fn missing_content(error: &ContentError) -> Option<ContentHash> {
    match error {
        ContentError::Missing(hash) | ContentError::Purged(hash) | ContentError::Damaged(hash) => Some(*hash),
        ContentError::Storage(_) => None,
    }
}
