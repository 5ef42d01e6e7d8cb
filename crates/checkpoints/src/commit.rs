//! What goes into a checkpoint and what comes out: the request, the commit, and the message that joins both to the
//! log.

use std::fmt::{self, Write};
use std::io::Read;
use std::str::FromStr;

use event_log::ContentError;
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, EffectId, FilePath, Seq, Timestamp, UserId};
use thiserror::Error;

const SEQ: &str = "Choir-Seq: ";
const EFFECT: &str = "Choir-Effect: ";

/// Where the bytes behind a hash come from: the log's `content`.
pub type Contents<'a> = dyn FnMut(&ContentHash) -> Result<Box<dyn Read + Send>, ContentError> + 'a;

/// A text that should have been the name of a commit and was not.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("not a commit: expected 40 lower-case hex digits")]
pub struct CommitIdError;

/// The name of a commit.
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
pub enum Changes {
    /// Everything there is, whatever the newest checkpoint holds.
    Full(Vec<(FilePath, FileNode)>),
    /// What differs from the parent, which has to be the newest checkpoint. `None` is a path where nothing is any
    /// more.
    Since(Vec<(FilePath, Option<FileNode>)>),
}

/// One checkpoint to be made. The same request gives the same commit on any machine.
#[derive(Debug, Clone)]
pub struct CommitRequest<'a> {
    pub effect: EffectId,
    /// The workspace is taken as of this event.
    pub seq: Seq,
    pub user: UserId,
    pub ts: Timestamp,
    pub message: &'a str,
    /// The checkpoint that the changes build on. One in full follows the newest there is, whatever stands here.
    pub parent: Option<CommitId>,
    pub changes: Changes,
}

impl CommitRequest<'_> {
    /// Who committed, and when, as git writes it.
    pub(super) fn signature(&self) -> String {
        let seconds = self.ts.millis().max(0) / 1000;
        format!("{0} <{0}@choiros.invalid> {seconds} +0000", self.user)
    }

    /// The message with the trailers that lead back to the log. They come last, so that no message can forge them.
    pub(super) fn full_message(&self) -> String {
        let mut text = self.message.trim().replace('\0', "\u{fffd}");
        if text.is_empty() {
            text.push_str("Checkpoint");
        }
        // Writing to a string has no failure.
        let _ = write!(text, "\n\n{SEQ}{}\n{EFFECT}{}\n", self.seq, self.effect);
        text
    }
}

/// A checkpoint that is durable in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a checkpoint counts only once the log records it"]
pub struct Commit {
    pub commit: CommitId,
    /// The seq that the commit holds. It is older than the one asked for if the commit was made before a crash.
    pub seq: Seq,
    /// Files whose bytes the log could not give. A commit from before a crash does not repeat them.
    pub left_out: Vec<LeftOut>,
}

/// A file that is not in the commit although it is in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub path: FilePath,
    pub why: Why,
}

/// Why a file was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its bytes were dropped for good.
    Purged,
    /// Its bytes are not in the log.
    Missing,
    /// Its bytes do not have their hash or their size.
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
            changes: Changes::Full(Vec::new()),
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
