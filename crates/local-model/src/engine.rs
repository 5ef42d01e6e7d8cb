//! The model at work: reads what is new in a prompt, and writes an answer token by token.
//!
//! What was read stays in memory between requests. A prompt that begins like the one before costs only what differs,
//! which is what makes an agent with a local model bearable: its prompts grow at the end.

mod model;
mod sampler;
mod task;
mod vocabulary;

use std::path::Path;
use std::time::Instant;

use candle_core::quantized::gguf_file::Content;
use thiserror::Error;

use crate::answer::Delta;
use crate::prompt::Piece;
use crate::wire::{Finish, Usage};
use model::Model;
use sampler::Sampler;
pub(crate) use task::{Refusal, Task, manner};
use vocabulary::{Vocabulary, VocabularyError};

/// Tokens read between two looks at whether anybody still wants the answer.
const AT_ONCE: usize = 128;

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum EngineError {
    #[error("the weights cannot be read")]
    Weights(#[from] std::io::Error),
    #[error("the model cannot be computed")]
    Compute(#[from] candle_core::Error),
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    #[error("the prompt has {tokens} tokens; this model reads {context}")]
    TooLong { tokens: usize, context: usize },
    #[error("no token fits the form of the answer")]
    Stuck,
    #[error("nobody waits for the answer any more")]
    Cancelled,
}

/// What the engine needs of a network.
pub(crate) trait Network {
    fn context(&self) -> usize;
    fn truncate(&mut self, length: usize);
    fn read(&mut self, tokens: &[u32]) -> candle_core::Result<Vec<f32>>;
    fn skim(&mut self, tokens: &[u32]) -> candle_core::Result<()>;
}

/// What the engine needs of a vocabulary.
pub(crate) trait Words {
    fn is_end(&self, token: u32) -> bool;
    fn bytes(&self, token: u32) -> Option<&[u8]>;
    fn tokens(&self, text: &str) -> Result<Vec<u32>, VocabularyError>;
    fn prompt(&self, pieces: &[Piece]) -> Result<Vec<u32>, VocabularyError>;
}

/// Whoever waits for an answer.
pub(crate) trait Listener {
    fn is_there(&self) -> bool;
    /// The request makes sense, and its turn has come.
    fn accepted(&mut self);
    fn hear(&mut self, delta: Delta);
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) finish: Finish,
    pub(crate) usage: Usage,
}

/// A network, its words, and what it has read.
#[derive(Debug)]
pub(crate) struct Engine<N = Model, W = Vocabulary> {
    network: N,
    words: W,
    read: Vec<u32>,
}

impl Engine {
    /// Loads weights; `progress` hears how many bytes are done of how many.
    pub(crate) fn load(
        weights: &Path,
        context: usize,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Self, EngineError> {
        let mut file = std::fs::File::open(weights)?;
        let total = file.metadata()?.len();
        let content = Content::read(&mut std::io::BufReader::new(&mut file))?;
        let words = Vocabulary::read(&content)?;
        let mut done = 0;
        let mut network = Model::load(weights, &content, context, &mut |bytes| {
            done += bytes;
            progress(done, total);
        })?;
        // The first pass brings the matrices into the order that the processor likes; nobody should wait for that later.
        network.skim(&[0, 1])?;
        network.truncate(0);
        Ok(Self::new(network, words))
    }
}

impl<N: Network, W: Words> Engine<N, W> {
    pub(crate) fn new(network: N, words: W) -> Self {
        Self { network, words, read: Vec::new() }
    }

    pub(crate) fn context(&self) -> usize {
        self.network.context()
    }

    /// Answers, and tells the listener piece by piece.
    pub(crate) fn answer(&mut self, task: Task, listener: &mut dyn Listener) -> Result<Outcome, EngineError> {
        let prompt = self.words.prompt(&task.prompt)?;
        let context = self.network.context();
        if prompt.len() >= context {
            return Err(EngineError::TooLong { tokens: prompt.len(), context });
        }
        listener.accepted();
        let began = Instant::now();
        let cached = self.keep(&prompt);
        let last = self.prefill(&prompt, listener)?;
        let prefill_seconds = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let most = task.most_tokens.min(context - prompt.len());
        let (finish, completion) = self.write(task, last, most, listener)?;
        let decode_seconds = began.elapsed().as_secs_f64();
        let usage = Usage { prompt: prompt.len(), cached, completion, prefill_seconds, decode_seconds };
        Ok(Outcome { finish, usage })
    }

    /// Reads and writes something without meaning, for the sake of its speed: tokens a second of both.
    pub(crate) fn measure(&mut self) -> Result<(f64, f64), EngineError> {
        const PREFILL: u32 = 96;
        const DECODE: u32 = 12;
        self.forget();
        let tokens: Vec<u32> = (0..PREFILL).map(|i| 1000 + i * 7).collect();
        let began = Instant::now();
        self.network.read(&tokens)?;
        let prefill = f64::from(PREFILL) / began.elapsed().as_secs_f64();
        let began = Instant::now();
        for token in 0..DECODE {
            self.network.read(&[1000 + token])?;
        }
        let decode = f64::from(DECODE) / began.elapsed().as_secs_f64();
        self.forget();
        Ok((prefill, decode))
    }

    fn forget(&mut self) {
        self.network.truncate(0);
        self.read.clear();
    }

    /// Forgets what this prompt has not in common with what was read; how much of it stays.
    fn keep(&mut self, prompt: &[u32]) -> usize {
        // The last token is read again in any case: what follows it is the question.
        let kept = common(&self.read, prompt).min(prompt.len().saturating_sub(1));
        self.network.truncate(kept);
        self.read.truncate(kept);
        kept
    }

    /// Reads the prompt up to its last token, which is returned.
    fn prefill(&mut self, prompt: &[u32], listener: &dyn Listener) -> Result<u32, EngineError> {
        let Some((last, before)) = prompt.split_last() else { return Err(EngineError::Stuck) };
        let fresh = before.get(self.read.len()..).unwrap_or_default();
        for tokens in fresh.chunks(AT_ONCE) {
            if !listener.is_there() {
                return Err(EngineError::Cancelled);
            }
            self.network.skim(tokens)?;
            self.read.extend_from_slice(tokens);
        }
        Ok(*last)
    }

    fn write(
        &mut self,
        mut task: Task,
        last: u32,
        most: usize,
        listener: &mut dyn Listener,
    ) -> Result<(Finish, usize), EngineError> {
        let mut sampler = Sampler::new(task.sampling);
        let mut written: Vec<u32> = Vec::new();
        let mut unread = vec![last];
        loop {
            for token in self.forced(&task)? {
                self.speak(&mut task, token, listener);
                written.push(token);
                unread.push(token);
            }
            if task.is_over() || written.len() >= most || self.read.len() + unread.len() >= self.context() {
                break;
            }
            if !listener.is_there() {
                return Err(EngineError::Cancelled);
            }
            let weights = self.network.read(&unread)?;
            self.read.append(&mut unread);
            let words = &self.words;
            let may_follow = |token: u32| match words.is_end(token) {
                true => task.may_end(),
                false => {
                    words.bytes(token).is_some_and(|bytes| !bytes.is_empty() && task.allows(bytes))
                        && !sampler::goes_in_circles(&written, token)
                }
            };
            let token = sampler.pick(&weights, may_follow).ok_or(EngineError::Stuck)?;
            if self.words.is_end(token) {
                return Ok((task.finish(), written.len()));
            }
            self.speak(&mut task, token, listener);
            written.push(token);
            unread.push(token);
        }
        let finish = if task.is_over() { task.finish() } else { Finish::Length };
        Ok((finish, written.len()))
    }

    fn speak(&self, task: &mut Task, token: u32, listener: &mut dyn Listener) {
        let bytes = self.words.bytes(token).unwrap_or_default();
        for delta in task.push(bytes) {
            listener.hear(delta);
        }
    }

    /// Tokens that the form of the answer leaves no choice about; they are read together with the token before.
    fn forced(&self, task: &Task) -> Result<Vec<u32>, EngineError> {
        let bytes = task.forced();
        let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(Vec::new()) };
        let mut tokens = self.words.tokens(text)?;
        // The model may write the last of it as one token with what it says next.
        if !task.would_be_over(&bytes) {
            tokens.pop();
        }
        Ok(tokens)
    }
}

/// How long two texts are the same.
fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Network for Model {
    fn context(&self) -> usize {
        self.context()
    }

    fn truncate(&mut self, length: usize) {
        self.truncate(length);
    }

    fn read(&mut self, tokens: &[u32]) -> candle_core::Result<Vec<f32>> {
        self.read(tokens)
    }

    fn skim(&mut self, tokens: &[u32]) -> candle_core::Result<()> {
        self.skim(tokens)
    }
}

impl Words for Vocabulary {
    fn is_end(&self, token: u32) -> bool {
        self.is_end(token)
    }

    fn bytes(&self, token: u32) -> Option<&[u8]> {
        self.bytes(token)
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.tokens(text)
    }

    fn prompt(&self, pieces: &[Piece]) -> Result<Vec<u32>, VocabularyError> {
        self.prompt(pieces)
    }
}

#[cfg(test)]
pub(crate) mod tests;
