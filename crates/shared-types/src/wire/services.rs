//! Services for agents besides models and tools, as configured in `choir.toml`.

use serde::{Deserialize, Serialize};

/// The configured services.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceList {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetryLine>,
}

/// The web search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchLine {
    pub provider: String,
    pub address: String,
    /// The name of its key in the vault, if it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Where spans of agents are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TelemetryLine {
    pub address: String,
    /// Whether the spans include the texts of models and tools.
    pub contents: bool,
}

/// The result of a test search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchTestResult {
    pub ok: bool,
    pub results: u64,
    /// Why the search failed.
    #[serde(rename = "trouble", default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub millis: u64,
}
