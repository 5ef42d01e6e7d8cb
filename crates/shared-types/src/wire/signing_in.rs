//! Signing in: passkey ceremonies, recovery codes, and invitations.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;

/// A ceremony that was begun, with the options for the browser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CeremonyStart {
    pub ceremony: String,
    pub options: Value,
}

/// The second half of a ceremony, with the response of the authenticator.
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
pub struct RecoveryLogin {
    pub user: String,
    pub code: String,
}

/// New recovery codes. They are shown only once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveryCodes {
    pub codes: Vec<String>,
}

/// A body of `POST /auth/invitations`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InvitationRequest {
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 100)))]
    pub name: String,
}

/// An open invitation.
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
pub struct CreatedInvitation {
    pub link: String,
    pub invitation: Invitation,
}
