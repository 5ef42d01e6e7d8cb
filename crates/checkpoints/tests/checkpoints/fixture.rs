//! A computer without a log: folders, a repository, and contents by their hashes.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use checkpoints::{CheckpointError, CheckpointRepo, Commit, CommitFiles, CommitId, CommitRequest};
use event_log::ContentError;
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef, EffectId, FilePath, Seq, Timestamp, UserId};
use tempfile::TempDir;

/// A computer's folders, a repository, and contents by their hashes in place of a log.
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) repo: CheckpointRepo,
    pub(crate) contents: HashMap<ContentHash, Vec<u8>>,
    pub(crate) purged: Vec<ContentHash>,
    pub(crate) next: u8,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in [".choir", "workspace"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let repo = open(dir.path()).unwrap();
        Self { dir, repo, contents: HashMap::new(), purged: Vec::new(), next: 0 }
    }

    pub(crate) fn file(&mut self, bytes: impl AsRef<[u8]>, mode: u16) -> FileNode {
        let content = ContentRef::of(bytes.as_ref());
        self.contents.insert(content.hash, bytes.as_ref().to_vec());
        FileNode::file(content, mode)
    }

    pub(crate) fn commit_as(
        &self,
        effect: u8,
        parent: Option<CommitId>,
        changes: CommitFiles,
    ) -> Result<Commit, CheckpointError> {
        let request = CommitRequest {
            effect: EffectId::from_bytes([effect; 16]),
            seq: Seq(u64::from(effect)),
            user: UserId::parse("ada").unwrap(),
            ts: Timestamp::from_millis(1_700_000_000_000),
            message: "Before lunch",
            parent,
            changes,
        };
        self.repo.commit(&request, &mut |hash| {
            if self.purged.contains(hash) {
                return Err(ContentError::Purged(*hash));
            }
            let bytes = self.contents.get(hash).ok_or(ContentError::Missing(*hash))?;
            Ok(Box::new(Cursor::new(bytes.clone())))
        })
    }

    pub(crate) fn full(&mut self, files: Vec<(&str, FileNode)>) -> Commit {
        self.next += 1;
        let files = files.into_iter().map(|(name, node)| (path(name), node)).collect();
        self.commit_as(self.next, None, CommitFiles::All(files)).unwrap()
    }

    pub(crate) fn since(&mut self, parent: &CommitId, changes: Vec<(&str, Option<FileNode>)>) -> Commit {
        self.next += 1;
        let changes = changes.into_iter().map(|(name, node)| (path(name), node)).collect();
        self.commit_as(self.next, Some(parent.clone()), CommitFiles::ChangedSinceParent(changes)).unwrap()
    }

    /// Every file of a commit with its mode and bytes, read by a git without our configuration.
    pub(crate) fn read(&self, commit: &CommitId) -> BTreeMap<String, (u32, Vec<u8>)> {
        let entries = self.repo.tree(commit).unwrap();
        let bytes = |blob: &str| git(self.repo.path(), &["cat-file", "blob", blob]);
        entries.into_iter().map(|entry| (entry.path, (entry.mode, bytes(&entry.blob)))).collect()
    }

    pub(crate) fn paths(&self, commit: &CommitId) -> Vec<String> {
        self.repo.tree(commit).unwrap().into_iter().map(|entry| entry.path).collect()
    }
}

pub(crate) fn open(dir: &Path) -> Result<CheckpointRepo, CheckpointError> {
    CheckpointRepo::open(&dir.join(".choir"), &dir.join("workspace"))
}

pub(crate) fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git").arg("--git-dir").arg(dir).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub(crate) fn bare(at: PathBuf) -> PathBuf {
    let made = Command::new("git").args(["init", "--quiet", "--bare"]).arg(&at).status().unwrap();
    assert!(made.success());
    at
}

pub(crate) fn link(target: &str) -> FileNode {
    FileNode::Symlink { target: target.into() }
}
