//! Why a request failed, with the response for each protocol.

use std::io;

/// A request that failed or was refused.
#[derive(Debug)]
pub(super) struct RequestError {
    pub(super) kind: RequestErrorKind,
    pub(super) reason: String,
    /// What the person can do about it.
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestErrorKind {
    Malformed,
    TooLong,
    Slow,
    Refused,
    Unsupported,
    NoSuchHost,
    Unreachable,
    ConnectionRefused,
}

impl RequestError {
    pub(super) fn new(kind: RequestErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), remedy: None }
    }

    pub(super) fn malformed(reason: impl Into<String>) -> Self {
        Self::new(RequestErrorKind::Malformed, reason)
    }

    pub(super) fn refused(reason: impl Into<String>, remedy: Option<String>) -> Self {
        Self { remedy, ..Self::new(RequestErrorKind::Refused, reason) }
    }

    /// The client's request could not be read.
    pub(super) fn from_client(error: &io::Error) -> Self {
        let kind = error.kind();
        if kind == io::ErrorKind::TimedOut {
            Self::new(RequestErrorKind::Slow, "the request did not arrive in time")
        } else if kind == io::ErrorKind::FileTooLarge {
            Self::new(RequestErrorKind::TooLong, error.to_string())
        } else if kind == io::ErrorKind::InvalidData {
            Self::malformed(error.to_string())
        } else {
            Self::malformed(format!("the request broke off: {error}"))
        }
    }

    /// The host could not be reached.
    pub(super) fn from_host(host: &str, error: &io::Error) -> Self {
        let was_refused = error.kind() == io::ErrorKind::ConnectionRefused;
        let kind =
            if was_refused { RequestErrorKind::ConnectionRefused } else { RequestErrorKind::Unreachable };
        Self::new(kind, format!("{host} could not be reached: {error}"))
    }

    /// The complete HTTP response.
    pub(super) fn to_http(&self) -> String {
        let status = match self.kind {
            RequestErrorKind::Malformed => "400 Bad Request",
            RequestErrorKind::TooLong => "431 Request Header Fields Too Large",
            RequestErrorKind::Slow => "408 Request Timeout",
            RequestErrorKind::Refused => "403 Forbidden",
            RequestErrorKind::Unsupported => "501 Not Implemented",
            RequestErrorKind::NoSuchHost
            | RequestErrorKind::Unreachable
            | RequestErrorKind::ConnectionRefused => "502 Bad Gateway",
        };
        let remedy = self.remedy.as_ref().map(|remedy| format!("{remedy}\n")).unwrap_or_default();
        let text = format!("choir: {}.\n{remedy}", self.reason);
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{text}",
            text.len()
        )
    }

    /// The reply code of SOCKS5 (RFC 1928, section 6).
    pub(super) fn to_socks(&self) -> u8 {
        match self.kind {
            RequestErrorKind::Malformed | RequestErrorKind::TooLong | RequestErrorKind::Slow => 1,
            RequestErrorKind::Refused => 2,
            RequestErrorKind::NoSuchHost | RequestErrorKind::Unreachable => 4,
            RequestErrorKind::ConnectionRefused => 5,
            RequestErrorKind::Unsupported => 7,
        }
    }
}
