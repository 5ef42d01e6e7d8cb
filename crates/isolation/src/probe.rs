//! Checks what a backend supports on this machine, for `choir doctor` and for refusing to run without isolation.

use serde::Serialize;

/// The result of probing this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    pub backend: &'static str,
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub what: &'static str,
    pub finding: Finding,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    Works(String),
    /// Missing; the text says what replaces it.
    Weaker(String),
    /// Missing and required: no untrusted command runs without it.
    Missing(String),
}

impl Probe {
    /// Why no command can run here, if a required feature is missing.
    pub fn obstacle(&self) -> Option<String> {
        let missing: Vec<String> = self
            .checks
            .iter()
            .filter_map(|check| match &check.finding {
                Finding::Missing(why) => Some(format!("{}: {why}", check.what)),
                Finding::Works(_) | Finding::Weaker(_) => None,
            })
            .collect();
        (!missing.is_empty()).then(|| missing.join("; "))
    }
}
