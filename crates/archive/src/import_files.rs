//! Imports the files of an archive into a computer that has its own log.
//!
//! Imports the final files of the archive, not its history: the caller submits the plan as one operation, which can
//! be undone like any other.

use std::collections::BTreeSet;

use event_log::EventLog;
use shared_types::payload::file::FileNode;
use shared_types::payload::system::SystemImport;
use shared_types::{ContentHash, FilePath};

use super::contents::copy_into_log;
use super::{ImportError, Progress, Verified};

/// The files to import, and where they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportPlan {
    pub import_event: SystemImport,
    /// Sorted by path.
    pub files: Vec<(FilePath, FileNode)>,
    /// Files whose contents are not in the archive because they were purged.
    pub omitted: Vec<FilePath>,
}

/// Plans the import of all files of an archive, optionally below a folder.
pub fn plan_import(verified: &Verified, into: Option<&FilePath>) -> Result<ImportPlan, ImportError> {
    let mut files = Vec::new();
    let mut omitted = Vec::new();
    for (path, node) in verified.view.files.sorted() {
        let available = node.content().is_none_or(|c| verified.archive.content_size(&c.hash).is_some());
        if !available {
            omitted.push(path.clone());
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
    let import_event = SystemImport {
        user: manifest.user.clone(),
        seq: manifest.seq,
        hash: manifest.hash,
        files: files.len() as u64,
    };
    Ok(ImportPlan { import_event, files, omitted })
}

/// Copies the contents of these files into a log before the operation that refers to them. Existing contents are
/// skipped. Returns the number of bytes copied.
pub fn stage_contents(
    verified: &Verified,
    log: &dyn EventLog,
    progress: Progress<'_>,
) -> Result<u64, ImportError> {
    let nodes = verified.view.files.iter().filter_map(|(_, node)| node.content());
    let all: BTreeSet<ContentHash> = nodes.map(|content| content.hash).collect();
    let mut missing = Vec::new();
    let mut total = 0;
    for hash in all {
        let available = log.has_content(&hash).map_err(|source| ImportError::Content { hash, source })?;
        if let (false, Some(size)) = (available, verified.archive.content_size(&hash)) {
            total += size;
            missing.push(hash);
        }
    }
    copy_into_log(&verified.archive, log, missing.into_iter(), progress, total)
}
