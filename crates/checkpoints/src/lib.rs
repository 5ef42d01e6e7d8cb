//! Git checkpoints of the workspace, in a bare repository of their own: `.choir/checkpoints.git`.
//!
//! A checkpoint is a copy for people and their tools; the log stays the source of truth. So a commit is written from
//! the contents of the log and never from the disk, nothing is ever checked out, and a lost repository is written
//! again in full. The branch only grows: there is no reset and no forced push.
//!
//! Git stores less than the log: paths with a component that git takes for `.git`, empty folders, and permission bits
//! other than "executable" are in the log only.
//!
//! Git runs with a clean environment and our configuration ([`git`]); files that a cell can write do not affect it.
//! This crate must not use the user's own `.git`.

mod commit;
mod error;
mod fast_import;
mod git;
mod name;
mod push;
mod store;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use commit::{
    Commit, CommitFiles, CommitId, CommitIdError, CommitRequest, ContentSource, OmissionReason, OmittedFile,
};
pub use error::{CheckpointError, PushError};
pub use push::PUSH_LIMIT;

use git::Git;

const BRANCH: &str = "refs/heads/main";
const BACKUPS: &str = "refs/backups/";
/// No object. As the old value of a ref it means "only if the ref does not exist".
const ZERO_OID: &str = "0000000000000000000000000000000000000000";
/// More packs than this slow down every lookup.
const MANY_PACKS: usize = 50;

/// The repository of one workspace. Cheap to open; all calls block.
#[derive(Debug)]
pub struct CheckpointRepo {
    git: Git,
    workspace: PathBuf,
    /// Held while commits and refs are written.
    write_lock: Mutex<()>,
    /// A lock that keeps other processes from removing our temporary files.
    _owner: Option<File>,
}

/// A ref that keeps a commit from before a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    pub name: String,
    pub commit: CommitId,
}

/// A file or link in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    pub path: String,
    /// As git has it: `0o100644`, `0o100755` or `0o120000`.
    pub mode: u32,
    pub blob: String,
}

impl CheckpointRepo {
    /// Opens the repository in `state_dir`, and creates it if it is missing. No program and no remote inside
    /// `workspace` is ever run or trusted, because a cell can write there.
    pub fn open(state_dir: &Path, workspace: &Path) -> Result<Self, CheckpointError> {
        let absolute = |path| std::path::absolute(path).map_err(CheckpointError::io("find the checkpoints"));
        let (state_dir, workspace) = (absolute(state_dir)?, absolute(workspace)?);
        let git = Git::find(state_dir.join(store::NAME), &workspace)?;
        store::create(&git, &state_dir)?;
        let owner = store::lock_owner(git.dir())?;
        let repo = Self { git, workspace, write_lock: Mutex::new(()), _owner: owner };
        repo.check()?;
        Ok(repo)
    }

    /// Where the repository is.
    pub fn path(&self) -> &Path {
        self.git.dir()
    }

    /// The newest checkpoint.
    pub fn head(&self) -> Result<Option<CommitId>, CheckpointError> {
        self.resolve(BRANCH)
    }

    /// True if the repository has the commit.
    pub fn has(&self, commit: &CommitId) -> Result<bool, CheckpointError> {
        Ok(self.resolve(&format!("{commit}^{{commit}}"))?.is_some())
    }

    /// Writes one checkpoint. If the newest one was made for the same effect, returns that one: the process ended
    /// after the commit and before it was recorded.
    pub fn commit(
        &self,
        request: &CommitRequest<'_>,
        contents: &mut ContentSource<'_>,
    ) -> Result<Commit, CheckpointError> {
        let _lock = self.write_lock();
        let head = self.head()?;
        if let Some(head) = &head {
            let text = self.git.run("read the newest checkpoint", &["cat-file", "commit", head.as_str()])?;
            if let Some(seq) = commit::seq_made_for(&text, request.effect) {
                return Ok(Commit { id: head.clone(), seq, omitted: Vec::new() });
            }
        }
        match &request.changes {
            CommitFiles::ChangedSinceParent(_) if head.is_none() || head != request.parent => {
                Err(CheckpointError::NeedsFull)
            }
            CommitFiles::ChangedSinceParent(_) | CommitFiles::All(_) => {
                fast_import::write(&self.git, head.as_ref(), request, contents)
            }
        }
    }

