//! Keys of providers in the vault. No route returns a key.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Whose an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// The user's own, which goes before a shared one.
    Own,
    /// Set by the owner, used by everybody on this machine.
    Shared,
}

/// What may be known of a key: never the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyEntry {
    pub provider: String,
    pub scope: KeyScope,
    /// The last four letters, where they tell little; of a shared key only to the owner.
    pub hint: Option<String>,
    pub set: Timestamp,
    /// Whether the master key that is there now opens it.
    pub readable: bool,
}

/// A body of `PUT /keys/{provider}`.
// The server reads the secret into a type that is never printed or written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewKey<S = String> {
    /// An API key. Bedrock takes an access key, too: its id, its secret and its session token if there is one, with a
    /// colon between them.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1, max = 16384)))]
    pub secret: S,
    /// For everybody on this machine. Only the owner may.
    #[serde(default)]
    pub shared: bool,
}
