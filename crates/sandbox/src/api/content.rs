//! Bytes of files, in and out.
//!
//! What somebody wrote is never a page of ours: it goes out with a policy that forbids everything, and as a download
//! when a browser would otherwise show it as a document.

use std::io::{self, Read};

use axum::Json;
use axum::body::{Body as Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use event_log::read_content;
use event_log::replay::view_at;
use futures_util::StreamExt;
use kernel::Base;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::payload::file::FileNode;
use shared_types::wire::Done;
use shared_types::{Actor, ContentHash, FilePath, Seq};
use tokio::sync::mpsc;

use super::problem::{Params, Refusal};
use super::{Of, problem};
use crate::desk::{Desk, blocking};
use crate::failure::{Code, Failure};
use crate::ids;
use crate::protocol::{Envelope, Request, VERSION};

const HASH: HeaderName = HeaderName::from_static("x-choir-hash");
/// Chunks of an upload that wait for the disk.
const AHEAD: usize = 16;

/// Which bytes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// A file; this or the hash must be there.
    path: Option<FilePath>,
    hash: Option<ContentHash>,
    /// The moment to read the path at; now, if absent.
    at: Option<Seq>,
    /// More than zero for a download.
    download: Option<u8>,
}

pub(super) async fn read(
    desk: Of,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let desk = desk.0;
    let (hash, name) = {
        let (desk, path, hash, at) = (desk.clone(), wanted.path.clone(), wanted.hash, wanted.at);
        blocking(move || find(&desk, path, hash, at)).await?
    };
    let tag = format!("\"{hash}\"");
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let bytes = blocking(move || Ok(read_content(&**desk.computer().log(), &hash)?)).await?;
    let attached = if wanted.download.unwrap_or_default() > 0 { "attachment" } else { "inline" };
    let plain: String =
        name.chars().map(|c| if c.is_ascii_graphic() && c != '"' && c != '\\' { c } else { '_' }).collect();
    let fields = [
        (header::ETAG, tag),
        (HASH, hash.to_string()),
        (header::CONTENT_TYPE, kind_of(&name).to_owned()),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("{attached}; filename=\"{plain}\"; filename*=UTF-8''{}", percent(&name)),
        ),
    ];
    let mut response = ranged(bytes, headers.get(header::RANGE));
    // A refusal is no file.
    if response.status().is_client_error() {
        return Ok(response);
    }
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// All of it, or the part that was asked for.
fn ranged(bytes: Vec<u8>, range: Option<&HeaderValue>) -> Response {
    let size = bytes.len();
    let asked = range.and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
    let Some((from, to)) = asked.and_then(|asked| asked.split_once('-')) else {
        return bytes.into_response();
    };
    let (start, end) = match (from.parse::<usize>().ok(), to.parse::<usize>().ok()) {
        (Some(start), end) => (start, end.unwrap_or(usize::MAX).min(size.saturating_sub(1))),
        (None, Some(last)) => (size.saturating_sub(last), size.saturating_sub(1)),
        (None, None) => return bytes.into_response(),
    };
    if start > end || start >= size {
        let detail = format!("the file has {size} bytes, and none of those were asked for");
        let refusal = Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_range", detail);
        return ([(header::CONTENT_RANGE, format!("bytes */{size}"))], refusal).into_response();
    }
    let part = [(header::CONTENT_RANGE, format!("bytes {start}-{end}/{size}"))];
    (StatusCode::PARTIAL_CONTENT, part, bytes[start..=end].to_vec()).into_response()
}

fn find(
    desk: &Desk,
    path: Option<FilePath>,
    hash: Option<ContentHash>,
    at: Option<Seq>,
) -> Result<(ContentHash, String), Failure> {
    let name = path.as_ref().map_or("content", |path| path.name()).to_owned();
    if let Some(hash) = hash {
        return Ok((hash, name));
    }
    let Some(path) = path else {
        return Err(Failure::new(Code::BadRequest, "say which: path=… or hash=…"));
    };
    let computer = desk.computer();
    let wanted = path.clone();
    let node = match at {
        None => computer.writer().inspect(move |view| view.files.get(&wanted).cloned())?,
        Some(seq) => view_at(&**computer.log(), seq)?.files.get(&path).cloned(),
    };
    match node {
        Some(FileNode::File { hash, .. }) => Ok((hash, name)),
        Some(FileNode::Folder | FileNode::Symlink { .. }) => {
            Err(Failure::new(Code::BadRequest, format!("{path} is not a file")))
        }
        None => Err(Failure::new(Code::NotFound, format!("there is no file {path}"))),
    }
}

