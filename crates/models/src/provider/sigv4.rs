//! AWS Signature Version 4, for the one kind of request that we send: a POST without a query.

use std::{fmt::Write, time::SystemTime};

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use url::Url;

/// An AWS access key in the form of the vault: `id:secret[:session token]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccessKey<'a> {
    id: &'a str,
    secret: &'a str,
    pub(super) session: Option<&'a str>,
}

impl<'a> AccessKey<'a> {
    /// `None` if `key` is not an access key; then it is an API key.
    pub(super) fn parse(key: &'a str) -> Option<Self> {
        let mut parts = key.splitn(3, ':');
        let (id, secret) = (parts.next()?, parts.next()?);
        (!id.is_empty() && !secret.is_empty()).then_some(Self { id, secret, session: parts.next() })
    }
}

/// The inputs of a signature besides the request itself.
pub(super) struct Signing<'a> {
    pub(super) key: AccessKey<'a>,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) now: SystemTime,
}

/// The headers that a signed request carries.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) date: String,
    pub(super) authorization: String,
}

impl Signing<'_> {
    /// `None` if the time is outside the supported range.
    pub(super) fn sign(&self, url: &Url, content_type: &str, body: &[u8]) -> Option<Signed> {
        let date = Timestamp::try_from(self.now).ok()?.strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut headers = vec![("content-type", content_type.to_owned()), ("host", host(url)?)];
        headers.push(("x-amz-date", date.clone()));
        headers.extend(self.key.session.map(|token| ("x-amz-security-token", token.to_owned())));
        Some(self.authorize(&date, "POST", url.path(), "", &headers, body))
    }

    /// Computes the signature. `headers` must be sorted by name.
    fn authorize(
        &self,
        date: &str,
        method: &str,
        path: &str,
        query: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Signed {
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        // All services but S3 encode the path once more than it is on the wire.
        let path = encode(path);
        let canonical =
            format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{}", hex(&Sha256::digest(body)));
        let day = &date[..8];
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
        let parts = [day, self.region, self.service, "aws4_request", &text];
        let first = format!("AWS4{}", self.key.secret).into_bytes();
        let signature = parts.iter().fold(first, |key, part| hmac_sha256(&key, part));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={}",
            self.key.id,
            hex(&signature)
        );
        Signed { date: date.into(), authorization }
    }
}

fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// HMAC accepts keys of any length, so the error case cannot happen.
fn hmac_sha256(key: &[u8], text: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Percent-encodes everything except letters, digits, `-_.~` and slashes, as AWS requires.
pub(super) fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                encoded.push(byte.into())
            }
            // Writing to a string cannot fail.
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    encoded
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;
