//! `llm.*`: what models answered, and what it cost.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, OpId, Seq, TaskId};

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tokens {
    /// Read anew.
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

/// A call that a model wants to be made, with the id that its operation will have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedCall {
    pub call: OpId,
    pub tool: Box<str>,
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyEnd {
    /// With everything said.
    #[default]
    Whole,
    /// Where it became too long.
    Cut,
    /// The provider would not let it go on.
    Refused,
    /// Before it said anything.
    Empty,
}

impl ReplyEnd {
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// A model answered. Nothing acts on the answer before this is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmReply {
    pub task: TaskId,
    /// Which model, by its name in the catalog.
    pub model: Box<str>,
    /// The newest event that it had been told of.
    pub seen: Seq,
    /// The reply as JSON.
    pub reply: ContentRef,
    #[serde(default, skip_serializing_if = "ReplyEnd::is_whole")]
    pub ended: ReplyEnd,
    /// In the order of the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<WantedCall>,
    pub tokens: Tokens,
    /// Millionths of a dollar, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    pub millis: u64,
    /// How often it was asked.
    pub attempts: u32,
}

/// No model answered, though all means were tried, or nobody waited for its answer any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmFail {
    pub task: TaskId,
    pub model: Box<str>,
    /// A sentence for the person.
    pub reason: Box<str>,
    /// What was taken nevertheless, by answers that made no sense or were let go of.
    #[serde(default, skip_serializing_if = "Tokens::is_none")]
    pub tokens: Tokens,
    /// Millionths of a dollar, if anything was taken and its price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
}

events! {
    /// What models answered, and what it cost.
    LlmEvent {
        /// A model answered.
        "llm.reply" v 1 Final => Reply(LlmReply),
        /// No model answered, though all means were tried, or nobody waited for its answer any more.
        "llm.fail" v 1 Final => Fail(LlmFail),
    }
}
