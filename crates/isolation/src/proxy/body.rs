//! Streams the bodies of HTTP/1 messages. Chunked bodies are parsed strictly and encoded again.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use super::head::Framing;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEncoding {
    Identity,
    Chunked,
}

/// The maximum length of a chunk header line, and the maximum number of trailers.
const MAX_LINE: u64 = 4 << 10;
const MAX_TRAILERS: usize = 64;

/// Copies one body.
pub(super) fn copy(
    from: &mut impl BufRead,
    to: &mut impl Write,
    framing: Framing,
    encoding: BodyEncoding,
) -> io::Result<()> {
    match framing {
        Framing::Length(length) => copy_bytes(from, to, Some(length), encoding)?,
        Framing::UntilClose => copy_bytes(from, to, None, encoding)?,
        Framing::Chunked => chunks(from, to, encoding)?,
    }
    if encoding == BodyEncoding::Chunked { to.write_all(b"0\r\n\r\n") } else { Ok(()) }
}

fn chunks(from: &mut impl BufRead, to: &mut impl Write, encoding: BodyEncoding) -> io::Result<()> {
    loop {
        let line = line(from)?;
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
        let is_number = (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_number);
        let length = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        match length.ok_or_else(|| invalid("a chunk has no valid length"))? {
            0 => break,
            length => copy_bytes(from, to, Some(length), encoding)?,
        }
        let mut end = [0; 2];
        from.read_exact(&mut end)?;
        if &end != b"\r\n" {
            return Err(invalid("a chunk is longer than its header says"));
        }
    }
    for _ in 0..MAX_TRAILERS {
        if line(from)?.is_empty() {
            return Ok(());
        }
    }
    Err(invalid("there are too many trailers"))
}

/// Reads a line and strips its end.
fn line(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    match line.strip_suffix(b"\r\n") {
        Some(text) => Ok(text.to_vec()),
        None => Err(invalid("a chunk header line is too long or has no end")),
    }
}

/// Copies this many bytes, or everything until the end.
fn copy_bytes(
    from: &mut impl BufRead,
    to: &mut impl Write,
    mut left: Option<u64>,
    encoding: BodyEncoding,
) -> io::Result<()> {
    while left != Some(0) {
        let there = from.fill_buf()?;
        if there.is_empty() {
            return left.map_or(Ok(()), |_| Err(ErrorKind::UnexpectedEof.into()));
        }
        let most = left.and_then(|left| usize::try_from(left).ok()).unwrap_or(usize::MAX);
        let piece = &there[..there.len().min(most)];
        match encoding {
            BodyEncoding::Identity => to.write_all(piece)?,
            BodyEncoding::Chunked => {
                let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                chunk.extend_from_slice(piece);
                chunk.extend_from_slice(b"\r\n");
                to.write_all(&chunk)?;
            }
        }
        let count = piece.len();
        from.consume(count);
        left = left.map(|left| left - count as u64);
    }
    Ok(())
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}
