//! Reads and writes the bytes of files.
//!
//! User content is never served as a page of ours: responses carry a policy that forbids everything, and are downloads
//! where a browser would render them as a document.

use std::io::{self, Read};
use std::ops::Range;

use axum::Json;
use axum::body::{Body as Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use event_log::EventLog;
use event_log::replay::view_at;
use futures_util::StreamExt;
use http_range_header::parse_range_header;
use kernel::Base;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::payload::file::FileNode;
use shared_types::wire::{ChangeResult, UploadedFile};
use shared_types::{ContentHash, FilePath, Seq};
use tokio::sync::mpsc;

use super::change::ChangeContext;
use super::problem::{Params, RouteError};
use super::{CurrentComputer, problem};
use crate::open_computer::{OpenComputer, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::{Envelope, Request};

const HASH: HeaderName = HeaderName::from_static("x-choir-hash");
/// Chunks of an upload that wait for the disk, and of a download that wait for the caller.
const QUEUED_CHUNKS: usize = 16;
const CHUNK: usize = 64 << 10;
/// The characters that RFC 8187 requires to be encoded in a file name, and a few more.
const ENCODED_IN_FILE_NAMES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Which bytes to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentQuery {
    /// A file. Either this or the hash is required.
    path: Option<FilePath>,
    hash: Option<ContentHash>,
    /// The event at which to read the path; absent for now.
    at: Option<Seq>,
    /// More than zero for a download.
    download: Option<u8>,
}

pub(super) async fn read(
    open_computer: CurrentComputer,
    method: Method,
    Params(query): Params<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response, RouteError> {
    let open_computer = open_computer.0;
    let (hash, name) = {
        let (open_computer, path, hash, at) =
            (open_computer.clone(), query.path.clone(), query.hash, query.at);
        blocking(move || find(&open_computer, path, hash, at)).await?
    };
    let tag = format!("\"{hash}\"");
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let size = {
        let open_computer = open_computer.clone();
        blocking(move || Ok(open_computer.computer().log().content_size(&hash)?)).await?
    };
    // A range refers to the version in `If-Range`, if the caller sends one.
    let same = headers.get(header::IF_RANGE).is_none_or(|known| known.as_bytes() == tag.as_bytes());
    let part = match headers.get(header::RANGE).filter(|_| same).map(|range| requested_range(range, size)) {
        None | Some(RequestedRange::Whole) => None,
        Some(RequestedRange::Range(range)) => Some(range),
        Some(RequestedRange::Unsatisfiable) => return Ok(range_not_satisfiable(size)),
    };
    let range = part.clone().unwrap_or(0..size);
    let (status, length) = if part.is_some() {
        (StatusCode::PARTIAL_CONTENT, range.end - range.start)
    } else {
        (StatusCode::OK, size)
    };
    let body = if method == Method::HEAD { Bytes::empty() } else { send(open_computer, hash, part).await? };
    let attached = if query.download.unwrap_or_default() > 0 { "attachment" } else { "inline" };
    let plain: String =
        name.chars().map(|c| if c.is_ascii_graphic() && c != '"' && c != '\\' { c } else { '_' }).collect();
    let encoded = utf8_percent_encode(&name, ENCODED_IN_FILE_NAMES);
    let mut fields = vec![
        (header::ETAG, tag),
        (HASH, hash.to_string()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_TYPE, content_type(&name).to_owned()),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("{attached}; filename=\"{plain}\"; filename*=UTF-8''{encoded}"),
        ),
    ];
    if status == StatusCode::PARTIAL_CONTENT {
        fields.push((header::CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1)));
    }
    let mut response = (status, body).into_response();
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// The range that a request asks for.
enum RequestedRange {
    /// Everything, also if several ranges are requested: RFC 9110, 14.2 lets a server ignore them.
    Whole,
    Range(Range<u64>),
    Unsatisfiable,
}

fn requested_range(range: &HeaderValue, size: u64) -> RequestedRange {
    let Ok(parsed) = range.to_str().map_err(drop).and_then(|text| parse_range_header(text).map_err(drop))
    else {
        return RequestedRange::Whole;
    };
    match parsed.validate(size).as_deref() {
        Ok([one]) => RequestedRange::Range(*one.start()..*one.end() + 1),
        Ok(_) => RequestedRange::Whole,
        Err(_) => RequestedRange::Unsatisfiable,
    }
}

fn range_not_satisfiable(size: u64) -> Response {
    let detail = format!("the file has {size} bytes, and the requested range is outside of them");
    let refusal = RouteError::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_range", detail);
    ([(header::CONTENT_RANGE, format!("bytes */{size}"))], refusal).into_response()
}

/// Streams a content or a range of it. If its bytes are damaged, the connection ends before the last of them.
async fn send(
    open_computer: OpenComputer,
    hash: ContentHash,
    part: Option<Range<u64>>,
) -> Result<Bytes, RouteError> {
    let mut reader = blocking(move || {
        let log = open_computer.computer().log();
        Ok(match part {
            Some(range) => log.content_range(&hash, range)?,
            None => log.content(&hash)?,
        })
    })
    .await?;
    let (chunks, sent) = mpsc::channel(QUEUED_CHUNKS);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut chunk = vec![0; CHUNK];
            let read = reader.read(&mut chunk).map(|count| {
                chunk.truncate(count);
                chunk
            });
            let over = read.as_ref().map_or(true, Vec::is_empty);
            if read.as_ref().is_ok_and(Vec::is_empty) || chunks.blocking_send(read).is_err() || over {
                return;
            }
        }
    });
    let next = |mut sent: mpsc::Receiver<io::Result<Vec<u8>>>| async { Some((sent.recv().await?, sent)) };
    Ok(Bytes::from_stream(futures_util::stream::unfold(sent, next)))
}

