//! The wire protocol between host and cell init: frames over one byte stream.
//!
//! A frame is its length (four bytes, little endian, of what follows), its kind (one byte), the command id (four
//! bytes), and its body: JSON or raw bytes, depending on the kind.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cell::{Command, Size, Status};

/// The maximum frame length. A cell is untrusted and must not make the host allocate more.
const MAX_LENGTH: usize = 1 << 20;
const HEADER: usize = 5;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) command: u32,
    pub(crate) body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// To the launcher: build a cell.
    Launch(Vec<u8>),
    /// From the cell init: the isolation is complete.
    Ready,
    /// To the cell init: run this command.
    Start(StartFrame),
    Input(Vec<u8>),
    InputEnd,
    Signal(i32),
    Resize(Size),
    /// From the cell init: the command was started.
    Started,
    Out(Vec<u8>),
    Err(Vec<u8>),
    Ended(Status),
    /// The command could not be started.
    Refused(String),
}

/// The body of `Body::Start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartFrame {
    pub(crate) command: Command,
    pub(crate) terminal: Option<Size>,
}

impl Frame {
    pub(crate) fn new(command: u32, body: Body) -> Self {
        Self { command, body }
    }

    pub(crate) fn send(&self, out: &mut dyn Write) -> io::Result<()> {
        let (kind, body) = match &self.body {
            Body::Launch(bytes) => (0, bytes.clone()),
            Body::Ready => (1, Vec::new()),
            Body::Start(start) => (2, serde_json::to_vec(start)?),
            Body::Input(bytes) => (3, bytes.clone()),
            Body::InputEnd => (4, Vec::new()),
            Body::Signal(signal) => (5, serde_json::to_vec(signal)?),
            Body::Resize(size) => (6, serde_json::to_vec(size)?),
            Body::Out(bytes) => (7, bytes.clone()),
            Body::Err(bytes) => (8, bytes.clone()),
            Body::Ended(status) => (9, serde_json::to_vec(status)?),
            Body::Started => (11, Vec::new()),
            Body::Refused(reason) => (10, reason.clone().into_bytes()),
        };
        let length = body.len() + HEADER;
        if length > MAX_LENGTH {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the command and its environment are too long",
            ));
        }
        let mut bytes = Vec::with_capacity(4 + length);
        bytes.extend_from_slice(&u32::try_from(length).unwrap_or_default().to_le_bytes());
        bytes.push(kind);
        bytes.extend_from_slice(&self.command.to_le_bytes());
        bytes.extend_from_slice(&body);
        out.write_all(&bytes)
    }

    /// Reads the next frame; `None` at the end of the stream.
    pub(crate) fn receive(input: &mut dyn Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        match input.read_exact(&mut length) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(e),
        }
        let length = u32::from_le_bytes(length) as usize;
        if !(HEADER..=MAX_LENGTH).contains(&length) {
            return Err(invalid("a frame has an invalid length"));
        }
        let mut bytes = vec![0; length];
        input.read_exact(&mut bytes)?;
        let body = bytes.split_off(HEADER);
        let command = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let body = match bytes[0] {
            0 => Body::Launch(body),
            1 => Body::Ready,
            2 => Body::Start(json(&body)?),
            3 => Body::Input(body),
            4 => Body::InputEnd,
            5 => Body::Signal(json(&body)?),
            6 => Body::Resize(json(&body)?),
            7 => Body::Out(body),
            8 => Body::Err(body),
            9 => Body::Ended(json(&body)?),
            11 => Body::Started,
            10 => Body::Refused(String::from_utf8_lossy(&body).into_owned()),
            _ => return Err(invalid("a frame has an unknown kind")),
        };
        Ok(Some(Self { command, body }))
    }
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(frame: &Frame) -> Frame {
        let mut bytes = Vec::new();
        frame.send(&mut bytes).unwrap();
        Frame::receive(&mut bytes.as_slice()).unwrap().unwrap()
    }

    #[test]
    fn every_frame_kind_round_trips() {
        let start = StartFrame {
            command: Command::new(["ls", "-l"]),
            terminal: Some(Size { columns: 80, rows: 24 }),
        };
        for body in [
            Body::Launch(b"{}".to_vec()),
            Body::Ready,
            Body::Start(start),
            Body::Input(vec![0, 255]),
            Body::InputEnd,
            Body::Signal(9),
            Body::Resize(Size { columns: 1, rows: 2 }),
            Body::Out(b"out".to_vec()),
            Body::Err(Vec::new()),
            Body::Ended(Status::Exited(3)),
            Body::Refused("no".into()),
            Body::Started,
        ] {
            let frame = Frame::new(7, body);
            assert_eq!(round_trip(&frame), frame);
        }
    }

    #[test]
    fn an_invalid_frame_is_refused_before_memory_is_allocated() {
        for bytes in [&[255, 255, 255, 255, 7][..], &[0, 0, 0, 0], &[5, 0, 0, 0, 99, 0, 0, 0, 0]] {
            assert_eq!(
                Frame::receive(&mut &*bytes).unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "{bytes:?}"
            );
        }
    }
}
