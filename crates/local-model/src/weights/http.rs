//! Weights from an address: a download that goes on where it broke off.

use std::time::Duration;

use reqwest::{Client, Response, StatusCode, header};

use super::SourceError;
use super::disk::Partial;

/// A connection that breaks off is tried again this often, as long as something came.
const TRIES: usize = 4;

pub(super) async fn fetch(url: &str, partial: &mut Partial, tell: &impl Fn(u64)) -> Result<(), SourceError> {
    let client = client()?;
    let mut tries = 0;
    loop {
        let before = partial.done();
        let outcome = once(&client, url, partial, tell).await;
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
    partial: &mut Partial,
    tell: &impl Fn(u64),
) -> Result<(), SourceError> {
    let mut request = client.get(url);
    if partial.done() > 0 {
        request = request.header(header::RANGE, format!("bytes={}-", partial.done()));
    }
    let mut response = request.send().await?;
    match response.status() {
        StatusCode::PARTIAL_CONTENT if starts_at(&response) == Some(partial.done()) => {}
        // It knows nothing of ranges: from the beginning, then.
        StatusCode::OK => partial.cut(0)?,
        status => return Err(SourceError::Refused(format!("it answered {status}"))),
    }
    while let Some(chunk) = response.chunk().await? {
        if partial.done() + chunk.len() as u64 > partial.total() {
            partial.cut(0)?;
            return Err(SourceError::TooMuch(partial.total()));
        }
        partial.append(&chunk)?;
        tell(partial.done());
    }
    Ok(())
}

/// Where the part begins that a response brings: `bytes 100-199/200`.
fn starts_at(response: &Response) -> Option<u64> {
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}
