//! One child process, from its start to its end.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{BearerToken, RunnerOptions, StartError};
use crate::child::{ARGUMENT, ChildReport, ChildSettings};

/// Number of lines of standard error that are kept.
const STDERR_LINES: usize = 8;

/// A change of the child's state.
#[derive(Debug)]
pub(super) enum ChildEvent {
    Working(bool),
    /// With the reason as a sentence.
    Exited(String),
}

/// A running child. Dropping it kills the child.
#[derive(Debug)]
pub(super) struct ChildProcess {
    child: Child,
    /// The child exits when this is closed.
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last_stderr: Arc<Mutex<VecDeque<String>>>,
    pid: u32,
}

impl ChildProcess {
    pub(super) async fn spawn(
        program: &Path,
        options: &RunnerOptions,
        threads: usize,
        bearer: &BearerToken,
    ) -> Result<Self, StartError> {
        let threads = threads.to_string();
        let mut child = Command::new(program)
            .arg(ARGUMENT)
            // candle and its matrix library read the number of threads only from the environment.
            .env("RAYON_NUM_THREADS", &threads)
            .env("CANDLE_NUM_THREADS", &threads)
            // A heap per thread would reserve address space that counts towards the limit.
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C goes only to the parent, which then stops the child.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(StartError::Spawn)?;
        let missing = || StartError::Spawn(std::io::Error::other("the child has no pipes"));
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let last_stderr: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let kept = last_stderr.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(errors).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                tracing::debug!(%line, "output of the local model");
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == STDERR_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        let settings = ChildSettings {
            weights: options.weights.clone(),
            model: options.model.clone(),
            context: options.context,
            memory: options.memory,
            bearer: bearer.0.clone(),
        };
        let mut line = serde_json::to_vec(&settings).map_err(|e| StartError::Spawn(e.into()))?;
        line.push(b'\n');
        // If this fails, the child has already exited, and `ready` reports why.
        let _ = input.write_all(&line).await;
        let pid = child.id().unwrap_or_default();
        Ok(Self { child, input: Some(input), output: BufReader::new(output).lines(), last_stderr, pid })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the child is ready and returns its port.
    pub(super) async fn ready(&mut self, mut progress: impl FnMut(u64, u64)) -> Result<u16, StartError> {
        while let Ok(Some(line)) = self.output.next_line().await {
            match serde_json::from_str(&line) {
                Ok(ChildReport::Loading { done, total }) => progress(done, total),
                Ok(ChildReport::Ready { port }) => return Ok(port),
                Ok(ChildReport::Working(_)) => {}
                Ok(ChildReport::Failed { message }) => return Err(StartError::Failed(message)),
                // Ignore output of libraries.
                Err(_) => tracing::debug!(%line, "output of the local model"),
            }
        }
        Err(StartError::Failed(self.exit_reason().await))
    }

    /// Waits until the child starts or finishes work, or exits.
    pub(super) async fn next(&mut self) -> ChildEvent {
        while let Ok(Some(line)) = self.output.next_line().await {
            if let Ok(ChildReport::Working(working)) = serde_json::from_str(&line) {
                return ChildEvent::Working(working);
            }
        }
        ChildEvent::Exited(self.exit_reason().await)
    }

    /// Waits until the child has exited and returns the reason as a sentence.
    async fn exit_reason(&mut self) -> String {
        let status = self.child.wait().await;
        // Give the last lines of standard error time to arrive.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let lines = self.last_stderr.lock().unwrap_or_else(PoisonError::into_inner);
        match status {
            Ok(status) => describe(status, lines.iter().map(String::as_str)),
            Err(error) => format!("cannot wait for the process: {error}"),
        }
    }

    /// Stops the child: closes its input, and kills it if it does not exit.
    pub(super) async fn end(&mut self) {
        self.input = None;
        if tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

fn describe<'a>(status: ExitStatus, lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.collect();
    if lines.iter().any(|line| line.contains("memory allocation of")) {
        return "it exceeded its memory limit".into();
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(9)) => "it was killed, perhaps because the machine had no memory left".into(),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".into(),
    };
    match lines.last() {
        Some(last) => format!("{how} ({last})"),
        None => how,
    }
}
