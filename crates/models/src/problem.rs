//! Why a model cannot be used.

use std::fmt;

/// Why a model cannot be used, and what the user can do. Shown together they are one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProblem {
    /// A sentence.
    pub reason: String,
    /// A sentence, or empty.
    pub advice: String,
}

impl ModelProblem {
    pub(crate) fn without_advice(reason: String) -> Self {
        Self { reason, advice: String::new() }
    }
}

impl fmt::Display for ModelProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, " {}", self.advice) }
    }
}
