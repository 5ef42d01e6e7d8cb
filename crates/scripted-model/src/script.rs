//! Scripts: what the model answers, as data. The crate documentation describes the format.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// Why a script is invalid.
#[derive(Debug, Error)]
pub enum ScriptError {
    #[error("the script is not valid")]
    Toml(#[from] toml::de::Error),
    #[error("agent {agent} (`{role}`), step {step}: {problem}")]
    Step { agent: usize, role: String, step: usize, problem: &'static str },
}

/// The answers of every agent in one scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// With several scripts, the one whose objective is in the first message is played.
    pub objective: Option<String>,
    /// A message with this text asks the agent to repeat its last turn.
    pub again: Option<String>,
    /// The number before this text in the first message is the number of omitted turns.
    pub left_out: Option<String>,
    /// The context size of the model in tokens.
    pub context: Option<u64>,
    #[serde(rename = "agent", default)]
    pub agents: Vec<Agent>,
}

/// The script of one agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Matches "You are the <role>" in the system prompt; without it, every prompt.
    pub role: Option<String>,
    /// Text that the first message must contain.
    pub when: Option<String>,
    #[serde(rename = "step", default)]
    pub steps: Vec<ScriptedTurn>,
}

/// One assistant turn.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedTurn {
    pub text: String,
    pub calls: Vec<Call>,
    pub usage: Option<Usage>,
    pub fault: Option<Fault>,
    /// How often the fault happens before the step is played; 1 by default.
    pub times: Option<u32>,
    /// Seconds, for `rate_limit`.
    pub retry_after: Option<u64>,
    /// Before the first byte; with `slow`, between chunks.
    pub delay_ms: u64,
    pub expect: Vec<String>,
    pub expect_not: Vec<String>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub tool: String,
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// Token counts of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// A fault that happens before the step is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    RateLimit,
    Overloaded,
    Auth,
    BadRequest,
    ContextTooLong,
    ServerError,
    /// The stream ends in the middle of an event.
    Cut,
    /// The stream ends after its head, before its first event.
    CutAtOnce,
    /// The provider reports an error inside the stream.
    StreamError,
    /// The input of the first call is not JSON.
    BadJson,
    /// Half an event at a time, `delay_ms` apart.
    Slow,
    /// No answer until the client disconnects.
    Silent,
    /// The provider's filter ends the reply.
    Refuse,
    /// The reply ends at the token limit.
    Length,
}

impl Script {
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self = toml::from_str(text)?;
        for (agent, part) in script.agents.iter().enumerate() {
            for (step, content) in part.steps.iter().enumerate() {
                if let Some(problem) = content.problem() {
                    return Err(ScriptError::Step { agent, role: part.name().into(), step, problem });
                }
            }
        }
        Ok(script)
    }
}

impl Agent {
    /// The name in messages.
    pub fn name(&self) -> &str {
        self.role.as_deref().unwrap_or("any")
    }
}

impl ScriptedTurn {
    /// Rejects keys that do not make sense together.
    fn problem(&self) -> Option<&'static str> {
        match self.fault {
            None if self.times.is_some() => Some("`times` needs a `fault`"),
            Some(Fault::BadJson) if self.calls.is_empty() => Some("`bad_json` needs a call to break"),
            Some(Fault::Slow) if self.delay_ms == 0 => Some("`slow` needs `delay_ms`"),
            fault if self.retry_after.is_some() && fault != Some(Fault::RateLimit) => {
                Some("`retry_after` belongs to `rate_limit`")
            }
            _ => None,
        }
    }
}
