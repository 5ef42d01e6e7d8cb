//! Plain HTTP: forwards one request with an absolute URL and its response, then closes the connection.
//!
//! The request's body is sent on a separate thread, because a host may respond before it has read everything.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::thread;

use super::body::{self, BodyEncoding};
use super::connection::Connection;
use super::error::RequestError;
use super::head::{self, Framing, RequestHead, ResponseHead, Version};
use super::rules::{Host, split_port};
use super::socket::ProxySocket;

/// The maximum number of interim responses.
const MAX_INTERIM: usize = 16;

pub(super) fn forward(connection: &mut Connection<'_>, head: &RequestHead) -> Result<(), RequestError> {
    let target = Target::parse(&head.target)?;
    let host = connection.set_target(target.host, target.port)?;
    let framing = head.headers.framing(head.version).map_err(|e| RequestError::from_client(&e))?;
    let mut line = connection.connect_to(&host, target.port)?;
    let unreachable = |e: io::Error| RequestError::from_host(&host.to_string(), &e);
    line.write_all(&request(head, &target, &host, framing)).map_err(unreachable)?;
    let mut answer = ResponseRelay {
        host: BufReader::new(line.clone()),
        client: connection.client.clone(),
        is_head: head.method == "HEAD",
        version: head.version,
        has_started: false,
    };
    let (uploaded, answered) = thread::scope(|scope| {
        let reader = &mut connection.reader;
        let upload = framing.map(|framing| {
            let line = line.clone();
            thread::Builder::new()
                .name("proxy upload".into())
                .spawn_scoped(scope, move || upload(reader, line, framing))
        });
        let answered = match &upload {
            Some(Err(_)) => Err(io::Error::other("no thread for its body")),
            Some(Ok(_)) | None => answer.relay(),
        };
        // The rest of the body is no longer needed.
        line.shutdown(Shutdown::Both);
        answer.client.shutdown(Shutdown::Read);
        let uploaded =
            upload.map_or(Ok(()), |upload| upload?.join().unwrap_or_else(|_| Err(ErrorKind::Other.into())));
        (uploaded, answered)
    });
    match (answered, uploaded) {
        (Ok(()), _) => Ok(()),
        (Err(e), _) if answer.has_started => {
            connection.record.reason = Some(format!("the answer broke off: {e}"));
            Ok(())
        }
        (Err(_), Err(e)) if e.kind() == ErrorKind::InvalidData => Err(RequestError::from_client(&e)),
        (Err(e), _) => Err(unreachable(e)),
    }
}

/// The parts of an absolute URL.
struct Target<'a> {
    host: &'a str,
    port: u16,
    /// Path and query as the host sees them.
    path: &'a str,
}

impl<'a> Target<'a> {
    fn parse(target: &'a str) -> Result<Self, RequestError> {
        let rest = target
            .split_at_checked(7)
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http://"))
            .map(|(_, rest)| rest)
            .ok_or_else(|| {
                RequestError::malformed("this is a proxy: it needs http:// with a host, or CONNECT")
            })?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // User names and passwords in a URL serve to mislead, and fragments are never sent.
        if authority.contains('@') || path.contains('#') {
            return Err(RequestError::malformed("the address holds more than a host and a path"));
        }
        let (host, port) =
            split_port(authority).ok_or_else(|| RequestError::malformed("the port is not a number"))?;
        Ok(Self { host, port: port.unwrap_or(80), path })
    }
}

/// The request head for the host.
fn request(head: &RequestHead, target: &Target<'_>, host: &Host, framing: Option<Framing>) -> Vec<u8> {
    let slash = if target.path.starts_with('/') { "" } else { "/" };
    let port = if target.port == 80 { String::new() } else { format!(":{}", target.port) };
    let first = format!("{} {slash}{} HTTP/1.1\r\nHost: {host}{port}\r\n", head.method, target.path);
    let mut request = first.into_bytes();
    head.headers.write_end_to_end(&["host"], &mut request);
    request.extend(framing.map(Framing::header).unwrap_or_default().bytes());
    request.extend_from_slice(b"Connection: close\r\n\r\n");
    request
}

fn upload(reader: &mut impl BufRead, mut line: ProxySocket, framing: Framing) -> io::Result<()> {
    let encoding = if framing == Framing::Chunked { BodyEncoding::Chunked } else { BodyEncoding::Identity };
    let sent = body::copy(reader, &mut line, framing, encoding);
    match &sent {
        // The host stopped reading; its response may say why.
        Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
        // The host must not take a partial body for a complete one.
        Err(_) => line.shutdown(Shutdown::Both),
        Ok(()) => {}
    }
    sent
}

/// A response being forwarded.
struct ResponseRelay {
    host: BufReader<ProxySocket>,
    client: ProxySocket,
    is_head: bool,
    version: Version,
    /// The final response has started, so no error response can be sent.
    has_started: bool,
}

impl ResponseRelay {
    fn relay(&mut self) -> io::Result<()> {
        for _ in 0..MAX_INTERIM {
            let head = ResponseHead::parse(&head::read(&mut self.host)?)?;
            match head.code {
                101 => return Err(io::Error::other("it switched protocols without being asked")),
                100..200 if self.version == Version::Http10 => {}
                100..200 => self.write_head(&head, "")?,
                _ => return self.relay_final(&head),
            }
        }
        Err(io::Error::other("it sent only interim responses"))
    }

    fn relay_final(&mut self, head: &ResponseHead) -> io::Result<()> {
        let framing = head.headers.framing(head.version)?;
        if self.is_head || matches!(head.code, 204 | 304) {
            let length = framing.filter(|framing| matches!(framing, Framing::Length(_)) && head.code != 204);
            return self.write_head(
                head,
                &(length.map(Framing::header).unwrap_or_default() + "Connection: close\r\n"),
            );
        }
        let framing = framing.unwrap_or(Framing::UntilClose);
        let (encoding, header) = match (framing, self.version) {
            (Framing::Chunked, Version::Http11) => (BodyEncoding::Chunked, framing.header()),
            (Framing::Chunked, Version::Http10) => (BodyEncoding::Identity, String::new()),
            (Framing::Length(_) | Framing::UntilClose, _) => (BodyEncoding::Identity, framing.header()),
        };
        self.write_head(head, &(header + "Connection: close\r\n"))?;
        body::copy(&mut self.host, &mut self.client, framing, encoding)
    }

    fn write_head(&mut self, head: &ResponseHead, more: &str) -> io::Result<()> {
        let mut bytes = format!("HTTP/1.1 {:03} {}\r\n", head.code, head.reason).into_bytes();
        head.headers.write_end_to_end(&[], &mut bytes);
        bytes.extend_from_slice(more.as_bytes());
        bytes.extend_from_slice(b"\r\n");
        // An interim response may still be followed by an error response.
        self.has_started |= head.code >= 200;
        self.client.write_all(&bytes)
    }
}
