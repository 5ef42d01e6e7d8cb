//! `llm.*`: replies of models and their cost.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, OpId, Seq, TaskId};

/// The tokens of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tokens {
    /// Read without the cache.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
}

impl Tokens {
    fn is_none(&self) -> bool {
        self.total() == 0
    }

    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write).saturating_add(self.output)
    }
}

/// A tool call that a model requested, with the id that its operation will have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedCall {
    pub call: OpId,
    pub tool: Box<str>,
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyEnd {
    /// Complete.
    #[default]
    Whole,
    /// Cut at the length limit.
    Cut,
    /// Refused by the provider.
    Refused,
    /// Without any content.
    Empty,
}

impl ReplyEnd {
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// A model replied. The reply takes effect only after this is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmReply {
    pub task: TaskId,
    /// The model's name in the catalog.
    pub model: Box<str>,
    /// The newest event in its prompt.
    pub seen: Seq,
    /// The reply as JSON.
    pub reply: ContentRef,
    #[serde(default, skip_serializing_if = "ReplyEnd::is_whole")]
    pub ended: ReplyEnd,
    /// In the order of the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RequestedCall>,
    pub tokens: Tokens,
    /// Millionths of a dollar, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    pub millis: u64,
    /// The number of attempts.
    pub attempts: u32,
}

/// No model replied after all retries, or the reply was not needed any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmFail {
    pub task: TaskId,
    pub model: Box<str>,
    /// The reason, for the person.
    pub reason: Box<str>,
    /// Tokens that were used nevertheless, by invalid or abandoned replies.
    #[serde(default, skip_serializing_if = "Tokens::is_none")]
    pub tokens: Tokens,
    /// Millionths of a dollar, if tokens were used and their price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
}

events! {
    /// Replies of models and their cost.
    LlmEvent {
        /// A model replied.
        "llm.reply" v 1 Final => Reply(LlmReply),
        /// No model replied after all retries, or the reply was not needed any more.
        "llm.fail" v 1 Final => Fail(LlmFail),
    }
}