    /// Keeps a commit under `refs/backups/{name}`. An existing backup of another commit is not changed.
    pub fn backup(&self, name: &str, commit: &CommitId) -> Result<(), CheckpointError> {
        if !name::is_ref_name(name) {
            return Err(CheckpointError::BackupName { name: name.into() });
        }
        let _lock = self.write_lock();
        let reference = format!("{BACKUPS}{name}");
        match self.resolve(&reference)? {
            Some(existing) if existing == *commit => return Ok(()),
            Some(existing) => {
                return Err(CheckpointError::BackupExists { name: name.into(), commit: existing });
            }
            None => {}
        }
        if !self.has(commit)? {
            return Err(CheckpointError::NoSuchCommit { commit: commit.clone() });
        }
        self.git.run("make a backup ref", &["update-ref", &reference, commit.as_str(), ZERO_OID])?;
        Ok(())
    }

    /// All backups, by name.
    pub fn backups(&self) -> Result<Vec<Backup>, CheckpointError> {
        let format = "--format=%(objectname) %(refname)";
        let listed = self.git.run("list the backups", &["for-each-ref", format, BACKUPS])?;
        let listed = String::from_utf8_lossy(&listed);
        let backup = |line: &str| {
            let (commit, name) = line.split_once(' ')?;
            let name = name.strip_prefix(BACKUPS)?.to_owned();
            Some(Backup { name, commit: CommitId::parse(commit).ok()? })
        };
        Ok(listed.lines().filter_map(backup).collect())
    }

    /// Checks that all objects reachable from the refs exist, without reading blobs.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        let args = ["fsck", "--connectivity-only", "--no-dangling", "--no-reflogs", "--no-progress"];
        let found = self.git.run_unchecked("check the checkpoints", &args)?;
        if found.success() {
            return Ok(());
        }
        let message = [found.stderr_text(), String::from_utf8_lossy(&found.stdout).trim().to_owned()];
        Err(self.damaged(message.join("\n").trim()))
    }

    /// Every file and link of a commit, in git's order.
    pub fn tree(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, CheckpointError> {
        let mut entries = Vec::new();
        self.git.each_entry(commit, &mut |mode, blob, path| {
            let path = String::from_utf8_lossy(path).into_owned();
            entries.push(TreeEntry { path, mode, blob: blob.to_owned() });
        })?;
        Ok(entries)
    }

    /// Merges packs when there are many, for idle times. No object is dropped.
    pub fn repack_if_many(&self) -> Result<(), CheckpointError> {
        let _lock = self.write_lock();
        if store::count_packs(self.git.dir())? > MANY_PACKS {
            self.git.run("merge the packs", &["repack", "-q", "-d", "-l", "--geometric=2"])?;
        }
        Ok(())
    }

    fn write_lock(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data of ours, so a panic while it is held leaves no invalid state.
        self.write_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resolve(&self, name: &str) -> Result<Option<CommitId>, CheckpointError> {
        let found =
            self.git.run_unchecked("look up a checkpoint", &["rev-parse", "--verify", "--quiet", name])?;
        let text = String::from_utf8_lossy(&found.stdout);
        match found.status.code() {
            Some(0) => CommitId::parse(text.trim()).map(Some).map_err(|e| self.damaged(&e.to_string())),
            Some(1) => Ok(None),
            // Any other exit code is an error.
            Some(_) | None => Err(found.failure("look up a checkpoint")),
        }
    }

    /// A quick check at every opening: is it a bare repository, and does its branch have a tree?
    fn check(&self) -> Result<(), CheckpointError> {
        let kind = self.git.run_unchecked("open the checkpoints", &["rev-parse", "--is-bare-repository"])?;
        if !kind.success() || kind.stdout.trim_ascii() != b"true" {
            return Err(self.damaged(&kind.stderr_text()));
        }
        let Some(head) = self.head()? else {
            return if self.git.dir().join(BRANCH).exists() {
                Err(self.damaged("the ref of the main branch is not readable"))
            } else {
                Ok(())
            };
        };
        let tree = format!("{head}^{{tree}}");
        let found = self.git.run_unchecked("open the checkpoints", &["cat-file", "-e", &tree])?;
        if found.success() { Ok(()) } else { Err(self.damaged(&found.stderr_text())) }
    }

    fn damaged(&self, detail: &str) -> CheckpointError {
        CheckpointError::Damaged { path: self.git.dir().to_owned(), detail: detail.to_owned() }
    }
}
