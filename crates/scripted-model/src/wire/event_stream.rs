//! Frames of `application/vnd.amazon.eventstream`, as specified by Smithy's "Amazon Event Stream": total length,
//! length of the headers, CRC32 of those eight bytes, headers, payload, CRC32 of everything before. All numbers are
//! big-endian.

use hyper::body::Bytes;

/// The header value type for strings.
const STRING: u8 = 7;
/// Two lengths and their checksum before the headers, one checksum after the payload.
const AROUND: usize = 4 + 4 + 4 + 4;

/// Encodes one frame. Header names must be shorter than 256 bytes and values shorter than 65,536.
pub(super) fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Bytes {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(name.len() as u8);
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(STRING);
        encoded.extend_from_slice(&(value.len() as u16).to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    let total = AROUND + encoded.len() + payload.len();
    let mut frame = Vec::with_capacity(total);
    frame.extend_from_slice(&(total as u32).to_be_bytes());
    frame.extend_from_slice(&(encoded.len() as u32).to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&encoded);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of awslabs/aws-c-event-stream.
    #[test]
    fn frames_match_the_published_test_vectors() {
        let empty = [0, 0, 0, 0x10, 0, 0, 0, 0, 5, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        assert_eq!(frame(&[], b"")[..], empty);
        let payload = [
            0, 0, 0, 0x1d, 0, 0, 0, 0, 0xfd, 0x52, 0x8c, 0x5a, b'{', b'\'', b'f', b'o', b'o', b'\'', b':',
            b'\'', b'b', b'a', b'r', b'\'', b'}', 0xc3, 0x65, 0x39, 0x36,
        ];
        assert_eq!(frame(&[], b"{'foo':'bar'}")[..], payload);
    }

    #[test]
    fn headers_are_encoded_as_name_type_and_value() {
        let frame = frame(&[("content-type", "application/json")], b"{'foo':'bar'}");
        assert_eq!(frame[..12], [0, 0, 0, 0x3d, 0, 0, 0, 0x20, 7, 0xfd, 0x83, 0x96]);
        assert_eq!(frame[12..12 + 16], *b"\x0ccontent-type\x07\x00\x10");
        assert_eq!(frame[28..44], *b"application/json");
        assert_eq!(frame[57..], [0x8d, 0x9c, 0x08, 0xb1]);
    }
}
