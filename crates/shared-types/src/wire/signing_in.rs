//! Signing in: passkey ceremonies, recovery codes, and invitations of further people.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;

/// A ceremony that was begun, in words for the browser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CeremonyStart {
    pub ceremony: String,
    pub options: Value,
}

/// The second half of a ceremony, with what the authenticator said.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FinishCeremony<T> {
    pub ceremony: String,
    /// As the browser's `navigator.credentials` gives it, in its JSON form.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, Value>"))]
    pub credential: T,
}

/// A body of `POST /auth/passkeys/register/start`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewPasskey {
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 100)))]
    pub name: String,
}

/// A body of `POST /auth/recover`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Recover {
    pub user: String,
    pub code: String,
}

/// New recovery codes, which are shown this once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveryCodes {
    pub codes: Vec<String>,
}

/// A body of `POST /auth/invitations`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Invite {
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 100)))]
    pub name: String,
}

/// An invitation that nobody has accepted yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invitation {
    pub id: String,
    pub name: String,
    pub created: Timestamp,
    pub expires: Timestamp,
}

/// An invitation that was just made, with the link for the invited person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invited {
    pub link: String,
    pub invitation: Invitation,
}
