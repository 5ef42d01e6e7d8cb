//! Ids as newtypes. Minted ids are UUIDv7, built from a time and random bits that the caller supplies.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::{Builder, Uuid};

use crate::Timestamp;

/// Why a text is not an id.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum IdError {
    #[error("not an id: expected a UUID such as 0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6")]
    Malformed,
    #[error("not a user id: expected 1 to 64 of a-z, 0-9 and '-'")]
    User,
}

struct UuidVisitor;

impl<'de> Visitor<'de> for UuidVisitor {
    type Value = Uuid;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a UUID in its hyphenated form")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Uuid, E> {
        Uuid::try_parse(text).map_err(E::custom)
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// Mints a UUIDv7 from a time and random bits.
            pub fn mint(at: Timestamp, bits: [u8; 10]) -> Self {
                let millis = u64::try_from(at.millis()).unwrap_or_default();
                Self(Builder::from_unix_timestamp_millis(millis, &bits).into_uuid())
            }

            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self.0.as_hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0.as_hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Uuid::try_parse(text).map(Self).map_err(|_| IdError::Malformed)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    let mut buffer = Uuid::encode_buffer();
                    serializer.serialize_str(self.0.as_hyphenated().encode_lower(&mut buffer))
                } else {
                    self.0.as_bytes().serialize(serializer)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(UuidVisitor).map(Self)
                } else {
                    <[u8; 16]>::deserialize(deserializer).map(Self::from_bytes)
                }
            }
        }
    };
}

uuid_id! {
    /// One event.
    EventId
}
uuid_id! {
    /// One operation: a user action, a tool call or a run step. The unit of undo.
    OpId
}
uuid_id! {
    /// One command, minted by its caller, so that a resend is recognised.
    CommandId
}
uuid_id! {
    /// One run of agents.
    RunId
}
uuid_id! {
    /// The work of one agent in a run. It has the id of the call that started it; the first task has the run's.
    TaskId
}
uuid_id! {
    /// A question of a run to the person. It has the id of the call that raised it, if there is one.
    AskId
}
uuid_id! {
    /// A lasting permission for agents.
    GrantId
}
uuid_id! {
    /// One requested effect.
    EffectId
}
uuid_id! {
    /// One window.
    WindowId
}
uuid_id! {
    /// One conversation.
    ConversationId
}
uuid_id! {
    /// One terminal.
    TerminalId
}
uuid_id! {
    /// One message.
    MessageId
}
uuid_id! {
    /// One note of an agent's memory.
    NoteId
}

/// The number of an event in its user's log: from 1 without gaps. Zero is before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    pub const ZERO: Self = Self(0);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Seq {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The address of a user's log: a single NATS token.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct UserId(Box<str>);

impl UserId {
    pub const MAX_LEN: usize = 64;

    pub fn parse(text: &str) -> Result<Self, IdError> {
        let fits = (1..=Self::MAX_LEN).contains(&text.len());
        let clean = text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if fits && clean { Ok(Self(text.into())) } else { Err(IdError::User) }
    }

    /// The user of a computer whose owner has no usable login name.
    pub fn owner() -> Self {
        Self("owner".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for UserId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for UserId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_is_a_single_token() {
        for good in ["a", "yusef", "team-7", &"x".repeat(64)] {
            assert!(UserId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a.b", "a*", ">", "a b", "é", "a/b", &"x".repeat(65)] {
            assert_eq!(UserId::parse(bad), Err(IdError::User), "{bad}");
        }
    }

    #[test]
    fn a_minted_id_is_version_seven_and_sorts_by_time() {
        let early = OpId::mint(Timestamp::from_millis(1), [0xff; 10]);
        let late = OpId::mint(Timestamp::from_millis(2), [0; 10]);
        assert!(early < late);
        assert_eq!(early.as_bytes()[6] >> 4, 7);
        assert_eq!(late.to_string().parse(), Ok(late));
    }
}
