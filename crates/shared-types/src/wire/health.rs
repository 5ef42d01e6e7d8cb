//! Whether the server runs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The answer of `/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    pub status: Cow<'static, str>,
    pub version: Cow<'static, str>,
}
