//! Reads and writes the file of a document, always with its version.

use gloo_net::http::{Method, RequestBuilder};
use serde::{Deserialize, Serialize};
use shared_types::payload::file::FileNode;
use shared_types::wire::ChangeResult;
use shared_types::{CommandId, ContentHash, FilePath};

use crate::api::{self, ApiFailure, ApiResult};
use crate::words;

/// Bytes that can be edited without making the page slow.
const LARGEST: usize = 4 << 20;

/// A version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SavedVersion {
    /// There is no file.
    Absent,
    Hash(ContentHash),
}

impl SavedVersion {
    /// The version in a query.
    fn name(&self) -> String {
        match self {
            Self::Absent => "absent".to_owned(),
            Self::Hash(hash) => hash.to_string(),
        }
    }
}

/// Why a file cannot be shown.
pub(super) enum ReadError {
    NotText(String),
    Failed(ApiFailure),
}

/// The version and the text of a file; a missing one is empty.
pub(super) async fn read(path: &FilePath) -> Result<(SavedVersion, String), ReadError> {
    match api::bytes(&api::query("/content", &[("path", path.as_str())])).await {
        Ok((bytes, _)) if bytes.len() > LARGEST => Err(ReadError::NotText(words::editor::TOO_LARGE.into())),
        Ok((bytes, hash)) => match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => {
                Ok((hash.map_or(SavedVersion::Absent, SavedVersion::Hash), text))
            }
            Ok(_) | Err(_) => Err(ReadError::NotText(words::editor::NO_TEXT.into())),
        },
        Err(failure) if failure.status() == 404 => Ok((SavedVersion::Absent, String::new())),
        Err(failure) => Err(ReadError::Failed(failure)),
    }
}

/// The text of a version; empty if its bytes were purged.
pub(super) async fn before(base: &SavedVersion) -> ApiResult<String> {
    let SavedVersion::Hash(hash) = base else { return Ok(String::new()) };
    match api::bytes(&api::query("/content", &[("hash", &hash.to_string())])).await {
        Ok((bytes, _)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(failure) if failure.status() == 404 || failure.status() == 410 => Ok(String::new()),
        Err(failure) => Err(failure),
    }
}

/// The version and the text of a file, for a merge.
pub(super) async fn read_for_merge(path: &FilePath) -> ApiResult<(SavedVersion, String)> {
    read(path).await.map_err(|unread| match unread {
        ReadError::NotText(why) => ApiFailure::Unreadable(why),
        ReadError::Failed(failure) => failure,
    })
}

/// One save. Sent again as it is, it is carried out once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attempt {
    pub(super) command: CommandId,
    /// The version that it replaces.
    pub(super) base: SavedVersion,
    pub(super) text: String,
}

pub(super) async fn write(path: &FilePath, attempt: &Attempt) -> ApiResult<ChangeResult> {
    let route = api::query("/content", &[("path", path.as_str()), ("base", &attempt.base.name())]);
    api::put_bytes_as(attempt.command, &route, attempt.text.as_bytes()).await
}

/// The version of a file, without its text; `None` if the server does not answer.
pub(super) async fn head(path: &FilePath) -> Option<SavedVersion> {
    let route = api::url(&api::query("/content", &[("path", path.as_str())]));
    let response = RequestBuilder::new(&route).method(Method::HEAD).send().await.ok()?;
    match response.status() {
        200 => api::content_hash(&response).ok()?.map(SavedVersion::Hash),
        404 => Some(SavedVersion::Absent),
        _ => None,
    }
}

pub(super) fn hash_after(done: &ChangeResult, path: &FilePath) -> Option<SavedVersion> {
    let change = done.changes.iter().find(|change| change.path == *path)?;
    match &change.after {
        Some(FileNode::File { hash, .. }) => Some(SavedVersion::Hash(*hash)),
        Some(FileNode::Symlink { .. } | FileNode::Folder) | None => None,
    }
}
