//! The file behind a document: what it holds, which content that is, and writing over one that is known.

use gloo_net::http::{Method, RequestBuilder};
use serde::{Deserialize, Serialize};
use shared_types::FilePath;
use shared_types::payload::file::FileNode;
use shared_types::wire::ChangeResult;

use crate::api::{self, Answer, Failure};
use crate::words;

/// What can be edited here without the page becoming slow.
const LARGEST: usize = 4 << 20;

/// What the text on screen was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Base {
    /// There was no file.
    Absent,
    Hash(String),
}

impl Base {
    fn name(&self) -> &str {
        match self {
            Self::Absent => "absent",
            Self::Hash(hash) => hash,
        }
    }
}

/// Why a file is not on the screen.
pub(super) enum ReadError {
    NotText(String),
    Failed(Failure),
}

/// What a file holds; one that is not there is empty.
pub(super) async fn read(path: &FilePath) -> Result<(Base, String), ReadError> {
    match api::bytes(&api::query("/content", &[("path", path.as_str())])).await {
        Ok((bytes, _)) if bytes.len() > LARGEST => Err(ReadError::NotText(words::editor::TOO_LARGE.into())),
        Ok((bytes, hash)) => match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok((hash.map_or(Base::Absent, Base::Hash), text)),
            Ok(_) | Err(_) => Err(ReadError::NotText(words::editor::NO_TEXT.into())),
        },
        Err(failure) if failure.status() == 404 => Ok((Base::Absent, String::new())),
        Err(failure) => Err(ReadError::Failed(failure)),
    }
}

/// The text that another was made from; one whose bytes were purged is as good as none.
pub(super) async fn before(base: &Base) -> Answer<String> {
    let Base::Hash(hash) = base else { return Ok(String::new()) };
    match api::bytes(&api::query("/content", &[("hash", hash)])).await {
        Ok((bytes, _)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(failure) if failure.status() == 404 || failure.status() == 410 => Ok(String::new()),
        Err(failure) => Err(failure),
    }
}

/// What is in the file, for the merge.
pub(super) async fn theirs(path: &FilePath) -> Answer<(Base, String)> {
    read(path).await.map_err(|unread| match unread {
        ReadError::NotText(why) => Failure::Unreadable(why),
        ReadError::Failed(failure) => failure,
    })
}

pub(super) async fn write(path: &FilePath, base: &Base, text: &str) -> Answer<ChangeResult> {
    let route = api::query("/content", &[("path", path.as_str()), ("base", base.name())]);
    api::put_bytes(&route, text.as_bytes()).await
}

/// Only which content a file holds; nothing if the computer does not answer.
pub(super) async fn head(path: &FilePath) -> Option<Base> {
    let route = api::url(&api::query("/content", &[("path", path.as_str())]));
    let response = RequestBuilder::new(&route).method(Method::HEAD).send().await.ok()?;
    match response.status() {
        200 => response.headers().get("x-choir-hash").map(Base::Hash),
        404 => Some(Base::Absent),
        _ => None,
    }
}

pub(super) fn hash_after(done: &ChangeResult, path: &FilePath) -> Option<Base> {
    let change = done.changes.iter().find(|change| change.path == *path)?;
    match &change.after {
        Some(FileNode::File { hash, .. }) => Some(Base::Hash(hash.to_string())),
        Some(FileNode::Symlink { .. } | FileNode::Folder) | None => None,
    }
}
