//! What a test reads back: each request without its key, and what came of it.

use serde::Serialize;
use serde_json::Value;

use crate::{
    script::Fault,
    wire::{Request, Wire},
};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// `None` for a path that is nobody's.
    pub wire: Option<Wire>,
    pub path: String,
    /// With small letters, in the order of their names, without those that hold a key.
    pub headers: Vec<(String, String)>,
    /// As it came, with `[key]` wherever the key stood.
    pub body: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// A step was played, or its fault.
    Played { agent: String, step: usize, fault: Option<Fault> },
    /// The request is one that no provider takes, or that the script does not know.
    Refused { status: u16, reason: String },
}

const SECRET_HEADERS: [&str; 4] = ["authorization", "x-api-key", "x-amz-security-token", "cookie"];

impl Recorded {
    pub(crate) fn new(wire: Option<Wire>, request: &Request, key: &str, outcome: Outcome) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(key, "[key]");
        let open = request.headers.iter().filter(|(name, _)| !SECRET_HEADERS.contains(&name.as_str()));
        let mut headers: Vec<_> =
            open.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
        headers.sort();
        let path = request.path.replace(key, "[key]");
        Self { wire, path, headers, body: text(&request.body), outcome }
    }

    /// The body, or null if it was no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Why the request was refused, if it was.
    pub fn refusal(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Refused { reason, .. } => Some(reason),
            Outcome::Played { .. } => None,
        }
    }
}
