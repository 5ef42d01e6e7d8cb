//! SOCKS5 (RFC 1928): no authentication, and CONNECT to a name or an address.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::failure::{Failure, Kind};
use super::relay::relay;
use super::talk::Talk;

/// The first byte, by which the protocol is known.
pub(super) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NONE_OF_THEM: u8 = 0xff;
const CONNECT: u8 = 1;
const GRANTED: u8 = 0;

pub(super) fn serve(talk: &mut Talk<'_>) {
    "SOCKS5".clone_into(&mut talk.record.method);
    if let Err(failure) = greet(talk) {
        talk.failed(&failure);
        return;
    }
    if let Err(failure) = request(talk) {
        talk.failed(&failure);
        let _ = talk.client.write_all(&reply(failure.to_socks()));
    }
}

fn greet(talk: &mut Talk<'_>) -> Result<(), Failure> {
    let [_, count] = read(talk)?;
    let mut methods = vec![0; usize::from(count)];
    talk.reader.read_exact(&mut methods).map_err(|e| Failure::of_client(&e))?;
    let known = methods.contains(&NO_AUTHENTICATION);
    let choice = if known { NO_AUTHENTICATION } else { NONE_OF_THEM };
    talk.client.write_all(&[VERSION, choice]).map_err(|e| Failure::of_client(&e))?;
    if known { Ok(()) } else { Err(Failure::new(Kind::Unsupported, "the client insists on authentication")) }
}

fn request(talk: &mut Talk<'_>) -> Result<(), Failure> {
    let [version, command, _, kind] = read(talk)?;
    let name = match kind {
        1 => Ipv4Addr::from(read::<4>(talk)?).to_string(),
        3 => {
            let [length] = read(talk)?;
            let mut name = vec![0; usize::from(length)];
            talk.reader.read_exact(&mut name).map_err(|e| Failure::of_client(&e))?;
            String::from_utf8(name).map_err(|_| Failure::malformed("the host's name is no text"))?
        }
        4 => format!("[{}]", Ipv6Addr::from(read::<16>(talk)?)),
        _ => return Err(Failure::malformed("that kind of address is not known")),
    };
    let port = u16::from_be_bytes(read(talk)?);
    talk.understood();
    let host = talk.note(&name, port)?;
    if version != VERSION {
        return Err(Failure::malformed("the request is not of SOCKS5"));
    }
    if command != CONNECT {
        return Err(Failure::new(Kind::Unsupported, "only CONNECT is supported"));
    }
    let line = talk.open(&host, port)?;
    let joined = talk
        .client
        .write_all(&reply(GRANTED))
        .and_then(|()| relay(&talk.client, &line, talk.reader.buffer()));
    talk.record.reason = joined.err().map(|e| format!("the connection broke off: {e}"));
    Ok(())
}

fn read<const N: usize>(talk: &mut Talk<'_>) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    talk.reader.read_exact(&mut bytes).map_err(|e| Failure::of_client(&e))?;
    Ok(bytes)
}

/// A reply without an address of ours, which is nobody's business.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}
