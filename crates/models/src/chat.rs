//! What is said to a model and what it answers, whoever serves it. Replies are kept in this form for ever, so fields
//! are only ever added.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One turn to take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What the model is told before everything else. It and the tools change rarely, and are cached where that is offered.
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    /// Tokens that the answer may take at most.
    pub max_output: u32,
    #[serde(default)]
    pub answer: AnswerForm,
}

/// What the answer has to look like.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum AnswerForm {
    /// Text, calls, or both.
    #[default]
    Any,
    /// At least one call.
    Call,
    /// JSON of this schema, and no call.
    Json { schema: Value },
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub input: Value,
}

/// One turn that was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Message {
    User {
        text: String,
    },
    Model {
        text: String,
        calls: Vec<Call>,
    },
    /// An answer to every call of the turn before, in any order.
    Tools {
        results: Vec<CallResult>,
    },
}

/// A model wants a tool to be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's own name for it, or ours where it gave none.
    pub id: String,
    pub tool: String,
    pub input: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    pub id: String,
    pub tool: String,
    pub text: String,
    pub failed: bool,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<Call>,
    pub stop: Stop,
    pub usage: Usage,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It had said everything.
    End,
    /// It wants its calls answered.
    Calls,
    /// The answer became too long.
    Length,
    /// The provider would not let it go on.
    Refusal,
}

/// Tokens of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Read anew: neither from a cache nor into one.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Written, with whatever it thought before.
    pub output: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input + self.cache_read + self.cache_write + self.output
    }
}

/// Something arrived. It is shown and forgotten: only the whole reply counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    Text(String),
    /// What it thinks before it answers, where the provider shows that.
    Thought(String),
    /// It begins to call a tool.
    Call {
        tool: String,
    },
    /// A piece of what that tool is given.
    Input(String),
    /// What came so far is void: the turn is tried again.
    Restart,
}

/// Whoever listens to a turn being taken.
pub type Listener = Arc<dyn Fn(Delta) + Send + Sync>;
