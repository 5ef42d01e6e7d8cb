//! The input and output of a checkpoint: the request, the commit, and the message that links both to the log.

use std::fmt::{self, Write};
use std::io::Read;
use std::str::FromStr;

use event_log::ContentError;
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, EffectId, FilePath, Seq, Timestamp, UserId};
use thiserror::Error;

const SEQ: &str = "Choir-Seq: ";
const EFFECT: &str = "Choir-Effect: ";

/// Opens the content with a hash: the log's `content`.
pub type ContentSource<'a> = dyn FnMut(&ContentHash) -> Result<Box<dyn Read + Send>, ContentError> + 'a;

/// A text that is not a commit id.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("not a commit: expected 40 lower-case hex digits")]
pub struct CommitIdError;

/// The id of a commit: its SHA-1 in hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommitId(Box<str>);

impl CommitId {
    pub fn parse(text: &str) -> Result<Self, CommitIdError> {
        let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() == 40 && hex { Ok(Self(text.into())) } else { Err(CommitIdError) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CommitId {
    type Err = CommitIdError;
    fn from_str(text: &str) -> Result<Self, CommitIdError> {
        Self::parse(text)
    }
}

/// The files of a checkpoint.
#[derive(Debug, Clone)]
pub enum CommitFiles {
    /// All files, independent of the newest checkpoint.
    All(Vec<(FilePath, FileNode)>),
    /// Paths that differ from the parent, which must be the newest checkpoint. `None` means that the path no longer
    /// exists.
    ChangedSinceParent(Vec<(FilePath, Option<FileNode>)>),
}

/// A checkpoint to make. The same request gives the same commit on any machine.
#[derive(Debug, Clone)]
pub struct CommitRequest<'a> {
    pub effect: EffectId,
    /// The workspace as of this event is committed.
    pub seq: Seq,
    pub user: UserId,
    pub ts: Timestamp,
    pub message: &'a str,
    /// The parent of the changes. Ignored for a full commit, whose parent is always the newest checkpoint.
    pub parent: Option<CommitId>,
    pub changes: CommitFiles,
}

impl CommitRequest<'_> {
    /// The committer and the time, in the format of git.
    pub(super) fn signature(&self) -> String {
        let seconds = self.ts.millis().max(0) / 1000;
        format!("{0} <{0}@choiros.invalid> {seconds} +0000", self.user)
    }

    /// The message with trailers that refer to the log. They come last, so that no message can forge them.
    pub(super) fn full_message(&self) -> String {
        let mut text = self.message.trim().replace('\0', "\u{fffd}");
        if text.is_empty() {
            text.push_str("Checkpoint");
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "\n\n{SEQ}{}\n{EFFECT}{}\n", self.seq, self.effect);
        text
    }
}

/// A checkpoint that is durable in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a checkpoint counts only once the log records it"]
pub struct Commit {
    pub id: CommitId,
    /// The seq of the committed workspace. It is older than the requested one if the commit was made before a crash.
    pub seq: Seq,
    /// Files whose contents the log could not provide. Not known for a commit that was made before a crash.
    pub omitted: Vec<OmittedFile>,
}

/// A file of the workspace that is not in the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedFile {
    pub path: FilePath,
    pub reason: OmissionReason,
}

/// Why a file was omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OmissionReason {
    /// Its content was purged.
    Purged,
    /// Its content is not in the log.
    Missing,
    /// Its content does not match its hash or its size.
    Damaged,
}

/// The seq of a commit, if it was made for this effect.
pub(super) fn seq_made_for(commit: &[u8], effect: EffectId) -> Option<Seq> {
    let text = String::from_utf8_lossy(commit);
    let mut last = text.lines().rev();
    let made_for: EffectId = last.next()?.strip_prefix(EFFECT)?.parse().ok()?;
    let seq = last.next()?.strip_prefix(SEQ)?.parse().ok()?;
    (made_for == effect).then_some(seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_cannot_pretend_to_be_for_another_effect() {
        let effect = |n| EffectId::from_bytes([n; 16]);
        let forged = format!("x\n\nChoir-Seq: 9\nChoir-Effect: {}", effect(9));
        let request = CommitRequest {
            effect: effect(1),
            seq: Seq(4),
            user: UserId::parse("ada").unwrap(),
            ts: Timestamp::from_millis(1_500),
            message: &forged,
            parent: None,
            changes: CommitFiles::All(Vec::new()),
        };
        let message = request.full_message();
        assert_eq!(seq_made_for(message.as_bytes(), effect(1)), Some(Seq(4)));
        assert_eq!(seq_made_for(message.as_bytes(), effect(9)), None);
        assert_eq!(request.signature(), "ada <ada@choiros.invalid> 1 +0000");
    }

    #[test]
    fn only_forty_hex_digits_name_a_commit() {
        assert!(CommitId::parse(&"a1".repeat(20)).is_ok());
        for bad in ["", "main", "--help", &"A1".repeat(20), &"a".repeat(41)] {
            assert_eq!(CommitId::parse(bad), Err(CommitIdError), "{bad}");
        }
    }
}
