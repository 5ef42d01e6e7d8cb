//! Why a request came to nothing, in the words of each protocol.

use std::io;

/// A request that came to nothing.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    pub(super) reason: String,
    /// What the person can do.
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Malformed,
    TooLong,
    Slow,
    Refused,
    Unsupported,
    NoSuchHost,
    Unreachable,
    ConnectionRefused,
}

impl Failure {
    pub(super) fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), remedy: None }
    }

    pub(super) fn malformed(reason: impl Into<String>) -> Self {
        Self::new(Kind::Malformed, reason)
    }

    pub(super) fn refused(reason: impl Into<String>, remedy: Option<String>) -> Self {
        Self { remedy, ..Self::new(Kind::Refused, reason) }
    }

    /// What the client sent could not be read.
    pub(super) fn of_client(error: &io::Error) -> Self {
        let kind = error.kind();
        if kind == io::ErrorKind::TimedOut {
            Self::new(Kind::Slow, "the request did not arrive in time")
        } else if kind == io::ErrorKind::FileTooLarge {
            Self::new(Kind::TooLong, error.to_string())
        } else if kind == io::ErrorKind::InvalidData {
            Self::malformed(error.to_string())
        } else {
            Self::malformed(format!("the request broke off: {error}"))
        }
    }

    /// The host did not answer as it should.
    pub(super) fn of_host(host: &str, error: &io::Error) -> Self {
        let was_refused = error.kind() == io::ErrorKind::ConnectionRefused;
        let kind = if was_refused { Kind::ConnectionRefused } else { Kind::Unreachable };
        Self::new(kind, format!("{host} could not be reached: {error}"))
    }

    /// The whole answer for HTTP.
    pub(super) fn to_http(&self) -> String {
        let status = match self.kind {
            Kind::Malformed => "400 Bad Request",
            Kind::TooLong => "431 Request Header Fields Too Large",
            Kind::Slow => "408 Request Timeout",
            Kind::Refused => "403 Forbidden",
            Kind::Unsupported => "501 Not Implemented",
            Kind::NoSuchHost | Kind::Unreachable | Kind::ConnectionRefused => "502 Bad Gateway",
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
            Kind::Malformed | Kind::TooLong | Kind::Slow => 1,
            Kind::Refused => 2,
            Kind::NoSuchHost | Kind::Unreachable => 4,
            Kind::ConnectionRefused => 5,
            Kind::Unsupported => 7,
        }
    }
}
