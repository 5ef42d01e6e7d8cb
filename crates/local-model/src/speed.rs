//! How quick the model is on this machine: measured once, kept beside the weights, shown before a run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::runner::{Runner, StartError};
use crate::worker::Speed;

/// What was measured, and on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub speed: Speed,
    pub threads: usize,
    pub processor: String,
    /// Seconds since 1970.
    pub at: u64,
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the local model did not answer")]
    Answer(#[from] reqwest::Error),
    #[error("the local model said something else than its speed")]
    Words(#[from] serde_json::Error),
}

impl Measured {
    /// What was measured before with these weights, if it was on this machine.
    pub fn known(weights: &Path) -> Option<Self> {
        let known: Self = serde_json::from_slice(&std::fs::read(path(weights)).ok()?).ok()?;
        (known.processor == processor()).then_some(known)
    }

    /// Seconds until an answer of so many tokens to a prompt of so many is written.
    pub fn seconds(&self, prompt: u32, answer: u32) -> f64 {
        f64::from(prompt) / self.speed.prefill + f64::from(answer) / self.speed.decode
    }
}

/// Measures with the child of this runner, which is started if need be, and keeps the result where that is possible.
pub async fn measure(runner: &Runner) -> Result<Measured, MeasureError> {
    let lease = runner.acquire().await?;
    crate::tls::prepare();
    let request = reqwest::Client::builder()
        .build()?
        .post(format!("{}/speed", lease.root_url()))
        .bearer_auth(lease.bearer());
    let answer = request.send().await?.error_for_status()?.bytes().await?;
    let speed = serde_json::from_slice(&answer)?;
    let at =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let options = runner.options();
    let measured = Measured { speed, threads: lease.threads(), processor: processor(), at };
    // Weights may lie where nothing can be written; then it holds for as long as somebody remembers it.
    if let Err(error) = keep(&options.weights, &measured) {
        tracing::info!(%error, "the speed of the local model cannot be kept beside its weights");
    }
    Ok(measured)
}

fn keep(weights: &Path, measured: &Measured) -> std::io::Result<()> {
    let path = path(weights);
    let new = path.with_extension("new");
    std::fs::write(&new, serde_json::to_vec(measured)?)?;
    std::fs::rename(new, path)
}

fn path(weights: &Path) -> PathBuf {
    let mut name = weights.as_os_str().to_owned();
    name.push(".speed.json");
    name.into()
}

/// What the machine calls its processor; weights are carried from one machine to another.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_holds_for_the_same_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("a.gguf");
        assert_eq!(Measured::known(&weights), None);
        let speed = Speed { prefill: 30.0, decode: 10.0 };
        let measured = Measured { speed, threads: 2, processor: processor(), at: 1 };
        keep(&weights, &measured).unwrap();
        assert_eq!(Measured::known(&weights), Some(measured.clone()));
        keep(&weights, &Measured { processor: "another".into(), ..measured.clone() }).unwrap();
        assert_eq!(Measured::known(&weights), None);
        assert!((measured.seconds(300, 20) - 12.0).abs() < 1e-9);
    }
}
