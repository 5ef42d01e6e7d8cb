//! The heads of HTTP/1 messages: read whole, understood strictly, and written anew, so that the host never sees a
//! byte of a head that we understood differently.

use std::io::{self, BufRead, ErrorKind, Read};

use httparse::{EMPTY_HEADER, Header, Status};

/// The longest head.
const MOST: usize = 64 << 10;
const HEADERS: usize = 256;
/// The longest method.
const METHOD: usize = 32;

/// Reads up to the empty line.
pub(super) fn read(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    loop {
        let before = head.len();
        let left = MOST + 1 - before;
        let count = from.by_ref().take(left as u64).read_until(b'\n', &mut head)?;
        if head.len() > MOST {
            return Err(io::Error::new(ErrorKind::FileTooLarge, "the head is longer than 64 KiB"));
        }
        if count == 0 || !head.ends_with(b"\n") {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the head has no end"));
        }
        if matches!(&head[before..], b"\r\n" | b"\n") && before > 0 {
            return Ok(head);
        }
        if before == 0 && matches!(head.as_slice(), b"\r\n" | b"\n") {
            return Err(invalid("the head begins with an empty line"));
        }
    }
}

#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) version: Version,
    pub(super) headers: Headers,
}

#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) version: Version,
    pub(super) headers: Headers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Http10,
    Http11,
}

impl Version {
    fn of(minor: Option<u8>) -> Self {
        if minor == Some(0) { Self::Http10 } else { Self::Http11 }
    }
}

impl RequestHead {
    pub(super) fn parse(bytes: &[u8]) -> io::Result<Self> {
        let mut space = [EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Request::new(&mut space);
        let status = parsed.parse(bytes).map_err(invalid)?;
        whole(status, bytes)?;
        let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        if method.len() > METHOD {
            return Err(invalid("the method is too long"));
        }
        Ok(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            version: Version::of(parsed.version),
            headers: Headers::of(parsed.headers),
        })
    }
}

impl ResponseHead {
    pub(super) fn parse(bytes: &[u8]) -> io::Result<Self> {
        let mut space = [EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Response::new(&mut space);
        let status = parsed.parse(bytes).map_err(invalid)?;
        whole(status, bytes)?;
        Ok(Self {
            code: parsed.code.unwrap_or_default(),
            reason: parsed.reason.unwrap_or_default().to_owned(),
            version: Version::of(parsed.version),
            headers: Headers::of(parsed.headers),
        })
    }
}

fn invalid(reason: impl ToString) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason.to_string())
}

/// What we took for the head must be what the parser takes for it.
fn whole(status: Status<usize>, bytes: &[u8]) -> io::Result<()> {
    if status == Status::Complete(bytes.len()) { Ok(()) } else { Err(invalid("the head has no end")) }
}

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

impl Framing {
    /// The header that says so.
    pub(super) fn header(self) -> String {
        match self {
            Self::Length(length) => format!("Content-Length: {length}\r\n"),
            Self::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
            Self::UntilClose => String::new(),
        }
    }
}

/// Names in lower case, values as they came.
#[derive(Debug)]
pub(super) struct Headers(Vec<(String, Vec<u8>)>);

/// What concerns this connection only, or is written anew.
const OF_THE_HOP: &[&str] = &[
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Headers {
    fn of(parsed: &[Header<'_>]) -> Self {
        Self(parsed.iter().map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec())).collect())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// How the body is framed. What two readers could understand differently is refused.
    pub(super) fn framing(&self, version: Version) -> io::Result<Option<Framing>> {
        let mut lengths = self.all("content-length");
        let mut encodings = self.all("transfer-encoding");
        match (lengths.next(), lengths.next(), encodings.next(), encodings.next()) {
            (None, _, None, _) => Ok(None),
            (Some(length), None, None, _) => {
                let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
                let number =
                    std::str::from_utf8(length).ok().filter(|_| is_number).and_then(|n| n.parse().ok());
                number
                    .map(|n| Some(Framing::Length(n)))
                    .ok_or_else(|| invalid("its content-length is no number"))
            }
            (Some(_), Some(_), None, _) => Err(invalid("it has several content-lengths")),
            (Some(_), _, Some(_), _) => Err(invalid("it has both a content-length and a transfer-encoding")),
            (None, _, Some(encoding), None) if encoding.eq_ignore_ascii_case(b"chunked") => match version {
                Version::Http11 => Ok(Some(Framing::Chunked)),
                Version::Http10 => Err(invalid("HTTP/1.0 has no transfer-encoding")),
            },
            (None, _, Some(_), _) => Err(invalid("its transfer-encoding is not `chunked`")),
        }
    }

    /// Writes the headers that are meant for the other end.
    pub(super) fn write_for_the_other_end(&self, without: &[&str], into: &mut Vec<u8>) {
        let named: Vec<String> = self
            .all("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
            .collect();
        for (name, value) in &self.0 {
            let stays = OF_THE_HOP.contains(&name.as_str())
                || without.contains(&name.as_str())
                || named.contains(name);
            if !stays {
                into.extend_from_slice(name.as_bytes());
                into.extend_from_slice(b": ");
                into.extend_from_slice(value);
                into.extend_from_slice(b"\r\n");
            }
        }
    }
}
