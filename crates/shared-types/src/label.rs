//! Who made an event, and where its words come from: source, actor and taint.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The kind of author of an event.
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

/// Why a label is refused.
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
                // The most frequent label needs no allocation.
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
    /// The author of an event: a person's client, an agent, a part of the system.
    Actor, often CLI
}
label! {
    /// A taint label: the untrusted origin of some text, such as a web page, mail, an import or a networked command.
    Taint, often IMPORT
}

impl Actor {
    /// The person, at the desktop in the browser.
    pub const DESKTOP: Self = Self(Cow::Borrowed("desktop"));
    /// The person, at the command line.
    pub const CLI: Self = Self(Cow::Borrowed("cli"));
    /// The part that turns outside edits of the workspace into events.
    pub const CAPTURE: Self = Self(Cow::Borrowed("capture"));
    /// The part that makes automatic checkpoints.
    pub const CHECKPOINTS: Self = Self(Cow::Borrowed("checkpoints"));
    /// The part that ends commands which a crash left open.
    pub const CELLS: Self = Self(Cow::Borrowed("cells"));
    /// The harness that runs agents, for events of no particular agent.
    pub const CHOIR: Self = Self(Cow::Borrowed("choir"));
}

impl Taint {
    pub const IMPORT: Self = Self(Cow::Borrowed("import"));
    /// A command that could reach the network.
    pub const COMMAND: Self = Self(Cow::Borrowed("command"));
    /// A web page.
    pub const WEB: Self = Self(Cow::Borrowed("web"));
    /// The answer of an external MCP tool.
    pub const MCP: Self = Self(Cow::Borrowed("mcp"));
}
