//! SOCKS5 (RFC 1928): no authentication, and CONNECT to a name or an address.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::connection::Connection;
use super::error::{RequestError, RequestErrorKind};
use super::relay::relay;

/// The first byte of the protocol.
pub(super) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const GRANTED: u8 = 0;

pub(super) fn serve(connection: &mut Connection<'_>) {
    "SOCKS5".clone_into(&mut connection.record.method);
    if let Err(failure) = greet(connection) {
        connection.failed(&failure);
        return;
    }
    if let Err(failure) = request(connection) {
        connection.failed(&failure);
        let _ = connection.client.write_all(&reply(failure.to_socks()));
    }
}

fn greet(connection: &mut Connection<'_>) -> Result<(), RequestError> {
    let [_, count] = read(connection)?;
    let mut methods = vec![0; usize::from(count)];
    connection.reader.read_exact(&mut methods).map_err(|e| RequestError::from_client(&e))?;
    let known = methods.contains(&NO_AUTHENTICATION);
    let choice = if known { NO_AUTHENTICATION } else { NO_ACCEPTABLE_METHOD };
    connection.client.write_all(&[VERSION, choice]).map_err(|e| RequestError::from_client(&e))?;
    if known {
        Ok(())
    } else {
        Err(RequestError::new(RequestErrorKind::Unsupported, "the client requires authentication"))
    }
}

fn request(connection: &mut Connection<'_>) -> Result<(), RequestError> {
    let [version, command, _, kind] = read(connection)?;
    let name = match kind {
        1 => Ipv4Addr::from(read::<4>(connection)?).to_string(),
        3 => {
            let [length] = read(connection)?;
            let mut name = vec![0; usize::from(length)];
            connection.reader.read_exact(&mut name).map_err(|e| RequestError::from_client(&e))?;
            String::from_utf8(name).map_err(|_| RequestError::malformed("the host name is not UTF-8"))?
        }
        4 => format!("[{}]", Ipv6Addr::from(read::<16>(connection)?)),
        _ => return Err(RequestError::malformed("unknown address type")),
    };
    let port = u16::from_be_bytes(read(connection)?);
    connection.head_received();
    let host = connection.set_target(&name, port)?;
    if version != VERSION {
        return Err(RequestError::malformed("the request is not SOCKS5"));
    }
    if command != CONNECT {
        return Err(RequestError::new(RequestErrorKind::Unsupported, "only CONNECT is supported"));
    }
    let host = connection.connect_to(&host, port)?;
    let relayed = connection
        .client
        .write_all(&reply(GRANTED))
        .and_then(|()| relay(&connection.client, &host, connection.reader.buffer()));
    connection.record.reason = relayed.err().map(|e| format!("the connection broke off: {e}"));
    Ok(())
}

fn read<const N: usize>(connection: &mut Connection<'_>) -> Result<[u8; N], RequestError> {
    let mut bytes = [0; N];
    connection.reader.read_exact(&mut bytes).map_err(|e| RequestError::from_client(&e))?;
    Ok(bytes)
}

/// A reply that does not reveal our address.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}
