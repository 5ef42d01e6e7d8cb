//! Putting a new log in the place of the present one, so that a crash leaves one of the two and never a mix.
//!
//! Three folders in `.choir` tell how far it came:
//!
//! - `import-new/`: a log is being built. After a crash it is thrown away: the old computer stays.
//! - `import-ready/`: it is complete. This name is the commit: after a crash the swap goes on where it stopped.
//! - `import-old/`: what the new log takes the place of, until the swap has ended.
//!
//! The old database goes first and the new one comes last, so in between there is no log at all rather than one with
//! the other's contents. As long as `import-ready/` holds a database, whatever stands in the place of one is old; once
//! it does not, everything in place is new. Every step can be taken again.

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

/// What became of an import that a crash had interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// There was none.
    None,
    /// It had not come far enough: the old computer stands.
    RolledBack,
    /// It was complete but for its last steps: the new computer stands.
    Completed,
}

/// Ends an import that a crash interrupted. To be called before the log of a `.choir` folder is opened; takes the
/// log's lock if there is something to do.
pub fn finish_interrupted(state_dir: &Path) -> Result<Interrupted, ImportError> {
    if !exists(&state_dir.join(NEW))? && !exists(&state_dir.join(READY))? {
        return Ok(Interrupted::None);
    }
    let _lock = LogLock::take(state_dir)?;
    settle(state_dir)
}

/// The same for whoever holds the lock.
pub(super) fn settle(state_dir: &Path) -> Result<Interrupted, ImportError> {
    let mut found = Interrupted::None;
    if exists(&state_dir.join(NEW))? {
        remove(&state_dir.join(NEW))?;
        sync(state_dir)?;
        found = Interrupted::RolledBack;
    }
    if exists(&state_dir.join(READY))? {
        for step in steps(state_dir)? {
            step.take()?;
        }
        found = Interrupted::Completed;
    }
    Ok(found)
}

/// From here on the new log is the one that counts.
pub(super) fn commit(state_dir: &Path) -> Result<(), ImportError> {
    sync(state_dir)?;
    rename(&state_dir.join(NEW), &state_dir.join(READY))?;
    sync(state_dir)
}

/// One step of a swap.
#[derive(Debug)]
enum Step {
    Make(PathBuf),
    Move(PathBuf, PathBuf),
    Remove(PathBuf),
    Sync(PathBuf),
}

impl Step {
    fn take(&self) -> Result<(), ImportError> {
        match self {
            Self::Make(path) => fs::create_dir_all(path).map_err(disk("make", path)),
            Self::Move(from, to) => rename(from, to),
            Self::Remove(path) => remove(path),
            Self::Sync(path) => sync(path),
        }
    }
}

/// The steps that are left of a committed swap.
fn steps(dir: &Path) -> Result<Vec<Step>, ImportError> {
    let (ready, old) = (dir.join(READY), dir.join(OLD));
    let mut steps = Vec::new();
    if exists(&ready.join(SqliteLog::FILE))? {
        let sync_all = || [dir, &ready, &old].map(|path| Step::Sync(path.to_owned()));
        steps.push(Step::Make(old.clone()));
        let (state, views) = leftovers(dir)?;
        steps.extend(state.into_iter().map(|name| Step::Move(dir.join(&name), old.join(name))));
        steps.extend(views.into_iter().map(|name| Step::Remove(dir.join(name))));
        steps.extend(sync_all());
        if exists(&ready.join(BLOBS))? {
            if exists(&dir.join(BLOBS))? {
                steps.push(Step::Move(dir.join(BLOBS), old.join(BLOBS)));
            }
            steps.push(Step::Move(ready.join(BLOBS), dir.join(BLOBS)));
        }
        steps.extend(sync_all());
        steps.push(Step::Move(ready.join(SqliteLog::FILE), dir.join(SqliteLog::FILE)));
        steps.extend(sync_all());
    }
    steps.extend([Step::Remove(old), Step::Remove(ready), Step::Sync(dir.to_owned())]);
    Ok(steps)
}

/// The names of the old database, with its write-ahead log and its backups; and those of its read models.
fn leftovers(dir: &Path) -> Result<(Vec<String>, Vec<String>), ImportError> {
    let entries = fs::read_dir(dir).map_err(disk("list", dir))?;
    let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    let names = names.map_err(disk("list", dir))?;
    let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    // The database itself before what belongs to it.
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
