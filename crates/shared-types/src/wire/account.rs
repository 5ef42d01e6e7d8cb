//! Who is signed in, and their account: sessions, passkeys, tokens and the audit trail.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, UserId};

/// The user who is signed in, and what this computer offers them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Me {
    pub user: UserId,
    pub name: String,
    /// Whether this is the person who owns the machine.
    pub owner: bool,
    /// Whether a plain shell on the machine is offered.
    pub shell: bool,
    pub version: String,
}

/// A body of `POST /auth/link`: the secret of a sign-in link.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SignInLink {
    pub secret: String,
}

/// A sign-in session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    pub id: String,
    pub current: bool,
    pub created: Timestamp,
    pub seen: Timestamp,
    pub browser: String,
    pub address: String,
}

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Passkey {
    pub id: String,
    pub name: String,
    pub created: Timestamp,
    pub used: Option<Timestamp>,
}

/// A token for scripts. Its secret is shown once, when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiToken {
    pub id: String,
    pub name: String,
    pub scopes: Vec<TokenScope>,
    pub created: Timestamp,
    pub used: Option<Timestamp>,
    pub expires: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A body of `POST /auth/tokens`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 100)))]
    pub name: String,
    pub scopes: Vec<TokenScope>,
    #[serde(default)]
    pub days: Option<u32>,
}

/// What a token allows, or what a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    Read,
    Write,
    Terminal,
    /// Sessions, passkeys, tokens and invitations. No token can have it.
    Account,
}

/// One line of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLine {
    pub ts: Timestamp,
    pub what: String,
    pub address: String,
    pub detail: String,
}
