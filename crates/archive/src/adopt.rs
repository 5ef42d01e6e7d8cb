//! Adopts an archive: an empty computer becomes the exported one.
//!
//! A complete new log is built in `import-new/` beside the current one and then replaces it, so a crash or an error
//! leaves either the old computer or the new one (see [`swap`]).

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use event_log::snapshot::snapshot_of;
use event_log::sqlite::AdoptError;
use event_log::{EventLog, LogLock, SqliteLog};
use shared_types::{Seq, UserId};

use super::contents::copy_into_log;
use super::error::disk;
use super::events::Events;
use super::{ImportError, Progress, Verified, swap};

/// The head of an empty computer: its log holds only its creation.
const EMPTY_LOG_HEAD: Seq = Seq(1);

/// Makes the archive's log the log of `state_dir`, for `user`. No process may hold the log's lock.
pub fn adopt(
    verified: &Verified,
    state_dir: &Path,
    user: UserId,
    progress: Progress<'_>,
) -> Result<(), ImportError> {
    DirBuilder::new().recursive(true).mode(0o700).create(state_dir).map_err(disk("make", state_dir))?;
    let lock = LogLock::take(state_dir)?;
    swap::finish_locked(state_dir)?;
    let present = SqliteLog::head_of(state_dir, &lock)?.seq;
    if present > EMPTY_LOG_HEAD {
        return Err(ImportError::NotEmpty(present));
    }
    let new = state_dir.join(swap::NEW);
    let built = build(verified, &new, user, progress).and_then(|()| swap::commit(state_dir));
    if built.is_err() {
        // If this fails, the rest is rolled back the next time the computer is opened.
        let _ = fs::remove_dir_all(&new);
        return built;
    }
    swap::finish_locked(state_dir).map(drop)
}

fn build(
    verified: &Verified,
    folder: &Path,
    user: UserId,
    progress: Progress<'_>,
) -> Result<(), ImportError> {
    let archive = &verified.archive;
    let manifest = archive.manifest();
    let log = SqliteLog::create(folder, user)?;
    let total = manifest.contents.size.saturating_add(manifest.events.size);
    copy_into_log(archive, &log, archive.contents(), progress, total)?;

    let mut zip = archive.zip();
    let mut failure = None;
    let mut events = Events::new(archive, &mut zip)?;
    let adopted = log.adopt(&mut std::iter::from_fn(|| {
        let event = events.next()?;
        progress(manifest.contents.size.saturating_add(events.position()), total);
        event
            .map_err(|error| {
                failure = Some(error);
                "the archive's events cannot be read".into()
            })
            .into()
    }));
    match (adopted, failure) {
        (_, Some(error)) => return Err(error),
        (Err(error), None) => return Err(to_import_error(error)),
        (Ok(_), None) => {}
    }
    if !manifest.purged.is_empty() {
        log.purge(&manifest.purged).map_err(ImportError::Contents)?;
    }
    log.save_snapshot(&snapshot_of(&mut verified.view.clone())).map_err(ImportError::Snapshot)?;
    drop(log);
    flush(folder)
}

fn to_import_error(error: AdoptError) -> ImportError {
    match error {
        AdoptError::Misplaced { found, place } => ImportError::Misplaced { line: place.0, found },
        AdoptError::Unlinked(seq) => ImportError::Unlinked { seq },
        other @ (AdoptError::NotEmpty(_) | AdoptError::Source(_) | AdoptError::Storage(_)) => {
            ImportError::Adopt(other)
        }
    }
}

/// Closing the log has moved everything into the database file; check that, because only this file is renamed.
fn flush(folder: &Path) -> Result<(), ImportError> {
    let wal = folder.join(format!("{}-wal", SqliteLog::FILE));
    if fs::metadata(&wal).is_ok_and(|found| found.len() > 0) {
        return Err(disk("empty", &wal)(std::io::Error::other("the log was not closed")));
    }
    let database = folder.join(SqliteLog::FILE);
    File::open(&database).and_then(|file| file.sync_all()).map_err(disk("flush", &database))?;
    swap::sync(folder)
}
