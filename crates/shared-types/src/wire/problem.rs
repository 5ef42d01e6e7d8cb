//! Why something was not done, with both sides of what is in conflict.

use serde::{Deserialize, Serialize};

use crate::{ContentHash, Subject};

/// `application/problem+json`: why a request was not done. `docs/errors.md` explains every code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub code: String,
    /// What happened, what was kept, and what to do.
    pub detail: String,
    /// For conflicts of undo: both sides of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Clash>,
    /// For a write whose base is stale: what is there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<ContentHash>,
}

/// A conflict as the person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clash {
    pub subject: Subject,
    pub reason: String,
    /// What is there today and what undoing would put there, as text where they are text.
    pub today: Option<String>,
    pub undone: Option<String>,
}
