//! Estimates of token counts, rounded towards too many.

use crate::chat::{AnswerForm, ChatRequest, Delta, Message};

/// Bytes per token. Prose has about four; only numbers and similar text have fewer than three.
pub const BYTES_PER_TOKEN: usize = 3;

/// Overhead in bytes of a message, a tool definition, and a call or its result with their ids.
const MESSAGE_OVERHEAD: usize = 30;
const TOOL_OVERHEAD: usize = 60;
const CALL_OVERHEAD: usize = 90;

impl Message {
    /// Estimated bytes, including the overhead of the message.
    pub fn estimated_bytes(&self) -> usize {
        let content = match self {
            Self::User { text } => text.len(),
            Self::Model { text, calls } => {
                let calls =
                    calls.iter().map(|call| call.tool.len() + call.input.to_string().len() + CALL_OVERHEAD);
                text.len() + calls.sum::<usize>()
            }
            Self::Tools { results } => results.iter().map(|result| result.text.len() + CALL_OVERHEAD).sum(),
        };
        content + MESSAGE_OVERHEAD
    }
}

impl Delta {
    /// Estimated bytes of billed output.
    pub(crate) fn estimated_bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) | Self::Input(text) => text.len(),
            Self::Call { tool } => tool.len() + TOOL_OVERHEAD,
            Self::Restart => 0,
        }
    }
}

impl ChatRequest {
    /// Estimated tokens of the prompt.
    pub fn estimated_tokens(&self) -> u64 {
        let messages: usize = self.messages.iter().map(Message::estimated_bytes).sum();
        let tools: usize = (self.tools.iter())
            .map(|tool| {
                tool.name.len() + tool.description.len() + tool.input.to_string().len() + TOOL_OVERHEAD
            })
            .sum();
        let form = match &self.answer {
            AnswerForm::Any | AnswerForm::Call => 0,
            AnswerForm::Json { schema } => schema.to_string().len() + 200,
        };
        (self.system.len() + messages + tools + form).div_ceil(BYTES_PER_TOKEN) as u64
    }
}
