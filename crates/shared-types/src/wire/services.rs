//! What agents are given beside models and tools, as the machine's owner named it in `choir.toml`.

use serde::{Deserialize, Serialize};

/// Every service that is set up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceList {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetryLine>,
}

/// Who searches the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchLine {
    pub provider: String,
    pub address: String,
    /// The name of the key in the vault that it needs, if it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Where spans of agents go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TelemetryLine {
    pub address: String,
    /// Whether what models and tools said goes there, too.
    pub contents: bool,
}

/// What came of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchTried {
    pub ok: bool,
    pub results: u64,
    /// Why there are none, where it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    pub millis: u64,
}
