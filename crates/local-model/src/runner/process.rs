//! One child process, from its start to its end.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{Options, Secret, StartError};
use crate::child::{ARGUMENT, Report, Settings};

/// Last words that are kept.
const LAST_WORDS: usize = 8;

/// Something about a child.
#[derive(Debug)]
pub(super) enum Happened {
    Working(bool),
    /// Why, in a sentence.
    Died(String),
}

/// A child that runs; it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// The child lives as long as this is open.
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    pid: u32,
}

impl Process {
    pub(super) async fn spawn(
        program: &Path,
        options: &Options,
        threads: usize,
        bearer: &Secret,
    ) -> Result<Self, StartError> {
        let threads = threads.to_string();
        let mut child = Command::new(program)
            .arg(ARGUMENT)
            // candle and its matrices ask for the number of threads here and nowhere else.
            .env("RAYON_NUM_THREADS", &threads)
            .env("CANDLE_NUM_THREADS", &threads)
            // A heap for every thread would reserve room that the limit counts.
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the parent, who then ends the child.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(StartError::Spawn)?;
        let missing = || StartError::Spawn(std::io::Error::other("the child has no pipes"));
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let last_words: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let heard = last_words.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(errors).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                tracing::debug!(%line, "the local model says");
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                if heard.len() == LAST_WORDS {
                    heard.pop_front();
                }
                heard.push_back(line);
            }
        });
        let settings = Settings {
            weights: options.weights.clone(),
            model: options.model.clone(),
            context: options.context,
            memory: options.memory,
            bearer: bearer.0.clone(),
        };
        let mut line = serde_json::to_vec(&settings).map_err(|e| StartError::Spawn(e.into()))?;
        line.push(b'\n');
        // If this fails, the child is gone already, and `ready` finds out why.
        let _ = input.write_all(&line).await;
        let pid = child.id().unwrap_or_default();
        Ok(Self { child, input: Some(input), output: BufReader::new(output).lines(), last_words, pid })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the child answers; its port.
    pub(super) async fn ready(&mut self, mut progress: impl FnMut(u64, u64)) -> Result<u16, StartError> {
        while let Ok(Some(line)) = self.output.next_line().await {
            match serde_json::from_str(&line) {
                Ok(Report::Loading { done, total }) => progress(done, total),
                Ok(Report::Ready { port }) => return Ok(port),
                Ok(Report::Working(_)) => {}
                Ok(Report::Failed { message }) => return Err(StartError::Failed(message)),
                // A library that prints is no reason to give up.
                Err(_) => tracing::debug!(%line, "the local model says"),
            }
        }
        Err(StartError::Failed(self.died().await))
    }

    /// Waits until the child begins to work, has nothing more to do, or has died.
    pub(super) async fn next(&mut self) -> Happened {
        while let Ok(Some(line)) = self.output.next_line().await {
            if let Ok(Report::Working(working)) = serde_json::from_str(&line) {
                return Happened::Working(working);
            }
        }
        Happened::Died(self.died().await)
    }

    /// Waits until the child has died; why, in a sentence.
    async fn died(&mut self) -> String {
        let status = self.child.wait().await;
        // Its last words may still be on the way.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        match status {
            Ok(status) => describe(status, words.iter().map(String::as_str)),
            Err(error) => format!("it cannot be waited for: {error}"),
        }
    }

    /// Ends the child: it is asked by the end of its input, and then made to.
    pub(super) async fn end(&mut self) {
        self.input = None;
        if tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

fn describe<'a>(status: ExitStatus, words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    if words.iter().any(|line| line.contains("memory allocation of")) {
        return "it needed more memory than it may have".into();
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with code {code}"),
        (None, Some(9)) => "it was killed, perhaps because the machine had no memory left".into(),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".into(),
    };
    match words.last() {
        Some(last) => format!("{how} ({last})"),
        None => how,
    }
}
