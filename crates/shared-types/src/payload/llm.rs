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
    /// Whether no further attempt will succeed, so that the agent fails.
    #[serde(default, skip_serializing_if = "is_false")]
    pub permanent: bool,
    /// Tokens that were used nevertheless, by invalid or abandoned replies.
    #[serde(default, skip_serializing_if = "Tokens::is_none")]
    pub tokens: Tokens,
    /// Millionths of a dollar, if tokens were used and their price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl LlmFail {
    /// The reason why no further attempt will succeed, if that is so.
    pub fn permanent_reason(&self) -> Option<&str> {
        // Events from before the field `permanent` say it by the first words of their reason.
        let in_older_events = self.reason.strip_prefix("given up: ");
        in_older_events.or_else(|| self.permanent.then_some(&*self.reason))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permanent_failure_is_read_from_new_and_old_events() {
        let read = |text: &str| serde_json::from_str::<LlmFail>(text).unwrap();
        let task = TaskId::from_bytes([1; 16]);
        let event = |rest: &str| read(&format!(r#"{{ "task": "{task}", "model": "m", {rest} }}"#));
        let new = event(r#""reason": "no such model", "permanent": true"#);
        let old = event(r#""reason": "given up: no such model""#);
        assert_eq!((new.permanent_reason(), old.permanent_reason()), (Some("no such model"), Some("no such model")));
        assert_eq!(event(r#""reason": "overloaded""#).permanent_reason(), None);
    }
}
