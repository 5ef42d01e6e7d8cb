//! Ignored files, which the person's rules keep out of the log: build outputs, caches, secrets. Those of a command are
//! moved into the workspace without events. The files that they replace are kept in `.choir/trash/{op}`, up to a limit,
//! so that undo can restore them.
//!
//! Every move can be repeated, so after a crash the whole plan is applied again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use shared_types::{FilePath, OpId};

use crate::cells::layer_dir;
use crate::paths::ComputerPaths;

/// The plan of moves, stored beside the layer.
const PLAN_FILE: &str = "ignored.json";

/// One move of an ignored path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum IgnoredFileMove {
    /// From the layer into the workspace. What was there goes to the trash.
    #[serde(rename = "place")]
    IntoWorkspace { path: FilePath },
    /// From the workspace to the trash. Folders above it that the command removed, down from `gone`, are removed too.
    Trash { path: FilePath, gone: FilePath },
}

impl IgnoredFileMove {
    fn path(&self) -> &FilePath {
        match self {
            Self::IntoWorkspace { path } | Self::Trash { path, .. } => path,
        }
    }
}

/// Saves the plan and the layer durably, before the command's events are appended.
pub(super) fn write_plan(paths: &ComputerPaths, op: OpId, moves: &[IgnoredFileMove]) -> io::Result<()> {
    if moves.is_empty() {
        // An existing plan is from an attempt whose result was never recorded.
        return match fs::remove_file(layer_dir(paths, op).join(PLAN_FILE)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    fs::write(layer_dir(paths, op).join(PLAN_FILE), serde_json::to_vec(moves)?)?;
    isolation::layer::flush(&layer_dir(paths, op))
}

/// Applies the rest of the saved plan. A move that fails is skipped and reported, because it must not prevent the
/// computer from opening.
pub(super) fn apply_plan(paths: &ComputerPaths, op: OpId, limit: u64) -> io::Result<Vec<String>> {
    let text = match fs::read(layer_dir(paths, op).join(PLAN_FILE)) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let moves: Vec<IgnoredFileMove> = serde_json::from_slice(&text)?;
    let upper = layer_dir(paths, op).join("upper");
    let trash = Trash::of(paths, op);
    // Before the first move, so that an undo finds all of them even if this is interrupted.
    trash.remember(moves.iter().map(IgnoredFileMove::path))?;
    let mut notes = Vec::new();
    for next in &moves {
        if let Err(e) = apply_move(paths, &upper, &trash, next) {
            notes.push(format!("{} could not be moved: {e}", next.path()));
        }
    }
    fs::remove_file(layer_dir(paths, op).join(PLAN_FILE))?;
    if fs::remove_dir(&trash.folder).is_ok() {
        let _ = fs::remove_file(&trash.list);
    }
    if let Err(e) = prune(paths, limit) {
        notes.push(format!("old ignored files could not be deleted: {e}"));
    }
    Ok(notes)
}

fn apply_move(paths: &ComputerPaths, upper: &Path, trash: &Trash, next: &IgnoredFileMove) -> io::Result<()> {
    match next {
        IgnoredFileMove::Trash { path, gone } => {
            trash.take(&paths.workspace, path)?;
            remove_empty_parents(&paths.workspace, path, gone);
            Ok(())
        }
        IgnoredFileMove::IntoWorkspace { path } => {
            let source = upper.join(path.as_str());
            if fs::symlink_metadata(&source).is_err() {
                return Ok(());
            }
            // The command may have made the folders above it read-only, even for their owner.
            for ancestor in path.ancestors() {
                isolation::layer::make_writable(&upper.join(ancestor.as_str()));
            }
            isolation::layer::adopt(&source)?;
            trash.take(&paths.workspace, path)?;
            rename_between(upper, &paths.workspace, path)
        }
    }
}

/// After an operation was undone: swaps the files that it had moved to the trash with the present ones.
pub(in crate::computer) fn restore_from_trash(paths: &ComputerPaths, op: OpId, undo: OpId) -> io::Result<()> {
    let (old, new) = (Trash::of(paths, op), Trash::of(paths, undo));
    let moved = old.paths()?;
    for path in &moved {
        if fs::symlink_metadata(old.folder.join(path.as_str())).is_ok() {
            new.take(&paths.workspace, path)?;
            rename_between(&old.folder, &paths.workspace, path)?;
        }
    }
    if !moved.is_empty() {
        // One undo may revert several operations.
        let before = new.paths()?;
        new.remember(moved.iter().chain(&before))?;
        fs::remove_file(&old.list)?;
        let _ = isolation::layer::remove(&old.folder);
    }
    Ok(())
}

/// The trash of one operation.
struct Trash {
    folder: PathBuf,
    /// The paths in it. A folder alone does not say which paths were moved as a whole.
    list: PathBuf,
}

impl Trash {
    fn of(paths: &ComputerPaths, op: OpId) -> Self {
        let top = paths.state.join("trash");
        Self { folder: top.join(op.to_string()), list: top.join(format!("{op}.json")) }
    }

    /// Moves a path of the workspace here. A path that is in the trash already is kept.
    fn take(&self, workspace: &Path, path: &FilePath) -> io::Result<()> {
        if fs::symlink_metadata(self.folder.join(path.as_str())).is_ok() {
            return Ok(());
        }
        match rename_between(workspace, &self.folder, path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn remember<'p>(&self, paths: impl Iterator<Item = &'p FilePath>) -> io::Result<()> {
        let paths: BTreeSet<&FilePath> = paths.collect();
        fs::create_dir_all(&self.folder)?;
        fs::write(&self.list, serde_json::to_vec(&paths)?)
    }

    fn paths(&self) -> io::Result<BTreeSet<FilePath>> {
        match fs::read(&self.list) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(e) => Err(e),
        }
    }
}

/// Moves a path from one root folder to another. No link on the way is followed.
fn rename_between(from: &Path, to: &Path, path: &FilePath) -> io::Result<()> {
    let source = open_parent(from, path, IfMissing::Fail)?;
    statat(&source, path.name(), AtFlags::SYMLINK_NOFOLLOW)?;
    fs::create_dir_all(to)?;
    let target = open_parent(to, path, IfMissing::Make)?;
    Ok(renameat(&source, path.name(), &target, path.name())?)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Fail,
    Make,
}

/// Opens the folder above a path.
fn open_parent(root: &Path, path: &FilePath, missing: IfMissing) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
    let Some((folders, _)) = path.as_str().rsplit_once('/') else { return Ok(folder) };
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for part in folders.split('/') {
        let next = match openat2(folder.as_fd(), part, flags, Mode::empty(), inside) {
            Err(Errno::NOENT) if missing == IfMissing::Make => {
                mkdirat(folder.as_fd(), part, Mode::from_raw_mode(0o755))?;
                openat2(folder.as_fd(), part, flags, Mode::empty(), inside)
            }
            other => other,
        };
        folder = next?;
    }
    Ok(folder)
}

/// Removes empty folders above a path, up to the one that the command deleted.
fn remove_empty_parents(workspace: &Path, path: &FilePath, gone: &FilePath) {
    for folder in path.ancestors().take_while(|folder| folder.is_within(gone)) {
        let Ok(parent) = open_parent(workspace, &folder, IfMissing::Fail) else { return };
        if rustix::fs::unlinkat(&parent, folder.name(), AtFlags::REMOVEDIR).is_err() {
            return;
        }
    }
}

/// Deletes the oldest entries of the trash until the rest is within the limit.
fn prune(paths: &ComputerPaths, limit: u64) -> io::Result<()> {
    let top = paths.state.join("trash");
    let mut kept: Vec<(std::time::SystemTime, PathBuf, u64)> = Vec::new();
    for entry in fs::read_dir(&top).into_iter().flatten().flatten() {
        let found = entry.metadata()?;
        if found.is_dir() {
            kept.push((found.modified()?, entry.path(), isolation::layer::size(&entry.path())));
        }
    }
    kept.sort();
    let mut total: u64 = kept.iter().map(|(_, _, size)| size).sum();
    for (_, path, size) in kept {
        if total <= limit {
            return Ok(());
        }
        isolation::layer::remove(&path)?;
        let _ = fs::remove_file(path.with_extension("json"));
        total = total.saturating_sub(size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_an_earlier_version_left_is_still_read() {
        let stored = r#"[{"place":{"path":"a.log"}},{"trash":{"path":"b/c","gone":"b"}}]"#;
        let path = |text: &str| FilePath::parse(text).unwrap();
        let moves = vec![
            IgnoredFileMove::IntoWorkspace { path: path("a.log") },
            IgnoredFileMove::Trash { path: path("b/c"), gone: path("b") },
        ];
        assert_eq!(serde_json::from_str::<Vec<IgnoredFileMove>>(stored).unwrap(), moves);
        assert_eq!(serde_json::to_string(&moves).unwrap(), stored);
    }
}
