//! The envelope: one for the log, the wire, the desktop and exports.
//!
//! [`StoredEvent`] holds an event exactly as it was recorded; it is what travels and what the chain covers, so
//! fields and types that this version does not know survive. [`Event`] is the same event understood.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::payload::DecodeError;
use crate::{ChainHash, EventId, EventName, OpId, Payload, RunId, Seq};

/// Milliseconds since 1970, recorded once. Replay never reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn millis(self) -> i64 {
        self.0
    }
}

/// Who in general made an event happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Source {
    User,
    Agent,
    System,
}

impl Source {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Agent, Self::System].into_iter().find(|s| s.as_str() == text)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a short label is refused.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{0:?} is not a label: expected 1 to 128 printable ASCII characters without comma, quote or space")]
pub struct LabelError(String);

fn check_label(text: &str) -> Result<(), LabelError> {
    let clean = |b: u8| b.is_ascii_graphic() && !matches!(b, b',' | b'"' | b'\\');
    if (1..=128).contains(&text.len()) && text.bytes().all(clean) {
        Ok(())
    } else {
        Err(LabelError(text.chars().take(40).collect()))
    }
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident, often $often:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Cow<'static, str>);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, LabelError> {
                // The usual one needs no memory of its own.
                if text == Self::$often.as_str() {
                    return Ok(Self::$often);
                }
                check_label(text).map(|()| Self(Cow::Owned(text.to_owned())))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(de::Error::custom)
            }
        }
    };
}

label! {
    /// Who in particular: a person's client, an agent, a part of the system.
    Actor, often CLI
}
label! {
    /// A label of untrusted origin: a web page, mail, an import, a networked command.
    Taint, often IMPORT
}

impl Actor {
    /// The person, at the desktop in the browser.
    pub const DESKTOP: Self = Self(Cow::Borrowed("desktop"));
    /// The person, at the command line.
    pub const CLI: Self = Self(Cow::Borrowed("cli"));
    /// The part that turns outside edits of the workspace into events.
    pub const CAPTURE: Self = Self(Cow::Borrowed("capture"));
    /// The part that makes checkpoints by itself.
    pub const CHECKPOINTS: Self = Self(Cow::Borrowed("checkpoints"));
    /// The part that settles commands which an unclean stop left open.
    pub const CELLS: Self = Self(Cow::Borrowed("cells"));
    /// The harness that runs agents, where no agent in particular is meant.
    pub const CHOIR: Self = Self(Cow::Borrowed("choir"));
}

impl Taint {
    pub const IMPORT: Self = Self(Cow::Borrowed("import"));
    /// A command that could reach the network.
    pub const COMMAND: Self = Self(Cow::Borrowed("command"));
    /// A page of the web.
    pub const WEB: Self = Self(Cow::Borrowed("web"));
    /// The answer of a tool that somebody else runs.
    pub const MCP: Self = Self(Cow::Borrowed("mcp"));
}

/// An event as it was recorded, borrowed from a row or owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent<'a> {
    pub seq: Seq,
    pub id: EventId,
    pub ts: Timestamp,
    pub source: Source,
    pub name: Cow<'a, str>,
    pub version: u16,
    pub op: OpId,
    pub actor: Cow<'a, str>,
    pub run_id: Option<RunId>,
    pub cause: Option<EventId>,
    /// Labels joined by commas; empty for none.
    pub taint: Cow<'a, str>,
    /// JSON, byte for byte as it was first written.
    pub payload: Cow<'a, str>,
    pub hash: ChainHash,
}

impl StoredEvent<'_> {
    pub fn into_owned(self) -> StoredEvent<'static> {
        StoredEvent {
            name: Cow::Owned(self.name.into_owned()),
            actor: Cow::Owned(self.actor.into_owned()),
            taint: Cow::Owned(self.taint.into_owned()),
            payload: Cow::Owned(self.payload.into_owned()),
            ..self
        }
    }

    /// The link that follows `previous`: SHA-256 over it and every stored field in table order, each with its
    /// length before it. The user's id is the log's address and stays outside.
    pub fn link(&self, previous: &ChainHash) -> ChainHash {
        self.link_into(previous, &mut Vec::with_capacity(256 + self.payload.len()))
    }

    /// The same with a buffer of the caller's, for those who link many events.
    pub fn link_into(&self, previous: &ChainHash, bytes: &mut Vec<u8>) -> ChainHash {
        bytes.clear();
        bytes.extend_from_slice(previous.as_bytes());
        let mut field = |value: Option<&[u8]>| match value {
            Some(value) => {
                bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
                bytes.extend_from_slice(value);
            }
            None => bytes.extend_from_slice(&u32::MAX.to_le_bytes()),
        };
        field(Some(&self.seq.0.to_le_bytes()));
        field(Some(self.id.as_bytes()));
        field(Some(&self.ts.millis().to_le_bytes()));
        field(Some(self.source.as_str().as_bytes()));
        field(Some(self.name.as_bytes()));
        field(Some(&self.version.to_le_bytes()));
        field(Some(self.op.as_bytes()));
        field(Some(self.actor.as_bytes()));
        field(self.run_id.as_ref().map(|id| id.as_bytes().as_slice()));
        field(self.cause.as_ref().map(|id| id.as_bytes().as_slice()));
        field(Some(self.taint.as_bytes()));
        field(Some(self.payload.as_bytes()));
        ChainHash(Sha256::digest(&*bytes).into())
    }

    /// Understands the event. A type or a version that is not known here becomes [`Payload::Unknown`].
    pub fn decode(&self) -> Result<Event, DecodeError> {
        let label = |e: LabelError| DecodeError::envelope(&self.name, e.to_string());
        let taint = match &*self.taint {
            "" => Vec::new(),
            list => list.split(',').map(Taint::parse).collect::<Result<_, _>>().map_err(label)?,
        };
        Ok(Event {
            seq: self.seq,
            id: self.id,
            ts: self.ts,
            source: self.source,
            op: self.op,
            actor: Actor::parse(&self.actor).map_err(label)?,
            run_id: self.run_id,
            cause: self.cause,
            taint,
            payload: Payload::decode(&self.name, self.version, &self.payload)?,
        })
    }
}

