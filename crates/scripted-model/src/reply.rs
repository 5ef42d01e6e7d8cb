//! A reply of the model, before a protocol formats it.

use sha2::{Digest, Sha256};

use crate::{
    conversation::{Conversation, tokens},
    script::{Fault, Usage},
    step_choice::ChosenStep,
};

/// A reply of the model.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) model: String,
    /// Distinguishes this reply from others; part of the ids of the message and its calls.
    pub(crate) tag: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<ReplyCall>,
    pub(crate) usage: Usage,
    pub(crate) stop: Stop,
}

#[derive(Debug)]
pub(crate) struct ReplyCall {
    pub(crate) tool: String,
    /// JSON, unless the script breaks it.
    pub(crate) arguments: String,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    Calls,
    Length,
    Refusal,
}

impl Reply {
    pub(crate) fn new(chosen: &ChosenStep<'_>, conversation: &Conversation, fault: Option<Fault>) -> Self {
        let step = chosen.step;
        let mut calls: Vec<ReplyCall> = step
            .calls
            .iter()
            .map(|call| ReplyCall {
                tool: call.tool.clone(),
                arguments: serde_json::Value::Object(call.input.clone()).to_string(),
            })
            .collect();
        let output_bytes = step.text.len() + calls.iter().map(|call| call.arguments.len()).sum::<usize>();
        let estimated =
            Usage { input: conversation.tokens(), output: tokens(output_bytes), ..Usage::default() };
        let mut text = step.text.clone();
        let mut stop = if calls.is_empty() { Stop::End } else { Stop::Calls };
        match fault {
            Some(Fault::BadJson) => break_json(&mut calls),
            Some(Fault::Refuse) => (stop, calls) = (Stop::Refusal, Vec::new()),
            Some(Fault::Length) => {
                (stop, calls) = (Stop::Length, Vec::new());
                text = text.chars().take(text.chars().count().div_ceil(2)).collect();
            }
            _ => {}
        }
        let tag = tag(chosen, conversation);
        Self {
            model: conversation.model.clone(),
            tag,
            text,
            calls,
            usage: step.usage.unwrap_or(estimated),
            stop,
        }
    }

    /// The id of a call, in characters that every provider allows.
    pub(crate) fn call_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}{}_{index}", self.tag)
    }
}

/// Breaks the JSON like weak models and truncated streams do: the closing brace is missing.
fn break_json(calls: &mut [ReplyCall]) {
    if let Some(call) = calls.first_mut() {
        call.arguments.pop();
        call.arguments.push_str(", \"");
    }
}

/// The same for the same request, and different for conversations with another first message.
fn tag(chosen: &ChosenStep<'_>, conversation: &Conversation) -> String {
    let hash = Sha256::digest(conversation.first.as_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let name: String = chosen.agent.name().chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    format!("01{hash}_{name}{}_{}", chosen.id.agent, conversation.assistant_turns)
}

/// Splits a text into parts, as a model streams it. No part is empty or splits a character.
pub(crate) fn fragments(text: &str) -> impl Iterator<Item = &str> {
    let size = text.len().div_ceil(5).clamp(1, 200);
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (part, left) = rest.split_at(end);
        rest = left;
        (!part.is_empty()).then_some(part)
    })
}
