//! HTTP: a tunnel to a host, or one plain request.

use std::io::{BufRead, Write};

use super::failure::Failure;
use super::head::{self, Framing, RequestHead};
use super::plain;
use super::relay::relay;
use super::rules::split_port;
use super::talk::Talk;

pub(super) fn serve(talk: &mut Talk<'_>) {
    if let Err(failure) = request(talk) {
        talk.failed(&failure);
        // A client that has gone does not want to know.
        let _ = talk.client.write_all(failure.to_http().as_bytes());
    }
}

fn request(talk: &mut Talk<'_>) -> Result<(), Failure> {
    let first = talk.reader.fill_buf().map_err(|e| Failure::of_client(&e))?.first();
    if !first.is_some_and(u8::is_ascii_alphabetic) {
        // Perhaps another protocol, whose client would wait for our word.
        return Err(Failure::malformed("that is neither HTTP nor SOCKS5"));
    }
    let bytes = head::read(&mut talk.reader).map_err(|e| Failure::of_client(&e))?;
    let head = RequestHead::parse(&bytes).map_err(|e| Failure::of_client(&e))?;
    talk.understood();
    talk.record.method.clone_from(&head.method);
    if head.method == "CONNECT" { tunnel(talk, &head) } else { plain::forward(talk, &head) }
}

fn tunnel(talk: &mut Talk<'_>, head: &RequestHead) -> Result<(), Failure> {
    let target = split_port(&head.target).and_then(|(host, port)| port.map(|port| (host, port)));
    let (name, port) = target.ok_or_else(|| Failure::malformed("CONNECT wants a host and a port"))?;
    let host = talk.note(name, port)?;
    match head.headers.framing(head.version).map_err(|e| Failure::of_client(&e))? {
        None | Some(Framing::Length(0)) => {}
        Some(_) => return Err(Failure::malformed("CONNECT has no body")),
    }
    let line = talk.open(&host, port)?;
    let joined = talk
        .client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .and_then(|()| relay(&talk.client, &line, talk.reader.buffer()));
    talk.record.reason = joined.err().map(|e| format!("the connection broke off: {e}"));
    Ok(())
}
