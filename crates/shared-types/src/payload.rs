//! The typed payloads, one file per family, and the table that joins them.
//!
//! To add a family: write `payload/NAME.rs` with [`events!`] and name it once in [`families!`] below.

mod desktop;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::EventName;

pub use desktop::DesktopEvent;

/// Whether something can be undone once it has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reversibility {
    /// Undo restores the state before it.
    Reversible,
    /// It cannot be undone, but something else compensates for it.
    Compensable,
    /// It cannot be undone.
    Final,
}

/// Why a stored event cannot be decoded.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("the {part} of a {name} event is not what this version expects: {reason}")]
pub struct DecodeError {
    pub name: String,
    pub part: &'static str,
    pub reason: String,
}

impl DecodeError {
    pub(crate) fn envelope(name: &str, reason: String) -> Self {
        Self { name: name.to_owned(), part: "envelope", reason }
    }
}

/// One event type, for the documentation.
#[derive(Debug, Clone, Copy)]
pub struct TypeInfo {
    pub name: &'static str,
    pub version: u16,
    pub reversibility: Reversibility,
    pub doc: &'static str,
}

/// Declares the events of one family: name, version, reversibility and payload.
macro_rules! events {
    ($(#[doc = $family_doc:literal])* $family:ident {
        $($(#[doc = $doc:literal])* $name:literal v $version:literal $reversibility:ident => $variant:ident($payload:ty),)*
    }) => {
        $(#[doc = $family_doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $family {
            $($(#[doc = $doc])* $variant($payload),)*
        }

        impl $family {
            pub(crate) const DOC: &'static str = concat!($($family_doc, "\n"),*);
            pub(crate) const TYPES: &'static [crate::payload::TypeInfo] = &[
                $(crate::payload::TypeInfo {
                    name: $name,
                    version: $version,
                    reversibility: crate::payload::Reversibility::$reversibility,
                    doc: concat!($($doc, "\n"),*),
                },)*
            ];

            pub(crate) fn info(&self) -> &'static crate::payload::TypeInfo {
                const BY_NAME: &[&str] = &[$($name),*];
                let name = match self {
                    $(Self::$variant(_) => $name,)*
                };
                let index = BY_NAME.iter().position(|n| *n == name).unwrap_or_default();
                &Self::TYPES[index]
            }

            pub(crate) fn decode(name: &str, version: u16, json: &str) -> Option<serde_json::Result<Self>> {
                match (name, version) {
                    $(($name, $version) => Some(serde_json::from_str(json).map(Self::$variant)),)*
                    _ => None,
                }
            }

            pub(crate) fn encode_into(&self, json: &mut Vec<u8>) -> serde_json::Result<()> {
                match self {
                    $(Self::$variant(payload) => serde_json::to_writer(json, payload),)*
                }
            }
        }

        $(impl From<$payload> for crate::payload::Payload {
            fn from(payload: $payload) -> Self {
                $family::$variant(payload).into()
            }
        })*
    };
}

/// Joins the families into [`Payload`].
macro_rules! families {
    ($($module:ident::$family:ident => $variant:ident, $($prefix:literal)|+;)*) => {
        $(pub mod $module;)*

        /// A payload of a known type, or an unknown one that is kept unparsed.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Payload {
            $($variant($module::$family),)*
            /// A type or a version of newer software.
            Unknown(UnknownPayload),
        }

        impl Payload {
            /// Decodes a stored payload.
            pub fn decode(name: &str, version: u16, json: &str) -> Result<Self, DecodeError> {
                let decoded = match family_of(name) {
                    $($($prefix)|+ => $module::$family::decode(name, version, json).map(|p| p.map(Self::$variant)),)*
                    _ => None,
                };
                decoded.map_or_else(|| unknown(name, version, json), |payload| payload.map_err(|e| unreadable(name, &e)))
            }

            /// Writes the JSON that is recorded into the buffer, which is cleared first, and returns name and version.
            pub(crate) fn encode_into(&self, json: &mut Vec<u8>) -> (Cow<'_, str>, u16) {
                json.clear();
                let (info, encoded) = match self {
                    $(Self::$variant(event) => (event.info(), event.encode_into(json)),)*
                    Self::Unknown(p) => {
                        json.extend_from_slice(p.json.as_bytes());
                        return (Cow::Borrowed(p.name.as_str()), p.version);
                    }
                };
                // Payload structs are plain data with string keys, which serde_json always encodes.
                debug_assert!(encoded.is_ok());
                (Cow::Borrowed(info.name), info.version)
            }

            pub fn name(&self) -> EventName {
                match self {
                    $(Self::$variant(event) => EventName::known(event.info().name),)*
                    Self::Unknown(p) => p.name.clone(),
                }
            }

            /// Whether it can be undone. An unknown payload cannot.
            pub fn reversibility(&self) -> Reversibility {
                match self {
                    $(Self::$variant(event) => event.info().reversibility,)*
                    Self::Unknown(_) => Reversibility::Final,
                }
            }

            /// Every family with its description and its types, in the order of the documentation.
            pub fn families() -> Vec<(&'static str, &'static [TypeInfo])> {
                vec![$(($module::$family::DOC, $module::$family::TYPES),)*]
            }
        }

        $(impl From<$module::$family> for Payload {
            fn from(event: $module::$family) -> Self {
                Self::$variant(event)
            }
        })*
    };
}

families! {
    file::FileEvent => File, "file";
    window::WindowEvent => Window, "window";
    setting::SettingEvent => Setting, "setting";
    message::MessageEvent => Message, "message";
    note::NoteEvent => Note, "note";
    checkpoint::CheckpointEvent => Checkpoint, "checkpoint";
    tool::ToolEvent => Tool, "tool";
    run::RunEvent => Run, "run";
    task::TaskEvent => Task, "task";
    llm::LlmEvent => Llm, "llm";
    capability::CapabilityEvent => Capability, "capability";
    revert::RevertEvent => Revert, "undo" | "redo" | "restore";
    user::UserEvent => User, "user";
    system::SystemEvent => System, "system";
}

fn family_of(name: &str) -> &str {
    name.split_once('.').map_or(name, |(family, _)| family)
}

fn unreadable(name: &str, error: &serde_json::Error) -> DecodeError {
    DecodeError { name: name.to_owned(), part: "payload", reason: error.to_string() }
}

fn unknown(name: &str, version: u16, json: &str) -> Result<Payload, DecodeError> {
    let parsed = EventName::parse(name).map_err(|e| DecodeError::envelope(name, e.to_string()))?;
    Ok(Payload::Unknown(UnknownPayload { name: parsed, version, json: json.into() }))
}

/// A payload that is kept unparsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPayload {
    pub name: EventName,
    pub version: u16,
    pub json: Box<str>,
}
