//! Files that the person's rules keep out of the log: build outputs, caches, secrets. A command's are moved to their
//! place without events; what they replace is kept in `.choir/trash/{op}` within limits, so that undo brings it back.
//!
//! Every step can be repeated: a crash between two of them is made good by doing all of them again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use shared_types::{FilePath, OpId};

use crate::cells::folder;
use crate::paths::ComputerPaths;

/// The steps, beside the layer that they are about.
const PLAN: &str = "ignored.json";

/// One thing to do to an ignored path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// What the layer holds takes its place in the workspace; what stood there goes to the trash.
    Place { path: FilePath },
    /// What the workspace holds goes to the trash, and with it the folders above it that the command removed, from
    /// `gone` on.
    Trash { path: FilePath, gone: FilePath },
}

impl Step {
    fn path(&self) -> &FilePath {
        match self {
            Self::Place { path } | Self::Trash { path, .. } => path,
        }
    }
}

/// Writes the steps down, durably with what they place, before the command's events are appended.
pub(super) fn plan(place: &ComputerPaths, op: OpId, steps: &[Step]) -> io::Result<()> {
    if steps.is_empty() {
        // One that was written before belongs to an attempt that did not come to be.
        return match fs::remove_file(folder(place, op).join(PLAN)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    fs::write(folder(place, op).join(PLAN), serde_json::to_vec(steps)?)?;
    isolation::layer::flush(&folder(place, op))
}

/// Does the steps that were written down, as far as they are not done yet. What cannot be done is left out and told:
/// nothing of it may keep the computer from being opened.
pub(super) fn carry_out(place: &ComputerPaths, op: OpId, limit: u64) -> io::Result<Vec<String>> {
    let text = match fs::read(folder(place, op).join(PLAN)) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let steps: Vec<Step> = serde_json::from_slice(&text)?;
    let upper = folder(place, op).join("upper");
    let trash = Trash::of(place, op);
    // Before the first step, so that an undo knows of it however far this comes.
    trash.remember(steps.iter().map(Step::path))?;
    let mut notes = Vec::new();
    for step in &steps {
        if let Err(e) = carry_out_one(place, &upper, &trash, step) {
            notes.push(format!("{} is not in its place: {e}", step.path()));
        }
    }
    fs::remove_file(folder(place, op).join(PLAN))?;
    if fs::remove_dir(&trash.folder).is_ok() {
        let _ = fs::remove_file(&trash.list);
    }
    if let Err(e) = prune(place, limit) {
        notes.push(format!("old ignored files could not be dropped: {e}"));
    }
    Ok(notes)
}

fn carry_out_one(place: &ComputerPaths, upper: &Path, trash: &Trash, step: &Step) -> io::Result<()> {
    match step {
        Step::Trash { path, gone } => {
            trash.take(&place.workspace, path)?;
            remove_hollow(&place.workspace, path, gone);
            Ok(())
        }
        Step::Place { path } => {
            let source = upper.join(path.as_str());
            if fs::symlink_metadata(&source).is_err() {
                return Ok(());
            }
            // The command may have closed the folders above it, even to their owner.
            for above in path.ancestors() {
                isolation::layer::make_writable(&upper.join(above.as_str()));
            }
            isolation::layer::adopt(&source)?;
            trash.take(&place.workspace, path)?;
            carry(upper, &place.workspace, path)
        }
    }
}

/// After an operation was taken back: what it had put into the trash changes places with what stands there now.
pub(in crate::computer) fn bring_back(place: &ComputerPaths, op: OpId, undo: OpId) -> io::Result<()> {
    let (old, new) = (Trash::of(place, op), Trash::of(place, undo));
    let paths = old.paths()?;
    for path in &paths {
        if fs::symlink_metadata(old.folder.join(path.as_str())).is_ok() {
            new.take(&place.workspace, path)?;
            carry(&old.folder, &place.workspace, path)?;
        }
    }
    if !paths.is_empty() {
        // Several operations may be taken back as one.
        let before = new.paths()?;
        new.remember(paths.iter().chain(&before))?;
        fs::remove_file(&old.list)?;
        let _ = isolation::layer::remove(&old.folder);
    }
    Ok(())
}

/// What one operation put away.
struct Trash {
    folder: PathBuf,
    /// The paths in it, since a folder alone does not say what was put there as a whole.
    list: PathBuf,
}

impl Trash {
    fn of(place: &ComputerPaths, op: OpId) -> Self {
        let top = place.state.join("trash");
        Self { folder: top.join(op.to_string()), list: top.join(format!("{op}.json")) }
    }

    /// Moves what stands at a path of the workspace here; the first that was put away stays.
    fn take(&self, workspace: &Path, path: &FilePath) -> io::Result<()> {
        if fs::symlink_metadata(self.folder.join(path.as_str())).is_ok() {
            return Ok(());
        }
        match carry(workspace, &self.folder, path) {
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

/// Renames what stands at a path below one folder to the same path below another. No link is followed on the way.
fn carry(from: &Path, to: &Path, path: &FilePath) -> io::Result<()> {
    let source = above(from, path, Missing::Fail)?;
    statat(&source, path.name(), AtFlags::SYMLINK_NOFOLLOW)?;
    fs::create_dir_all(to)?;
    let target = above(to, path, Missing::Make)?;
    Ok(renameat(&source, path.name(), &target, path.name())?)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fail,
    Make,
}

/// The folder above a path.
fn above(root: &Path, path: &FilePath, missing: Missing) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
    let Some((folders, _)) = path.as_str().rsplit_once('/') else { return Ok(folder) };
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for part in folders.split('/') {
        let next = match openat2(folder.as_fd(), part, flags, Mode::empty(), inside) {
            Err(Errno::NOENT) if missing == Missing::Make => {
                mkdirat(folder.as_fd(), part, Mode::from_raw_mode(0o755))?;
                openat2(folder.as_fd(), part, flags, Mode::empty(), inside)
            }
            other => other,
        };
        folder = next?;
    }
    Ok(folder)
}

/// Removes folders above a path, up to the one that went away, for as long as they are empty.
fn remove_hollow(workspace: &Path, path: &FilePath, gone: &FilePath) {
    for folder in path.ancestors().take_while(|folder| folder.is_within(gone)) {
        let Ok(above) = above(workspace, &folder, Missing::Fail) else { return };
        if rustix::fs::unlinkat(&above, folder.name(), AtFlags::REMOVEDIR).is_err() {
            return;
        }
    }
}

/// Drops the oldest of what was put away, until the rest is within the limit.
fn prune(place: &ComputerPaths, limit: u64) -> io::Result<()> {
    let top = place.state.join("trash");
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
        let steps =
            vec![Step::Place { path: path("a.log") }, Step::Trash { path: path("b/c"), gone: path("b") }];
        assert_eq!(serde_json::from_str::<Vec<Step>>(stored).unwrap(), steps);
        assert_eq!(serde_json::to_string(&steps).unwrap(), stored);
    }
}
