//! Export of a computer, and import of files.

use std::io::{self, Write};

use axum::Json;
use axum::body::Body as Bytes;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use event_log::EventLog;
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::FilePath;
use shared_types::wire::ChangeResult;
use tokio::sync::mpsc;

use super::CurrentComputer;
use super::change::ChangeContext;
use super::problem::{Params, RouteError, broken_body};
use crate::open_computer::blocking;
use archive;
use computer::error::ComputerError;
use computer::ids;
use computer::protocol::Request;

const CHUNK: usize = 64 << 10;
const QUEUED_CHUNKS: usize = 16;

/// Streams the whole computer as a zip. If the export fails, the zip is incomplete and does not open.
pub(super) async fn export(open_computer: CurrentComputer) -> Response {
    let open_computer = open_computer.0;
    let (chunks, receiver) = mpsc::channel::<io::Result<Vec<u8>>>(QUEUED_CHUNKS);
    tokio::task::spawn_blocking(move || {
        let log = open_computer.computer().log();
        let out = ChunkWriter { chunks: chunks.clone(), waiting: Vec::with_capacity(CHUNK) };
        if let Err(e) = archive::export(&**log, log.head().seq, ids::now(), out, &|_, _| ()) {
            let _ = chunks.blocking_send(Err(io::Error::other(e.to_string())));
        }
    });
    let stream = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    });
    let mut response = Bytes::from_stream(stream).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    let name = HeaderValue::from_static("attachment; filename=\"choir-export.zip\"");
    headers.insert(header::CONTENT_DISPOSITION, name);
    response
}

struct ChunkWriter {
    chunks: mpsc::Sender<io::Result<Vec<u8>>>,
    waiting: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.waiting, Vec::with_capacity(CHUNK));
        self.chunks.blocking_send(Ok(chunk)).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// Where the files of an export go.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportQuery {
    /// A folder; the workspace itself if absent.
    into: Option<FilePath>,
}

/// Imports the files of an export as one operation. An archive that cannot be verified changes nothing.
pub(super) async fn import(
    change: ChangeContext,
    Params(query): Params<ImportQuery>,
    body: Bytes,
) -> Result<Json<ChangeResult>, RouteError> {
    let draft = blocking(|| Ok(tempfile::NamedTempFile::new()?)).await?;
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(broken_body)?;
        let mut file = draft.as_file();
        file.write_all(&chunk).map_err(|e| RouteError::from(ComputerError::from(e)))?;
    }
    let request = Request::Import { file: draft.path().to_owned(), into: query.into };
    change.apply(request).await.map(Json)
}
