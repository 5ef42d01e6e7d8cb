//! Names of event types. The one place where `FILE_WRITE`, `file_write` and `file/write` become `file.write`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Source, UserId};

/// Why a text is not the name of an event type.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{0:?} is not an event type: expected words of a-z and 0-9 joined by dots, such as file.write")]
pub struct NameError(pub String);

/// A normalised event type: lower case, dot-delimited.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct EventName(Cow<'static, str>);

impl EventName {
    pub const MAX_LEN: usize = 64;

    /// A name from the table of payloads, which is normalised already.
    pub(crate) const fn known(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Normalises a name as people and older systems write it. Refuses mixed case instead of guessing.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let refuse = || NameError(text.chars().take(80).collect());
        let has_upper = text.bytes().any(|b| b.is_ascii_uppercase());
        let has_lower = text.bytes().any(|b| b.is_ascii_lowercase());
        if text.len() > Self::MAX_LEN || (has_upper && has_lower) {
            return Err(refuse());
        }
        let normal: String =
            text.chars().map(|c| if matches!(c, '_' | '/') { '.' } else { c.to_ascii_lowercase() }).collect();
        let word = |w: &str| {
            w.starts_with(|c: char| c.is_ascii_lowercase())
                && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        if normal.split('.').all(word) { Ok(Self(Cow::Owned(normal))) } else { Err(refuse()) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the first dot.
    pub fn family(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }

    /// The NATS subject of such an event.
    pub fn subject(&self, user: &UserId, source: Source) -> String {
        format!("choiros.{user}.{source}.{self}")
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for EventName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for EventName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_becomes_the_same_name() {
        for spelling in ["FILE_WRITE", "file_write", "file/write", "file.write", "FILE/WRITE"] {
            assert_eq!(EventName::parse(spelling).unwrap().as_str(), "file.write");
        }
        assert_eq!(EventName::parse("UNDO").unwrap().as_str(), "undo");
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in
            ["", ".", "file.", ".write", "file..write", "fileWrite", "file write", "file.*", "fìle", "1file"]
        {
            assert!(EventName::parse(bad).is_err(), "{bad}");
        }
        assert!(EventName::parse(&"a".repeat(65)).is_err());
    }

    #[test]
    fn the_subject_names_user_source_and_type() {
        let user = UserId::parse("ada").unwrap();
        let name = EventName::parse("file.write").unwrap();
        assert_eq!(name.subject(&user, Source::Agent), "choiros.ada.agent.file.write");
    }
}
