//! Decodes AWS event streams (`application/vnd.amazon.eventstream`) from bytes that are split anywhere.
//!
//! A frame consists of its total length and the length of its headers (4 bytes each, big-endian), a CRC-32 of these
//! eight bytes, the headers, the payload, and a CRC-32 of everything before.

use std::collections::BTreeMap;

use super::ProviderError;

/// Bytes besides headers and payload: two lengths and two checksums.
const FRAMING: usize = 16;
/// The largest frame that AWS documents is 24 MiB.
const LONGEST: usize = 24 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// Only the headers with string values; Bedrock uses no others.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) payload: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct FrameDecoder {
    buffer: Vec<u8>,
}

impl FrameDecoder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, ProviderError> {
        let Some(prelude) = self.buffer.first_chunk::<12>() else { return Ok(None) };
        let number =
            |at: usize| u32::from_be_bytes([prelude[at], prelude[at + 1], prelude[at + 2], prelude[at + 3]]);
        if crc32fast::hash(&prelude[..8]) != number(8) {
            return Err(ProviderError::malformed("wrong checksum of a frame prelude"));
        }
        let (length, headers) = (number(0) as usize, number(4) as usize);
        if !(FRAMING..=LONGEST).contains(&length) || headers > length - FRAMING {
            return Err(ProviderError::malformed("invalid frame length"));
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        let frame: Vec<u8> = self.buffer.drain(..length).collect();
        let (content, check) = frame.split_at(length - 4);
        if check != crc32fast::hash(content).to_be_bytes() {
            return Err(ProviderError::malformed("wrong checksum of a frame"));
        }
        let (head, payload) = content[12..].split_at(headers);
        let headers = read_headers(head).ok_or_else(|| ProviderError::malformed("invalid frame headers"))?;
        Ok(Some(Frame { headers, payload: payload.to_vec() }))
    }
}

fn read_headers(mut bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    while !bytes.is_empty() {
        let length = usize::from(take(&mut bytes, 1)?[0]);
        let name = String::from_utf8(take(&mut bytes, length)?.to_vec()).ok()?;
        let kind = take(&mut bytes, 1)?[0];
        let length = match kind {
            // Booleans; byte, short, integer, long; bytes and string; timestamp; UUID.
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | 7 => {
                let length = take(&mut bytes, 2)?;
                usize::from(u16::from_be_bytes([length[0], length[1]]))
            }
            9 => 16,
            _ => return None,
        };
        let value = take(&mut bytes, length)?;
        if kind == 7 {
            headers.insert(name, String::from_utf8(value.to_vec()).ok()?);
        }
    }
    Some(headers)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Encodes a frame, for tests.
#[cfg(test)]
pub(crate) fn encode(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&(value.len() as u16).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let mut frame = Vec::new();
    frame.extend_from_slice(&((FRAMING + head.len() + payload.len()) as u32).to_be_bytes());
    frame.extend_from_slice(&(head.len() as u32).to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&head);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_frame_of_the_aws_test_vectors_is_decoded() {
        let empty = [0, 0, 0, 0x10, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        let mut frames = FrameDecoder::default();
        frames.push(&empty);
        assert_eq!(frames.next(), Ok(Some(Frame { headers: BTreeMap::new(), payload: Vec::new() })));
        assert_eq!(frames.next(), Ok(None));
    }

    #[test]
    fn frames_are_the_same_wherever_the_bytes_are_split() {
        let bytes = [encode(&[(":event-type", "chunk")], b"{}"), encode(&[], b"payload")].concat();
        for size in 1..bytes.len() {
            let mut frames = FrameDecoder::default();
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.next().unwrap() {
                    found.push((frame.headers.get(":event-type").cloned(), frame.payload));
                }
            }
            let expected = [(Some("chunk".into()), b"{}".to_vec()), (None, b"payload".to_vec())];
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_frame_with_any_corrupt_byte_is_rejected() {
        let whole = encode(&[(":event-type", "chunk")], b"{\"bytes\":\"aGk=\"}");
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 1;
            let mut frames = FrameDecoder::default();
            frames.push(&broken);
            assert!(frames.next().is_err(), "byte {at}");
        }
    }
}
