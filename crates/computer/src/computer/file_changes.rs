//! Changes of files: when they are acknowledged, and several files in one request, which are one operation.

use std::io::Read;

use event_log::EventLog;
use event_log::writer::{ChangeRequest, Mode};
use kernel::Action;
use shared_types::payload::file::FileNode;
use shared_types::wire::UploadedFile;
use shared_types::{Actor, ContentHash, FilePath};

use super::{Caller, Computer, Progress};
use crate::error::{ComputerError, ErrorCode};
use crate::protocol::ChangeResult;

/// Contents of small files that are kept in memory until the append that names them; more are stored before it.
const MAX_INLINE: usize = 1 << 20;

type InlineContents = Vec<(ContentHash, Vec<u8>)>;

impl Computer {
    /// Changes files and returns once the change is durable. The desktop reads from the log, so it does not wait for
    /// the disk; a person at the command line looks at the disk next, so their request does.
    pub(super) fn change_files(
        &self,
        caller: &Caller,
        change: ChangeRequest,
        contents: InlineContents,
        progress: Progress<'_>,
    ) -> Result<ChangeResult, ComputerError> {
        if self.is_watched() && caller.origin.actor == Actor::DESKTOP {
            let outcome = self.submit(caller, change, contents, Mode::Commit)?;
            return Ok(self.describe(caller.origin.op, &outcome, Mode::Commit));
        }
        self.change(caller, change, contents, Mode::Commit, progress)
    }

    /// Stages the bytes of all files, and returns the action that writes them with the contents that go with it.
    pub(super) fn stage_several(
        &self,
        files: &[UploadedFile],
        mut body: &mut dyn Read,
    ) -> Result<(Action, InlineContents), ComputerError> {
        let (mut staged, mut inline, mut inline_bytes) = (Vec::new(), InlineContents::new(), 0);
        for UploadedFile { path, size } in files {
            let one = self.log.stage(&mut (&mut body).take(*size))?;
            let content = one.content();
            if content.size != *size {
                let message = format!("the upload ended within {path}");
                return Err(ComputerError::new(ErrorCode::BadRequest, message));
            }
            staged.push((path.clone(), content));
            if let Some((hash, bytes)) = one.into_inline() {
                inline_bytes += bytes.len();
                inline.push((hash, bytes));
            }
            if inline_bytes > MAX_INLINE {
                self.log.store(std::mem::take(&mut inline))?;
                inline_bytes = 0;
            }
        }
        if body.read(&mut [0])? != 0 {
            let message = "the upload has more bytes than its files";
            return Err(ComputerError::new(ErrorCode::BadRequest, message));
        }
        let action = self.writer.inspect(move |view| {
            let mode = |path: &FilePath| match view.files.get(path) {
                Some(FileNode::File { mode, .. }) => *mode,
                Some(FileNode::Symlink { .. } | FileNode::Folder) | None => FileNode::DEFAULT_MODE,
            };
            let node = |(path, content)| {
                let node = FileNode::file(content, mode(&path));
                (path, node)
            };
            Action::WriteFiles { files: staged.into_iter().map(node).collect() }
        })?;
        Ok((action, inline))
    }
}
