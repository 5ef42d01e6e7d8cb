//! What a machine can do for a backend, for `choir doctor` and for the refusal to run unprotected.

use serde::Serialize;

/// The result of looking at the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    pub backend: &'static str,
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub what: &'static str,
    pub finding: Finding,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    Works(String),
    /// It is missing, and what stands in for it.
    Weaker(String),
    /// It is missing, and without it nothing untrusted is run.
    Missing(String),
}

impl Probe {
    /// Why nothing can be run here, if so.
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
