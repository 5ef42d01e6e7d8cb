//! Errors, with both sides of each conflict.

use serde::{Deserialize, Serialize};

use crate::{ContentHash, Subject};

/// `application/problem+json`: why a request failed. `docs/errors.md` explains every code.
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
    pub conflicts: Vec<ConflictView>,
    /// For a write whose base is stale: the current content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<ContentHash>,
}

/// A conflict as the person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConflictView {
    pub subject: Subject,
    pub reason: String,
    /// The present state and the state after the undo, as text if they are text.
    pub today: Option<String>,
    pub undone: Option<String>,
}
