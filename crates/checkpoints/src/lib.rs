//! Git checkpoints of the workspace, in a bare repository of their own: `.choir/checkpoints.git`.
//!
//! A checkpoint is a copy for people and their tools; the log stays the truth. So a commit is written from the
//! contents of the log and never from the disk, nothing here checks anything out, and a repository that was lost is
//! written again in full. The branch only ever grows: there is no reset and no forced push.
//!
//! Git holds less than the log does: paths with a part that git takes for `.git`, folders with nothing in them and
//! permission bits other than "executable" are in the log only.
//!
//! Git runs with a clean environment and a configuration of ours ([`git`]); nothing that a cell can write decides
//! what it does. This module must not know the user's own `.git`.

mod commit;
mod error;
mod git;
mod import;
mod name;
mod push;
mod store;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use commit::{Changes, Commit, CommitId, CommitIdError, CommitRequest, Contents, LeftOut, Why};
pub use error::{CheckpointError, PushError};
pub use push::PUSH_LIMIT;

use git::Git;

const BRANCH: &str = "refs/heads/main";
const BACKUPS: &str = "refs/backups/";
/// No object: as the old value of a ref it means "only if there is none yet".
const NOTHING: &str = "0000000000000000000000000000000000000000";
/// More packs than this slow every look-up down.
const MANY_PACKS: usize = 50;

/// The repository of one workspace. Cheap to open; all calls block.
#[derive(Debug)]
pub struct CheckpointRepo {
    git: Git,
    workspace: PathBuf,
    /// Commits and refs are written by one thread at a time.
    turn: Mutex<()>,
    /// Held while this repository is open, so that nobody sweeps up behind a living one.
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
    /// Opens the repository in `state_dir` and makes it if it is missing. No program and no remote inside `workspace`
    /// is ever run or trusted, because a cell can write there.
    pub fn open(state_dir: &Path, workspace: &Path) -> Result<Self, CheckpointError> {
        let absolute = |path| std::path::absolute(path).map_err(CheckpointError::io("find the checkpoints"));
        let (state_dir, workspace) = (absolute(state_dir)?, absolute(workspace)?);
        let git = Git::find(state_dir.join(store::NAME), &workspace)?;
        store::create(&git, &state_dir)?;
        let owner = store::claim(git.dir())?;
        let repo = Self { git, workspace, turn: Mutex::new(()), _owner: owner };
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

    /// True if the commit is here.
    pub fn has(&self, commit: &CommitId) -> Result<bool, CheckpointError> {
        Ok(self.resolve(&format!("{commit}^{{commit}}"))?.is_some())
    }

    /// Writes one checkpoint. If the newest one was made for the same effect, that one is the answer: the process
    /// ended between the commit and its record.
    pub fn commit(
        &self,
        request: &CommitRequest<'_>,
        contents: &mut Contents<'_>,
    ) -> Result<Commit, CheckpointError> {
        let _turn = self.turn();
        let head = self.head()?;
        if let Some(head) = &head {
            let text = self.git.run("read the newest checkpoint", &["cat-file", "commit", head.as_str()])?;
            if let Some(seq) = commit::seq_made_for(&text, request.effect) {
                return Ok(Commit { commit: head.clone(), seq, left_out: Vec::new() });
            }
        }
        match &request.changes {
            Changes::Since(_) if head.is_none() || head != request.parent => Err(CheckpointError::NeedsFull),
            Changes::Since(_) | Changes::Full(_) => {
                import::write(&self.git, head.as_ref(), request, contents)
            }
        }
    }

    /// Keeps a commit under `refs/backups/{name}`. A name that is taken by another commit stays as it is.
    pub fn backup(&self, name: &str, commit: &CommitId) -> Result<(), CheckpointError> {
        if !name::is_ref_name(name) {
            return Err(CheckpointError::BackupName { name: name.into() });
        }
        let _turn = self.turn();
        let reference = format!("{BACKUPS}{name}");
        match self.resolve(&reference)? {
            Some(there) if there == *commit => return Ok(()),
            Some(there) => return Err(CheckpointError::BackupExists { name: name.into(), commit: there }),
            None => {}
        }
        if !self.has(commit)? {
            return Err(CheckpointError::NoSuchCommit { commit: commit.clone() });
        }
        self.git.run("make a backup ref", &["update-ref", &reference, commit.as_str(), NOTHING])?;
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

    /// Walks everything that the refs reach, and says what is not there. Bytes are not read.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        let args = ["fsck", "--connectivity-only", "--no-dangling", "--no-reflogs", "--no-progress"];
        let found = self.git.ask("check the checkpoints", &args)?;
        if found.success() {
            return Ok(());
        }
        let said = [found.stderr_text(), String::from_utf8_lossy(&found.stdout).trim().to_owned()];
        Err(self.damaged(said.join("\n").trim()))
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

    /// Joins packs when there are many, for idle times. Nothing is dropped.
    pub fn tidy(&self) -> Result<(), CheckpointError> {
        let _turn = self.turn();
        if store::count_packs(self.git.dir())? > MANY_PACKS {
            self.git.run("join the packs", &["repack", "-q", "-d", "-l", "--geometric=2"])?;
        }
        Ok(())
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data of ours, so a panic under it leaves nothing half done here.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resolve(&self, name: &str) -> Result<Option<CommitId>, CheckpointError> {
        let found = self.git.ask("look up a checkpoint", &["rev-parse", "--verify", "--quiet", name])?;
        let text = String::from_utf8_lossy(&found.stdout);
        match found.status.code() {
            Some(0) => CommitId::parse(text.trim()).map(Some).map_err(|e| self.damaged(&e.to_string())),
            Some(1) => Ok(None),
            // Anything else is git giving up, not an answer.
            Some(_) | None => Err(found.failure("look up a checkpoint")),
        }
    }

    /// The quick look that every opening takes: is it a repository, and does its branch lead somewhere?
    fn check(&self) -> Result<(), CheckpointError> {
        let kind = self.git.ask("open the checkpoints", &["rev-parse", "--is-bare-repository"])?;
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
        let found = self.git.ask("open the checkpoints", &["cat-file", "-e", &tree])?;
        if found.success() { Ok(()) } else { Err(self.damaged(&found.stderr_text())) }
    }

    fn damaged(&self, detail: &str) -> CheckpointError {
        CheckpointError::Damaged { path: self.git.dir().to_owned(), detail: detail.to_owned() }
    }
}
