//! The event envelope: the same in the log, on the wire, in the desktop and in exports.
//!
//! [`StoredEvent`] holds an event exactly as it was recorded. This form is sent and covered by the chain of hashes,
//! so fields and types that this version does not know survive. [`Event`] is the same event decoded.

use std::borrow::Cow;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::label::LabelError;
use crate::payload::DecodeError;
use crate::{Actor, ChainHash, EventId, EventName, OpId, Payload, RunId, Seq, Source, Taint, Timestamp};

/// An event as it was recorded, borrowed from a database row or owned.
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

    /// The chain hash after `previous`: SHA-256 over it and every stored field in table order, each with its length
    /// before it. The user's id is the log's address and not part of it.
    pub fn link(&self, previous: &ChainHash) -> ChainHash {
        self.link_into(previous, &mut Vec::with_capacity(256 + self.payload.len()))
    }

    /// The same with the caller's buffer, for many events.
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

    /// Decodes the event. An unknown type or version becomes [`Payload::Unknown`].
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

/// Buffers for encoding an event, reused for the next one.
#[derive(Debug, Default)]
pub struct StoreBuffers {
    payload: Vec<u8>,
    taint: String,
    link: Vec<u8>,
}

/// A decoded event: what the kernel works with.
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
    /// Encodes the event as it is recorded, chained to the event before it.
    pub fn store(&self, previous: &ChainHash) -> StoredEvent<'static> {
        self.store_into(previous, &mut StoreBuffers::default()).into_owned()
    }

    /// The same with the caller's buffers, for many events.
    pub fn store_into<'a>(&'a self, previous: &ChainHash, buffers: &'a mut StoreBuffers) -> StoredEvent<'a> {
        let StoreBuffers { payload, taint, link } = buffers;
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
            // serde_json writes UTF-8.
            payload: String::from_utf8_lossy(payload),
            hash: ChainHash::default(),
        };
        stored.hash = stored.link_into(previous, link);
        stored
    }
}

/// The JSON form of a stored event. The payload is copied unparsed.
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
            actor: Cow::Owned(wire.actor.as_str().to_owned()),
            run_id: wire.run_id,
            cause: wire.cause,
            taint: Cow::Owned(wire.taint.iter().map(Taint::as_str).collect::<Vec<_>>().join(",")),
            payload: Cow::Owned(wire.payload.get().to_owned()),
            hash: wire.hash,
        })
    }
}