fn percent(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    name.bytes().map(one).collect()
}

/// The type of a file by its name. What a browser could run or navigate to is plain text.
fn kind_of(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "pdf" => "application/pdf",
        "mp3" => "audio/mpeg",
        "ogg" | "oga" => "audio/ogg",
        "wav" => "audio/wav",
        "flac" => "audio/flac",
        "m4a" => "audio/mp4",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "json" => "application/json",
        "zip" | "gz" | "tar" | "wasm" | "bin" | "exe" | "so" => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    }
}

/// Where the bytes go, and what the caller believes to be there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    path: FilePath,
    /// `any`, `absent`, or the hash of what the caller saw.
    #[schemars(regex(pattern = "^(any|absent|[0-9a-f]{64})$"))]
    base: Option<String>,
}

pub(super) async fn write(
    desk: Of,
    Params(place): Params<Place>,
    body: Bytes,
) -> Result<Json<Done>, Refusal> {
    let desk = desk.0;
    let base = match place.base.as_deref() {
        None | Some("any") => Base::Any,
        Some("absent") => Base::Absent,
        Some(hash) => Base::Content(hash.parse().map_err(|_| {
            let detail = "base is any, absent, or the hash of what you saw";
            Refusal::new(StatusCode::BAD_REQUEST, "bad_request", detail)
        })?),
    };
    let path = place.path.clone();
    let request = Request::Write { path: place.path, mode: None, base };
    let envelope =
        Envelope { version: VERSION, actor: Actor::DESKTOP, command: ids::command(), op: ids::op(), request };
    let (chunks, received) = mpsc::channel(AHEAD);
    let expected = body.size_hint().exact();
    let receiving = tokio::spawn(receive(body, chunks));
    let computer = std::sync::Arc::clone(desk.computer());
    let answered = blocking(move || {
        let mut upload = Upload { received, chunk: Vec::new(), at: 0, taken: 0, expected };
        computer.handle(&envelope, &mut upload, &|_, _, _| ()).into_done()
    });
    match answered.await {
        Ok(done) => Ok(Json(done)),
        Err(failure) if failure.code == Code::Conflict => {
            let look = path.clone();
            let node = desk.computer().writer().inspect(move |view| view.files.get(&look).cloned());
            let current = node.ok().flatten().and_then(|node| node.content()).map(|content| content.hash);
            Err(problem::stale(failure.message, current))
        }
        // What broke off on its way says more than what it broke.
        Err(failure) => match receiving.await {
            Ok(Err(refusal)) => Err(refusal),
            Ok(Ok(())) | Err(_) => Err(failure.into()),
        },
    }
}

async fn receive(body: Bytes, chunks: mpsc::Sender<io::Result<Vec<u8>>>) -> Result<(), Refusal> {
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        match chunk {
            Ok(bytes) => {
                if chunks.send(Ok(bytes.to_vec())).await.is_err() {
                    return Ok(());
                }
            }
            Err(error) => {
                let _ = chunks.send(Err(io::Error::other("the upload broke off"))).await;
                return Err(problem::broken_body(error));
            }
        }
    }
    Ok(())
}

/// A body as a reader. One that ends before its announced length is no file.
struct Upload {
    received: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    at: usize,
    taken: u64,
    expected: Option<u64>,
}

impl Read for Upload {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            match self.received.blocking_recv() {
                Some(chunk) => (self.chunk, self.at) = (chunk?, 0),
                None if self.expected.is_some_and(|expected| expected != self.taken) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the upload was cut short"));
                }
                None => return Ok(0),
            }
        }
        let count = out.len().min(self.chunk.len() - self.at);
        out[..count].copy_from_slice(&self.chunk[self.at..self.at + count]);
        self.at += count;
        self.taken += count as u64;
        Ok(count)
    }
}
