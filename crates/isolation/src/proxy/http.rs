//! HTTP: a CONNECT tunnel, or one plain request.

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
        // The client may have disconnected already.
        let _ = connection.client.write_all(failure.to_http().as_bytes());
    }
}

fn request(connection: &mut Connection<'_>) -> Result<(), RequestError> {
    let first = connection.reader.fill_buf().map_err(|e| RequestError::from_client(&e))?.first();
    if !first.is_some_and(u8::is_ascii_alphabetic) {
        // Possibly another protocol whose client waits for the server to speak first, so answer at once.
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
    let (name, port) = target.ok_or_else(|| RequestError::malformed("CONNECT needs a host and a port"))?;
    let host = connection.set_target(name, port)?;
    match head.headers.framing(head.version).map_err(|e| RequestError::from_client(&e))? {
        None | Some(Framing::Length(0)) => {}
        Some(_) => return Err(RequestError::malformed("CONNECT must not have a body")),
    }
    let host = connection.connect_to(&host, port)?;
    let relayed = connection
        .client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .and_then(|()| relay(&connection.client, &host, connection.reader.buffer()));
    connection.record.reason = relayed.err().map(|e| format!("the connection broke off: {e}"));
    Ok(())
}