/// Room for the texts of an event on its way into a log, to be used again for the next one.
#[derive(Debug, Default)]
pub struct Scratch {
    payload: Vec<u8>,
    taint: String,
    link: Vec<u8>,
}

/// An event understood: what the kernel works with.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub seq: Seq,
    pub id: EventId,
    pub ts: Timestamp,
    pub source: Source,
    pub op: OpId,
    pub actor: Actor,
    pub run_id: Option<RunId>,
    pub cause: Option<EventId>,
    pub taint: Vec<Taint>,
    pub payload: Payload,
}

impl Event {
    /// The form that is recorded, linked to the event before it.
    pub fn store(&self, previous: &ChainHash) -> StoredEvent<'static> {
        self.store_into(previous, &mut Scratch::default()).into_owned()
    }

    /// The same with room of the caller's, for those who store many events.
    pub fn store_into<'a>(&'a self, previous: &ChainHash, scratch: &'a mut Scratch) -> StoredEvent<'a> {
        let Scratch { payload, taint, link } = scratch;
        let (name, version) = self.payload.encode_into(payload);
        taint.clear();
        for label in &self.taint {
            if !taint.is_empty() {
                taint.push(',');
            }
            taint.push_str(label.as_str());
        }
        let mut stored = StoredEvent {
            seq: self.seq,
            id: self.id,
            ts: self.ts,
            source: self.source,
            name,
            version,
            op: self.op,
            actor: Cow::Borrowed(self.actor.as_str()),
            run_id: self.run_id,
            cause: self.cause,
            taint: Cow::Borrowed(taint),
            // JSON is UTF-8 by its making.
            payload: String::from_utf8_lossy(payload),
            hash: ChainHash::default(),
        };
        stored.hash = stored.link_into(previous, link);
        stored
    }
}

/// The JSON form of a stored event. The payload is carried as it is, unread.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    id: EventId,
    seq: Seq,
    ts: Timestamp,
    source: Source,
    #[serde(rename = "type")]
    name: EventName,
    #[serde(rename = "v", default = "first_version", skip_serializing_if = "is_first")]
    version: u16,
    op: OpId,
    actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<EventId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    taint: Vec<Taint>,
    #[serde(borrow)]
    payload: Cow<'a, RawValue>,
    hash: ChainHash,
}

fn first_version() -> u16 {
    1
}

fn is_first(version: &u16) -> bool {
    *version == 1
}

impl Serialize for StoredEvent<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let payload: &RawValue = serde_json::from_str(&self.payload).map_err(S::Error::custom)?;
        let taint = self.taint.split(',').filter(|t| !t.is_empty()).map(Taint::parse);
        Wire {
            id: self.id,
            seq: self.seq,
            ts: self.ts,
            source: self.source,
            name: EventName::parse(&self.name).map_err(S::Error::custom)?,
            version: self.version,
            op: self.op,
            actor: Actor::parse(&self.actor).map_err(S::Error::custom)?,
            run_id: self.run_id,
            cause: self.cause,
            taint: taint.collect::<Result<_, _>>().map_err(S::Error::custom)?,
            payload: Cow::Borrowed(payload),
            hash: self.hash,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredEvent<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        Ok(StoredEvent {
            seq: wire.seq,
            id: wire.id,
            ts: wire.ts,
            source: wire.source,
            name: Cow::Owned(wire.name.as_str().to_owned()),
            version: wire.version,
            op: wire.op,
            actor: wire.actor.0,
            run_id: wire.run_id,
            cause: wire.cause,
            taint: Cow::Owned(wire.taint.iter().map(Taint::as_str).collect::<Vec<_>>().join(",")),
            payload: Cow::Owned(wire.payload.get().to_owned()),
            hash: wire.hash,
        })
    }
}
