//! How much of what a model can read at once something takes; rather too much than too little.

use crate::chat::{AnswerForm, Delta, Message, Request};

/// Bytes of a token. In prose it has four; fewer than three only in numbers and the like.
pub const BYTES_OF_A_TOKEN: usize = 3;

/// Bytes for what holds a message together, a tool, and a call or its result, whose ids every provider makes otherwise.
const MESSAGE: usize = 30;
const TOOL: usize = 60;
const CALL: usize = 90;

impl Message {
    /// Bytes of it, with some for what holds it together.
    pub fn size(&self) -> usize {
        let content = match self {
            Self::User { text } => text.len(),
            Self::Model { text, calls } => {
                let calls = calls.iter().map(|call| call.tool.len() + call.input.to_string().len() + CALL);
                text.len() + calls.sum::<usize>()
            }
            Self::Tools { results } => results.iter().map(|result| result.text.len() + CALL).sum(),
        };
        content + MESSAGE
    }
}

impl Delta {
    /// Bytes of it, as they are paid for.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) | Self::Input(text) => text.len(),
            Self::Call { tool } => tool.len() + TOOL,
            Self::Restart => 0,
        }
    }
}

impl Request {
    /// Tokens of it.
    pub fn tokens(&self) -> u64 {
        let messages: usize = self.messages.iter().map(Message::size).sum();
        let tools: usize = (self.tools.iter())
            .map(|tool| tool.name.len() + tool.description.len() + tool.input.to_string().len() + TOOL)
            .sum();
        let form = match &self.answer {
            AnswerForm::Any | AnswerForm::Call => 0,
            AnswerForm::Json { schema } => schema.to_string().len() + 200,
        };
        (self.system.len() + messages + tools + form).div_ceil(BYTES_OF_A_TOKEN) as u64
    }
}
