//! Recorded requests, without keys, and their outcomes.

use serde::Serialize;
use serde_json::Value;

use crate::{
    script::Fault,
    wire::{Request, Wire},
};

/// A request that the server received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedRequest {
    /// `None` if no provider has this path.
    pub wire: Option<Wire>,
    pub path: String,
    /// In lower case, sorted by name, without those that contain a key.
    pub headers: Vec<(String, String)>,
    /// As received, with the key replaced by `[key]`.
    pub body: String,
    #[serde(flatten)]
    pub outcome: RequestOutcome,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RequestOutcome {
    /// A step or its fault was played.
    Played { agent: String, step: usize, fault: Option<Fault> },
    /// The request is invalid for its provider, or does not match the script.
    Refused { status: u16, reason: String },
}

const SECRET_HEADERS: [&str; 4] = ["authorization", "x-api-key", "x-amz-security-token", "cookie"];

impl RecordedRequest {
    pub(crate) fn new(wire: Option<Wire>, request: &Request, key: &str, outcome: RequestOutcome) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(key, "[key]");
        let open = request.headers.iter().filter(|(name, _)| !SECRET_HEADERS.contains(&name.as_str()));
        let mut headers: Vec<_> =
            open.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
        headers.sort();
        let path = request.path.replace(key, "[key]");
        Self { wire, path, headers, body: text(&request.body), outcome }
    }

    /// The body, or null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Why the request was refused, if it was.
    pub fn refusal(&self) -> Option<&str> {
        match &self.outcome {
            RequestOutcome::Refused { reason, .. } => Some(reason),
            RequestOutcome::Played { .. } => None,
        }
    }
}
