//! Downloads weights from a URL and resumes after an interruption.

use std::time::Duration;

use reqwest::{Client, Response, StatusCode, header};

use super::SourceError;
use super::disk::PartialFile;

/// How often an interrupted download is resumed, if it made progress.
const TRIES: usize = 4;

pub(super) async fn fetch(
    url: &str,
    partial: &mut PartialFile,
    on_progress: &impl Fn(u64),
) -> Result<(), SourceError> {
    let client = client()?;
    let mut tries = 0;
    loop {
        let before = partial.done();
        let outcome = once(&client, url, partial, on_progress).await;
        match outcome {
            Ok(()) if partial.done() == partial.total() => return Ok(()),
            Ok(()) | Err(SourceError::Network(_)) if partial.done() > before && tries < TRIES => tries += 1,
            Ok(()) => return Err(SourceError::Refused(format!("it sent only {} bytes", partial.done()))),
            Err(error) => return Err(error),
        }
    }
}

fn client() -> Result<Client, SourceError> {
    crate::tls::prepare();
    let client = Client::builder()
        .connect_timeout(Duration::from_secs(15))
        .read_timeout(Duration::from_secs(60))
        .user_agent(concat!("choir/", env!("CARGO_PKG_VERSION")));
    Ok(client.build()?)
}

async fn once(
    client: &Client,
    url: &str,
    partial: &mut PartialFile,
    on_progress: &impl Fn(u64),
) -> Result<(), SourceError> {
    let mut request = client.get(url);
    if partial.done() > 0 {
        request = request.header(header::RANGE, format!("bytes={}-", partial.done()));
    }
    let mut response = request.send().await?;
    match response.status() {
        StatusCode::PARTIAL_CONTENT if starts_at(&response) == Some(partial.done()) => {}
        // The server does not support ranges: start again from the beginning.
        StatusCode::OK => partial.truncate(0)?,
        status => return Err(SourceError::Refused(format!("it answered {status}"))),
    }
    while let Some(chunk) = response.chunk().await? {
        if partial.done() + chunk.len() as u64 > partial.total() {
            partial.truncate(0)?;
            return Err(SourceError::TooMuch(partial.total()));
        }
        partial.append(&chunk)?;
        on_progress(partial.done());
    }
    Ok(())
}

/// The first byte of the response: 100 in `bytes 100-199/200`.
fn starts_at(response: &Response) -> Option<u64> {
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}
