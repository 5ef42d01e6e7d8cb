//! Replaces the current log with a new one, so that a crash leaves one of the two and never a mix.
//!
//! Three folders in `.choir` record the progress:
//!
//! - `import-new/`: a log is being built. After a crash it is deleted: the old computer stays.
//! - `import-ready/`: it is complete. The rename to this name is the commit: after a crash the swap continues.
//! - `import-old/`: the files of the old log, until the swap has ended.
//!
//! The old database is moved away first and the new one is moved in last, so at no time does one log see the other's
//! contents. While `import-ready/` holds a database, a database in `.choir` is the old one; afterwards it is the new
//! one. Every step can be repeated.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use event_log::{LogLock, SqliteLog};

use super::ImportError;
use super::error::disk;

pub(super) const NEW: &str = "import-new";
const READY: &str = "import-ready";
const OLD: &str = "import-old";
const BLOBS: &str = "blobs";
const VIEWS: &str = "views.sqlite";

/// What happened to an import that a crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptedImport {
    /// There was none.
    None,
    /// It was not committed: the old computer stays.
    RolledBack,
    /// It was committed and is now finished: the new computer is in place.
    Completed,
}

/// Finishes or rolls back an import that a crash interrupted. Call it before opening the log of a `.choir` folder; it
/// takes the log's lock if there is anything to do.
pub fn finish_interrupted(state_dir: &Path) -> Result<InterruptedImport, ImportError> {
    if !exists(&state_dir.join(NEW))? && !exists(&state_dir.join(READY))? {
        return Ok(InterruptedImport::None);
    }
    let _lock = LogLock::take(state_dir)?;
    finish_locked(state_dir)
}

/// Like [`finish_interrupted`], for a caller that already holds the lock.
pub(super) fn finish_locked(state_dir: &Path) -> Result<InterruptedImport, ImportError> {
    let mut found = InterruptedImport::None;
    if exists(&state_dir.join(NEW))? {
        remove(&state_dir.join(NEW))?;
        sync(state_dir)?;
        found = InterruptedImport::RolledBack;
    }
    if exists(&state_dir.join(READY))? {
        for step in steps(state_dir)? {
            step.execute()?;
        }
        found = InterruptedImport::Completed;
    }
    Ok(found)
}

/// Commits the swap: from here on the new log is the valid one.
pub(super) fn commit(state_dir: &Path) -> Result<(), ImportError> {
    sync(state_dir)?;
    rename(&state_dir.join(NEW), &state_dir.join(READY))?;
    sync(state_dir)
}

/// One step of a swap.
#[derive(Debug)]
enum SwapStep {
    Make(PathBuf),
    Move(PathBuf, PathBuf),
    Remove(PathBuf),
    Sync(PathBuf),
}

impl SwapStep {
    fn execute(&self) -> Result<(), ImportError> {
        match self {
            Self::Make(path) => fs::create_dir_all(path).map_err(disk("make", path)),
            Self::Move(from, to) => rename(from, to),
            Self::Remove(path) => remove(path),
            Self::Sync(path) => sync(path),
        }
    }
}

/// The remaining steps of a committed swap.
fn steps(dir: &Path) -> Result<Vec<SwapStep>, ImportError> {
    let (ready, old) = (dir.join(READY), dir.join(OLD));
    let mut steps = Vec::new();
    if exists(&ready.join(SqliteLog::FILE))? {
        let sync_all = || [dir, &ready, &old].map(|path| SwapStep::Sync(path.to_owned()));
        steps.push(SwapStep::Make(old.clone()));
        let (state, views) = leftovers(dir)?;
        steps.extend(state.into_iter().map(|name| SwapStep::Move(dir.join(&name), old.join(name))));
        steps.extend(views.into_iter().map(|name| SwapStep::Remove(dir.join(name))));
        steps.extend(sync_all());
        if exists(&ready.join(BLOBS))? {
            if exists(&dir.join(BLOBS))? {
                steps.push(SwapStep::Move(dir.join(BLOBS), old.join(BLOBS)));
            }
            steps.push(SwapStep::Move(ready.join(BLOBS), dir.join(BLOBS)));
        }
        steps.extend(sync_all());
        steps.push(SwapStep::Move(ready.join(SqliteLog::FILE), dir.join(SqliteLog::FILE)));
        steps.extend(sync_all());
    }
    steps.extend([SwapStep::Remove(old), SwapStep::Remove(ready), SwapStep::Sync(dir.to_owned())]);
    Ok(steps)
}

/// The file names of the old database, with its write-ahead log and its backups; and those of its read models.
fn leftovers(dir: &Path) -> Result<(Vec<String>, Vec<String>), ImportError> {
    let entries = fs::read_dir(dir).map_err(disk("list", dir))?;
    let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    let names = names.map_err(disk("list", dir))?;
    let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    // Sorted, so that the database comes before the files that belong to it.
    names.sort();
    let of = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).cloned().collect();
    Ok((of(SqliteLog::FILE), of(VIEWS)))
}

fn exists(path: &Path) -> Result<bool, ImportError> {
    path.try_exists().map_err(disk("look for", path))
}

fn rename(from: &Path, to: &Path) -> Result<(), ImportError> {
    fs::rename(from, to).map_err(disk("move", from))
}

fn remove(path: &Path) -> Result<(), ImportError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(disk("remove", path)),
    }
}

/// A renamed entry survives a power cut only when its folder is flushed.
pub(super) fn sync(folder: &Path) -> Result<(), ImportError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(disk("flush", folder))
}

#[cfg(test)]
mod tests;
