//! After an unclean stop: paths with an open intent hold the old content, the new one, or, after a power cut, torn
//! bytes of the new one. Torn bytes are projected again; anything else is somebody's edit and stays.

use std::io::Read;

use event_log::EventLog;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::error::ProjectError;
use crate::identify::look;
use crate::ledger::{Intent, Ledger};
use crate::views::Views;
use crate::workspace::Workspace;

/// Settles every open intent.
pub(crate) fn recover(workspace: &Workspace, views: &Views, log: &dyn EventLog) -> Result<(), ProjectError> {
    workspace.clean_scratch()?;
    let ledger = Ledger::new(views);
    let intents = ledger.intents()?;
    if intents.is_empty() {
        return Ok(());
    }
    let mut records = Vec::new();
    for intent in intents {
        let found = look(workspace, &intent.path, None)?;
        let is = found.as_ref().map(|entry| &entry.node);
        if is == intent.old.as_ref() || is == intent.new.as_ref() {
            records.push((intent.path, found));
        } else if is_torn(workspace, log, &intent, is) {
            workspace.remove(&intent.path)?;
            records.push((intent.path, None));
        }
        // Otherwise the ledger keeps what it said, and the capture finds the edit.
    }
    workspace.sync()?;
    views.transaction(|| {
        for (path, entry) in &records {
            ledger.record(path, entry.as_ref())?;
        }
        Ok::<_, ProjectError>(ledger.clear_intents()?)
    })
}

/// True if the file holds nothing but bytes of the new content, with holes of zeros: what a file system leaves when
/// it renamed a file before writing all of it.
fn is_torn(workspace: &Workspace, log: &dyn EventLog, intent: &Intent, is: Option<&FileNode>) -> bool {
    let (Some(FileNode::File { .. }), Some(new)) = (is, intent.new.as_ref().and_then(FileNode::content))
    else {
        return false;
    };
    let Ok(mut whole) = log.content(&new.hash) else { return false };
    matches!(is_partial(workspace, &intent.path, &mut whole), Ok(true))
}

fn is_partial(workspace: &Workspace, path: &FilePath, whole: &mut dyn Read) -> std::io::Result<bool> {
    let mut found = workspace.open_file(path).map_err(std::io::Error::other)?;
    let mut expected = [0; 8192];
    let mut actual = [0; 8192];
    loop {
        let count = found.read(&mut actual)?;
        if count == 0 {
            return Ok(true);
        }
        let mut filled = 0;
        while filled < count {
            match whole.read(&mut expected[filled..count])? {
                0 => return Ok(false),
                more => filled += more,
            }
        }
        if actual[..count].iter().zip(&expected[..count]).any(|(a, e)| a != e && *a != 0) {
            return Ok(false);
        }
    }
}