fn find(
    open_computer: &OpenComputer,
    path: Option<FilePath>,
    hash: Option<ContentHash>,
    at: Option<Seq>,
) -> Result<(ContentHash, String), ComputerError> {
    let name = path.as_ref().map_or("content", |path| path.name()).to_owned();
    if let Some(hash) = hash {
        return Ok((hash, name));
    }
    let Some(path) = path else {
        return Err(ComputerError::new(ErrorCode::BadRequest, "give path=… or hash=…"));
    };
    let computer = open_computer.computer();
    let wanted = path.clone();
    let node = match at {
        None => computer.writer().inspect(move |view| view.files.get(&wanted).cloned())?,
        Some(seq) => view_at(&**computer.log(), seq)?.files.get(&path).cloned(),
    };
    match node {
        Some(FileNode::File { hash, .. }) => Ok((hash, name)),
        Some(FileNode::Folder | FileNode::Symlink { .. }) => {
            Err(ComputerError::new(ErrorCode::BadRequest, format!("{path} is not a file")))
        }
        None => Err(ComputerError::new(ErrorCode::NotFound, format!("there is no file {path}"))),
    }
}

/// The content type of a file by its name. Types that a browser could run or navigate to are plain text.
fn content_type(name: &str) -> &'static str {
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
        "ogg" | "oga" | "opus" => "audio/ogg",
        "wav" => "audio/wav",
        "flac" => "audio/flac",
        "m4a" => "audio/mp4",
        "mp4" | "m4v" | "mov" => "video/mp4",
        "webm" => "video/webm",
        "json" => "application/json",
        "zip" | "gz" | "tar" | "wasm" | "bin" | "exe" | "so" => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    }
}

/// The path to write, and the content that the caller expects there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteQuery {
    path: FilePath,
    /// `any`, `absent`, or the hash of the content that the caller saw.
    #[schemars(regex(pattern = "^(any|absent|[0-9a-f]{64})$"))]
    base: Option<String>,
}

pub(super) async fn write(
    change: ChangeContext,
    Params(query): Params<WriteQuery>,
    body: Bytes,
) -> Result<Json<ChangeResult>, RouteError> {
    let base = match query.base.as_deref() {
        None | Some("any") => Base::Any,
        Some("absent") => Base::Absent,
        Some(hash) => Base::Content(hash.parse().map_err(|_| {
            let detail = "base must be any, absent, or the hash of the content that you saw";
            RouteError::new(StatusCode::BAD_REQUEST, "bad_request", detail)
        })?),
    };
    let path = query.path.clone();
    let request = Request::Write { path: query.path, mode: None, base };
    let envelope = change.envelope(request);
    let (chunks, received) = mpsc::channel(QUEUED_CHUNKS);
    let expected = body.size_hint().exact();
    let receiving = tokio::spawn(receive(body, chunks));
    let computer = std::sync::Arc::clone(change.computer.computer());
    let answered = blocking(move || {
        let mut upload = Upload { received, chunk: Vec::new(), at: 0, taken: 0, expected };
        computer.handle(&envelope, &mut upload, &|_, _, _| ()).into_done()
    });
    match answered.await {
        Ok(done) => Ok(Json(done)),
        Err(failure) if failure.code == ErrorCode::Conflict => {
            let look = path.clone();
            let node =
                change.computer.computer().writer().inspect(move |view| view.files.get(&look).cloned());
            let current = node.ok().flatten().and_then(|node| node.content()).map(|content| content.hash);
            Err(problem::stale(failure.message, current))
        }
        // The error of a broken upload is the more useful one.
        Err(failure) => match receiving.await {
            Ok(Err(refusal)) => Err(refusal),
            Ok(Ok(())) | Err(_) => Err(failure.into()),
        },
    }
}

/// Writes several files as one operation. The body begins with a line of JSON, a list of [`UploadedFile`]; their bytes
/// follow one after the other.
pub(super) async fn write_several(
    change: ChangeContext,
    body: Bytes,
) -> Result<Json<ChangeResult>, RouteError> {
    let (chunks, received) = mpsc::channel(QUEUED_CHUNKS);
    let expected = body.size_hint().exact();
    let receiving = tokio::spawn(receive(body, chunks));
    let computer = std::sync::Arc::clone(change.computer.computer());
    let envelope = change.envelope(Request::WriteSeveral { files: Vec::new() });
    let answered = blocking(move || {
        let mut upload = Upload { received, chunk: Vec::new(), at: 0, taken: 0, expected };
        let files = read_list(&mut upload)?;
        let envelope = Envelope { request: Request::WriteSeveral { files }, ..envelope };
        computer.handle(&envelope, &mut upload, &|_, _, _| ()).into_done()
    });
    match answered.await {
        Ok(done) => Ok(Json(done)),
        // The error of a broken upload is the more useful one.
        Err(failure) => match receiving.await {
            Ok(Err(refusal)) => Err(refusal),
            Ok(Ok(())) | Err(_) => Err(failure.into()),
        },
    }
}

/// The longest list of files at the beginning of an upload.
const MAX_LIST: usize = 4 << 20;

fn read_list(upload: &mut Upload) -> Result<Vec<UploadedFile>, ComputerError> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    // A byte at a time, from the chunk in memory: the bytes of the first file begin right after the line.
    while line.len() < MAX_LIST && upload.read(&mut byte)? == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    serde_json::from_slice(&line).map_err(|e| {
        let message = format!("the upload does not begin with a line of JSON that lists path and size: {e}");
        ComputerError::new(ErrorCode::BadRequest, message)
    })
}

async fn receive(body: Bytes, chunks: mpsc::Sender<io::Result<Vec<u8>>>) -> Result<(), RouteError> {
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

/// A body as a reader. One that ends before its announced length is an error.
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
