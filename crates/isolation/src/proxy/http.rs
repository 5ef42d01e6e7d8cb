//! HTTP: a tunnel to a host, or one plain request.

use std::io::{BufRead, Write};

use super::connection::Connection;
use super::error::RequestError;
use super::head::{self, Framing, RequestHead};
use super::plain;
use super::relay::relay;
use super::rules::split_port;

pub(super) fn serve(connection: &mut Connection<'_>) {
    if let Err(failure) = request(connection) {
        connection.failed(&failure);
        // A client that has gone does not want to know.
        let _ = connection.client.write_all(failure.to_http().as_bytes());
    }
}

fn request(connection: &mut Connection<'_>) -> Result<(), RequestError> {
    let first = connection.reader.fill_buf().map_err(|e| RequestError::from_client(&e))?.first();
    if !first.is_some_and(u8::is_ascii_alphabetic) {
        // Perhaps another protocol, whose client would wait for our word.
        return Err(RequestError::malformed("that is neither HTTP nor SOCKS5"));
    }
    let bytes = head::read(&mut connection.reader).map_err(|e| RequestError::from_client(&e))?;
    let head = RequestHead::parse(&bytes).map_err(|e| RequestError::from_client(&e))?;
    connection.head_received();
    connection.record.method.clone_from(&head.method);
    if head.method == "CONNECT" { tunnel(connection, &head) } else { plain::forward(connection, &head) }
}

fn tunnel(connection: &mut Connection<'_>, head: &RequestHead) -> Result<(), RequestError> {
    let target = split_port(&head.target).and_then(|(host, port)| port.map(|port| (host, port)));
    let (name, port) = target.ok_or_else(|| RequestError::malformed("CONNECT wants a host and a port"))?;
    let host = connection.set_target(name, port)?;
    match head.headers.framing(head.version).map_err(|e| RequestError::from_client(&e))? {
        None | Some(Framing::Length(0)) => {}
        Some(_) => return Err(RequestError::malformed("CONNECT has no body")),
    }
    let line = connection.connect_to(&host, port)?;
    let joined = connection
        .client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .and_then(|()| relay(&connection.client, &line, connection.reader.buffer()));
    connection.record.reason = joined.err().map(|e| format!("the connection broke off: {e}"));
    Ok(())
}
