//! Figures as JSON lines, as the other benchmarks print them, and which bars they miss.

use anyhow::{Result, bail};
use serde_json::{Value, json};

/// What was printed so far.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    missed: Vec<String>,
}

impl Figures {
    /// Tells of one case. `figures` is an object.
    pub(crate) fn tell(&mut self, case: &str, mut figures: Value, bar: &str, met: bool) {
        figures["bench"] = json!("agents");
        figures["case"] = json!(case);
        figures["bar"] = json!(bar);
        figures["met"] = json!(met);
        println!("{figures}");
        if !met {
            self.missed.push(format!("{case}: {bar}"));
        }
    }

    /// An error, if a bar was missed.
    pub(crate) fn end(self) -> Result<()> {
        if self.missed.is_empty() {
            return Ok(());
        }
        bail!("missed: {}", self.missed.join("; "))
    }
}
