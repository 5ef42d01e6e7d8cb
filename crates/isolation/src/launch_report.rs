//! How a launcher tells the host that a cell ended, or which step of its setup failed.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::cell::Usage;

/// The launcher's final report, on its standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum LaunchReport {
    Failed { step: String, reason: String },
    Ended(Usage),
}

/// Why a setup step failed.
pub(crate) struct SetupError {
    pub(crate) step: String,
    pub(crate) reason: String,
}

/// Names the step that failed.
pub(crate) fn step_failed<E: Display>(step: impl Into<String>) -> impl FnOnce(E) -> SetupError {
    move |error| SetupError { step: step.into(), reason: error.to_string() }
}
