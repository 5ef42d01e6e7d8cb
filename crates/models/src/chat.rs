//! Requests to models and their replies, independent of the provider. Replies are stored in this form for ever: fields
//! may be added but never removed or renamed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request for one turn of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The system prompt. It and the tools rarely change and are cached where the provider supports that.
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    /// Maximum tokens of the answer.
    pub max_output: u32,
    #[serde(default)]
    pub answer: AnswerForm,
}

/// The required form of the answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum AnswerForm {
    /// Text, tool calls, or both.
    #[default]
    Any,
    /// At least one tool call.
    Call,
    /// JSON that matches this schema, without tool calls.
    Json { schema: Value },
}

/// The definition of a tool, as sent to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of the input, which is an object.
    pub input: Value,
}

/// One message of the conversation so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Message {
    User {
        text: String,
    },
    Model {
        text: String,
        calls: Vec<ToolCall>,
    },
    /// One result for every call of the previous turn, in any order.
    Tools {
        results: Vec<ToolResult>,
    },
}

/// A tool call by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call, or ours if the provider sent none.
    pub id: String,
    pub tool: String,
    pub input: Value,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub id: String,
    pub tool: String,
    pub text: String,
    pub failed: bool,
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub stop: StopReason,
    pub usage: Usage,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is complete.
    End,
    /// The model waits for the results of its tool calls.
    Calls,
    /// The answer reached its length limit.
    Length,
    /// The provider's safety filter ended the answer.
    Refusal,
}

/// Token counts of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Generated tokens, including thinking.
    pub output: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input + self.cache_read + self.cache_write + self.output
    }
}

/// A piece of a reply while it streams. Deltas are only for display; the complete reply is authoritative.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    Text(String),
    /// Thinking before the answer, if the provider sends it.
    Thought(String),
    /// The start of a tool call.
    Call {
        tool: String,
    },
    /// A piece of that call's input.
    Input(String),
    /// The turn is being retried: discard all deltas so far.
    Restart,
}

/// Receives the deltas of a reply while it streams.
pub type DeltaListener = Arc<dyn Fn(Delta) + Send + Sync>;
