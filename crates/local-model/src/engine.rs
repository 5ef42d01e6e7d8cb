//! Runs the model: reads the new part of a prompt and writes an answer token by token.
//!
//! The key-value cache is kept between requests. A prompt that starts like the previous one costs only the part that
//! differs. Agents need this with a local model, because their prompts grow at the end.

mod model;
mod sampler;
mod task;
mod vocabulary;

use std::path::Path;
use std::time::Instant;

use candle_core::quantized::gguf_file::Content;
use thiserror::Error;

use crate::answer::AnswerDelta;
use crate::prompt::PromptPiece;
use crate::wire::{FinishReason, Usage};
use model::QwenModel;
use sampler::Sampler;
pub(crate) use task::Task;
use vocabulary::{Vocabulary, VocabularyError};

/// Tokens that are read before checking again whether the client is still connected.
const PREFILL_CHUNK: usize = 128;

/// Why a request failed.
#[derive(Debug, Error)]
pub(crate) enum EngineError {
    #[error("the weights cannot be read")]
    Weights(#[from] std::io::Error),
    #[error("the model failed to compute")]
    Compute(#[from] candle_core::Error),
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    #[error("the prompt has {tokens} tokens; the context size is {context}")]
    TooLong { tokens: usize, context: usize },
    #[error("no token fits the grammar of the answer")]
    Stuck,
    #[error("the client disconnected")]
    Cancelled,
}

/// The operations that the engine needs of a network.
pub(crate) trait Network {
    fn context(&self) -> usize;
    fn truncate(&mut self, length: usize);
    fn read(&mut self, tokens: &[u32]) -> candle_core::Result<Vec<f32>>;
    fn feed(&mut self, tokens: &[u32]) -> candle_core::Result<()>;
}

/// The operations that the engine needs of a vocabulary.
pub(crate) trait Tokenizer {
    fn is_end(&self, token: u32) -> bool;
    fn bytes(&self, token: u32) -> Option<&[u8]>;
    fn tokens(&self, text: &str) -> Result<Vec<u32>, VocabularyError>;
    fn prompt(&self, pieces: &[PromptPiece]) -> Result<Vec<u32>, VocabularyError>;
}

/// Receives an answer.
pub(crate) trait AnswerListener {
    fn is_connected(&self) -> bool;
    /// The request is valid and its turn has come.
    fn accepted(&mut self);
    fn receive(&mut self, delta: AnswerDelta);
}

/// How an answer ended, and its usage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AnswerOutcome {
    pub(crate) finish: FinishReason,
    pub(crate) usage: Usage,
}

/// A network, its vocabulary, and the tokens in its cache.
#[derive(Debug)]
pub(crate) struct Engine<N = QwenModel, V = Vocabulary> {
    network: N,
    vocabulary: V,
    cached: Vec<u32>,
}

impl Engine {
    /// Loads the weights; `progress` receives the bytes loaded and the total.
    pub(crate) fn load(
        weights: &Path,
        context: usize,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Self, EngineError> {
        let mut file = std::fs::File::open(weights)?;
        let total = file.metadata()?.len();
        let content = Content::read(&mut std::io::BufReader::new(&mut file))?;
        let vocabulary = Vocabulary::read(&content)?;
        let mut done = 0;
        let mut network = QwenModel::load(weights, &content, context, &mut |bytes| {
            done += bytes;
            progress(done, total);
        })?;
        // The first pass repacks the matrices for the processor. Do that now, not in the first request.
        network.feed(&[0, 1])?;
        network.truncate(0);
        Ok(Self::new(network, vocabulary))
    }
}

impl<N: Network, V: Tokenizer> Engine<N, V> {
    pub(crate) fn new(network: N, vocabulary: V) -> Self {
        Self { network, vocabulary, cached: Vec::new() }
    }

    pub(crate) fn context(&self) -> usize {
        self.network.context()
    }

    /// Writes an answer and passes it to the listener piece by piece.
    pub(crate) fn answer(
        &mut self,
        task: Task,
        listener: &mut dyn AnswerListener,
    ) -> Result<AnswerOutcome, EngineError> {
        let prompt = self.vocabulary.prompt(&task.prompt)?;
        let context = self.network.context();
        if prompt.len() >= context {
            return Err(EngineError::TooLong { tokens: prompt.len(), context });
        }
        listener.accepted();
        let began = Instant::now();
        let cached = self.keep_shared_prefix(&prompt);
        let last = self.prefill(&prompt, listener)?;
        let prefill_seconds = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let most = task.most_tokens.min(context - prompt.len());
        let (finish, completion) = self.write(task, last, most, listener)?;
        let decode_seconds = began.elapsed().as_secs_f64();
        let usage = Usage { prompt: prompt.len(), cached, completion, prefill_seconds, decode_seconds };
        Ok(AnswerOutcome { finish, usage })
    }

