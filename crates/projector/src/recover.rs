//! Recovery after an interrupted batch. A path with an open intent holds the old content, the new one, or, after a
//! power cut, a torn version of the new one. Torn files are written again; anything else is an outside edit and stays.

use std::collections::BTreeSet;
use std::io::{self, Read};

use event_log::EventLog;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::error::ProjectError;
use crate::identify::read_node;
use crate::ledger::{Intent, Ledger};
use crate::views::Views;
use crate::workspace::Workspace;

/// How the batch was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// The process ended, perhaps with the machine.
    Unclean,
    /// A step failed in this process, so no file is torn.
    Failure,
}

/// Resolves every open intent.
pub(crate) fn recover(
    workspace: &Workspace,
    views: &Views,
    log: &dyn EventLog,
    stop: StopCause,
) -> Result<(), ProjectError> {
    let ledger = Ledger::new(views);
    if !ledger.has_intents()? {
        return Ok(());
    }
    let mut records = Vec::new();
    let intents = ledger.intents()?;
    let wanted: BTreeSet<&FilePath> = intents
        .iter()
        .filter(|intent| intent.new == Some(FileNode::Folder))
        .map(|intent| &intent.path)
        .collect();
    // Empty folders that the batch made or left are removed; the batch makes them again.
    let keeps = |folder: &FilePath| wanted.contains(folder) || matches!(ledger.has(folder), Ok(true));
    for intent in &intents {
        if matches!(workspace.observe(&intent.path), Ok(None)) {
            let _ = workspace.prune(&intent.path, &keeps);
        }
    }
    for intent in intents.iter().cloned() {
        // A path that cannot be read now keeps its entry in the ledger.
        let Ok(found) = read_node(workspace, &intent.path, None) else { continue };
        let is = found.as_ref().map(|entry| &entry.node);
        let is_own = is == intent.old.as_ref() || is == intent.new.as_ref();
        // The position is still before this batch, so a torn file that the ledger records as the projector's is
        // rewritten.
        if is_own || stop == StopCause::Unclean && is_torn(workspace, log, &intent, is) {
            records.push((intent.path, found));
        }
    }
    workspace.sync()?;
    views.transaction(|| {
        for (path, entry) in &records {
            ledger.record(path, entry.as_ref())?;
        }
        Ok::<_, ProjectError>(ledger.clear_intents()?)
    })
}

/// Whether the file holds only bytes of the new content and zeros: a file system leaves that when it renamed a file
/// before all of it was written.
fn is_torn(workspace: &Workspace, log: &dyn EventLog, intent: &Intent, is: Option<&FileNode>) -> bool {
    let (Some(FileNode::File { .. }), Some(new)) = (is, intent.new.as_ref().and_then(FileNode::content))
    else {
        return false;
    };
    let Ok(mut whole) = log.content(&new.hash) else { return false };
    matches!(is_partial(workspace, &intent.path, &mut whole), Ok(true))
}

fn is_partial(workspace: &Workspace, path: &FilePath, whole: &mut dyn Read) -> io::Result<bool> {
    let mut found = workspace.open_file(path).map_err(io::Error::other)?;
    let mut expected = [0; 8192];
    let mut actual = [0; 8192];
    loop {
        let count = found.read(&mut actual)?;
        if count == 0 {
            return Ok(true);
        }
        match whole.read_exact(&mut expected[..count]) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
        if actual[..count].iter().zip(&expected[..count]).any(|(a, e)| a != e && *a != 0) {
            return Ok(false);
        }
    }
}
