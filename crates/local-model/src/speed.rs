//! The speed of the model on this machine: measured once, saved beside the weights, shown before a run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::runner::{LocalModelRunner, StartError};
use crate::worker::Speed;

/// A measured speed, and the machine it was measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSpeed {
    pub speed: Speed,
    pub threads: usize,
    pub processor: String,
    /// Unix time in seconds.
    pub at: u64,
}

/// Why the measurement failed.
#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the local model did not answer")]
    Answer(#[from] reqwest::Error),
    #[error("the local model sent an invalid speed")]
    Words(#[from] serde_json::Error),
}

impl MeasuredSpeed {
    /// The saved speed of these weights, if it was measured on this kind of processor.
    pub fn known(weights: &Path) -> Option<Self> {
        let known: Self = serde_json::from_slice(&std::fs::read(path(weights)).ok()?).ok()?;
        (known.processor == processor()).then_some(known)
    }

    /// Estimated seconds for an answer of `answer` tokens to a prompt of `prompt` tokens.
    pub fn seconds(&self, prompt: u32, answer: u32) -> f64 {
        f64::from(prompt) / self.speed.prefill + f64::from(answer) / self.speed.decode
    }
}

/// Measures the speed with this runner, which starts the child if needed, and saves the result if possible.
pub async fn measure_speed(runner: &LocalModelRunner) -> Result<MeasuredSpeed, MeasureError> {
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
    let measured = MeasuredSpeed { speed, threads: lease.threads(), processor: processor(), at };
    // The folder of the weights may be read-only; then only the returned value is available.
    if let Err(error) = keep(&options.weights, &measured) {
        tracing::info!(%error, "cannot save the speed of the local model beside its weights");
    }
    Ok(measured)
}

fn keep(weights: &Path, measured: &MeasuredSpeed) -> std::io::Result<()> {
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

/// The name of the processor. Weights may be copied to other machines, where the speed differs.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_speed_is_valid_only_for_the_same_processor() {
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("a.gguf");
        assert_eq!(MeasuredSpeed::known(&weights), None);
        let speed = Speed { prefill: 30.0, decode: 10.0 };
        let measured = MeasuredSpeed { speed, threads: 2, processor: processor(), at: 1 };
        keep(&weights, &measured).unwrap();
        assert_eq!(MeasuredSpeed::known(&weights), Some(measured.clone()));
        keep(&weights, &MeasuredSpeed { processor: "another".into(), ..measured.clone() }).unwrap();
        assert_eq!(MeasuredSpeed::known(&weights), None);
        assert!((measured.seconds(300, 20) - 12.0).abs() < 1e-9);
    }
}