    /// Measures the speed with meaningless tokens: tokens per second of prefill and of decoding.
    pub(crate) fn measure(&mut self) -> Result<(f64, f64), EngineError> {
        const PREFILL: u32 = 96;
        const DECODE: u32 = 12;
        self.clear_cache();
        let tokens: Vec<u32> = (0..PREFILL).map(|i| 1000 + i * 7).collect();
        let began = Instant::now();
        self.network.read(&tokens)?;
        let prefill = f64::from(PREFILL) / began.elapsed().as_secs_f64();
        let began = Instant::now();
        for token in 0..DECODE {
            self.network.read(&[1000 + token])?;
        }
        let decode = f64::from(DECODE) / began.elapsed().as_secs_f64();
        self.clear_cache();
        Ok((prefill, decode))
    }

    fn clear_cache(&mut self) {
        self.network.truncate(0);
        self.cached.clear();
    }

    /// Truncates the cache to the prefix that it shares with this prompt, and returns the length of that prefix.
    fn keep_shared_prefix(&mut self, prompt: &[u32]) -> usize {
        // The last token is always read again, because its logits are needed.
        let kept = common_prefix(&self.cached, prompt).min(prompt.len().saturating_sub(1));
        self.network.truncate(kept);
        self.cached.truncate(kept);
        kept
    }

    /// Reads the prompt up to its last token and returns that token.
    fn prefill(&mut self, prompt: &[u32], listener: &dyn AnswerListener) -> Result<u32, EngineError> {
        let Some((last, before)) = prompt.split_last() else { return Err(EngineError::Stuck) };
        let fresh = before.get(self.cached.len()..).unwrap_or_default();
        for tokens in fresh.chunks(PREFILL_CHUNK) {
            if !listener.is_connected() {
                return Err(EngineError::Cancelled);
            }
            self.network.feed(tokens)?;
            self.cached.extend_from_slice(tokens);
        }
        Ok(*last)
    }

    fn write(
        &mut self,
        mut task: Task,
        last: u32,
        most: usize,
        listener: &mut dyn AnswerListener,
    ) -> Result<(FinishReason, usize), EngineError> {
        let mut sampler = Sampler::new(task.sampling);
        let mut written: Vec<u32> = Vec::new();
        let mut unread = vec![last];
        loop {
            for token in self.forced_tokens(&task)? {
                self.emit(&mut task, token, listener);
                written.push(token);
                unread.push(token);
            }
            if task.is_complete()
                || written.len() >= most
                || self.cached.len() + unread.len() >= self.context()
            {
                break;
            }
            if !listener.is_connected() {
                return Err(EngineError::Cancelled);
            }
            let logits = self.network.read(&unread)?;
            self.cached.append(&mut unread);
            let vocabulary = &self.vocabulary;
            let is_allowed = |token: u32| match vocabulary.is_end(token) {
                true => task.may_end(),
                false => {
                    vocabulary.bytes(token).is_some_and(|bytes| !bytes.is_empty() && task.allows(bytes))
                        && !sampler::would_repeat(&written, token)
                }
            };
            let token = sampler.pick(&logits, is_allowed).ok_or(EngineError::Stuck)?;
            if self.vocabulary.is_end(token) {
                return Ok((task.finish(), written.len()));
            }
            self.emit(&mut task, token, listener);
            written.push(token);
            unread.push(token);
        }
        let finish = if task.is_complete() { task.finish() } else { FinishReason::Length };
        Ok((finish, written.len()))
    }

    fn emit(&self, task: &mut Task, token: u32, listener: &mut dyn AnswerListener) {
        let bytes = self.vocabulary.bytes(token).unwrap_or_default();
        for delta in task.push(bytes) {
            listener.receive(delta);
        }
    }

    /// Tokens that the grammar forces. They are read together with the previous token.
    fn forced_tokens(&self, task: &Task) -> Result<Vec<u32>, EngineError> {
        let bytes = task.forced_bytes();
        let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(Vec::new()) };
        let mut tokens = self.vocabulary.tokens(text)?;
        // The model may merge the last forced token with the text that follows.
        if !task.would_be_complete(&bytes) {
            tokens.pop();
        }
        Ok(tokens)
    }
}

/// Length of the common prefix.
fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Network for QwenModel {
    fn context(&self) -> usize {
        self.context()
    }

    fn truncate(&mut self, length: usize) {
        self.truncate(length);
    }

    fn read(&mut self, tokens: &[u32]) -> candle_core::Result<Vec<f32>> {
        self.read(tokens)
    }

    fn feed(&mut self, tokens: &[u32]) -> candle_core::Result<()> {
        self.feed(tokens)
    }
}

impl Tokenizer for Vocabulary {
    fn is_end(&self, token: u32) -> bool {
        self.is_end(token)
    }

    fn bytes(&self, token: u32) -> Option<&[u8]> {
        self.bytes(token)
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.tokens(text)
    }

    fn prompt(&self, pieces: &[PromptPiece]) -> Result<Vec<u32>, VocabularyError> {
        self.prompt(pieces)
    }
}

#[cfg(test)]
pub(crate) mod tests;
