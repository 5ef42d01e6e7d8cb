//! Terminals, and the binary frames that carry their output and input.

use serde::{Deserialize, Serialize};

use crate::{TerminalId, Timestamp};

/// Where the shell of a terminal runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TerminalKind {
    /// In a cell, with the workspace and nothing else.
    #[default]
    Cell,
    /// A plain shell, with the owner's access to the machine.
    Shell,
}

/// A running terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Terminal {
    pub id: TerminalId,
    pub kind: TerminalKind,
    pub started: Timestamp,
    pub columns: u16,
    pub rows: u16,
}

/// A body of `POST /terminals`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewTerminal {
    #[serde(default)]
    pub kind: TerminalKind,
    #[cfg_attr(feature = "schema", schemars(range(min = 2, max = 1000)))]
    pub columns: u16,
    #[cfg_attr(feature = "schema", schemars(range(min = 2, max = 1000)))]
    pub rows: u16,
}

/// A binary frame: the sixteen bytes of the terminal's id, then output or input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalFrame<'a> {
    pub terminal: TerminalId,
    pub bytes: &'a [u8],
}

impl<'a> TerminalFrame<'a> {
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        let (id, bytes) = frame.split_first_chunk::<16>()?;
        Some(Self { terminal: TerminalId::from_bytes(*id), bytes })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(16 + self.bytes.len());
        frame.extend_from_slice(self.terminal.as_bytes());
        frame.extend_from_slice(self.bytes);
        frame
    }
}
