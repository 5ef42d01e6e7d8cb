//! Keys of providers in the vault. No route returns a key.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Who may use a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// The user's own, which takes precedence over a shared one.
    Own,
    /// Set by the owner, used by every user of this machine.
    Shared,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyEntry {
    pub provider: String,
    pub scope: KeyScope,
    /// The last four characters of a long key; of a shared key only for the owner.
    pub hint: Option<String>,
    pub set: Timestamp,
    /// Whether the current master key can decrypt it.
    pub readable: bool,
}

/// A body of `PUT /keys/{provider}`.
// The server reads the secret into a type that is never printed or written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewKey<S = String> {
    /// An API key. For Bedrock also an access key: its id, its secret and, if there is one, its session token,
    /// separated by colons.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1, max = 16384)))]
    pub secret: S,
    /// For every user of this machine. Only the owner may set this.
    #[serde(default)]
    pub shared: bool,
}
