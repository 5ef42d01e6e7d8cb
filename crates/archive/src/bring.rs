//! Bringing the files of an archive into a computer that has a log of its own.
//!
//! Only what the archive's log leads to arrives, not its history: the caller submits the plan as one operation, which
//! can be undone like any other.

use std::collections::BTreeSet;

use event_log::EventLog;
use shared_types::payload::file::FileNode;
use shared_types::payload::system::SystemImport;
use shared_types::{ContentHash, FilePath};

use super::contents::take_in;
use super::{ImportError, Progress, Verified};

/// The files that arrive, and where they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub origin: SystemImport,
    /// Sorted by path.
    pub files: Vec<(FilePath, FileNode)>,
    /// Files whose bytes are not in the archive, because they were purged. They stay behind.
    pub left_out: Vec<FilePath>,
}

/// The files of an archive, below a folder if one is named.
pub fn plan_import(verified: &Verified, into: Option<&FilePath>) -> Result<Plan, ImportError> {
    let mut files = Vec::new();
    let mut left_out = Vec::new();
    for (path, node) in verified.view.files.sorted() {
        let here = node.content().is_none_or(|c| verified.archive.content_size(&c.hash).is_some());
        if !here {
            left_out.push(path.clone());
            continue;
        }
        let target = match into {
            Some(folder) => folder.join(path.as_str()),
            None => Ok(path.clone()),
        };
        let target = target.map_err(|source| ImportError::Path { path: path.clone(), source })?;
        files.push((target, node.clone()));
    }
    let manifest = verified.manifest();
    let origin = SystemImport {
        user: manifest.user.clone(),
        seq: manifest.seq,
        hash: manifest.hash,
        files: files.len() as u64,
    };
    Ok(Plan { origin, files, left_out })
}

/// Takes the contents of those files into a log, ahead of the operation that names them. What is there already is not
/// read again. Returns the bytes taken in.
pub fn stage_contents(
    verified: &Verified,
    log: &dyn EventLog,
    progress: Progress<'_>,
) -> Result<u64, ImportError> {
    let nodes = verified.view.files.iter().filter_map(|(_, node)| node.content());
    let all: BTreeSet<ContentHash> = nodes.map(|content| content.hash).collect();
    let mut lacking = Vec::new();
    let mut total = 0;
    for hash in all {
        let here = log.has_content(&hash).map_err(|source| ImportError::Content { hash, source })?;
        if let (false, Some(size)) = (here, verified.archive.content_size(&hash)) {
            total += size;
            lacking.push(hash);
        }
    }
    take_in(&verified.archive, log, lacking.into_iter(), progress, total)
}
