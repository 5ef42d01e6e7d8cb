//! One reply of the model, before a protocol gives it its form.

use sha2::{Digest, Sha256};

use crate::{
    choice::Cue,
    conversation::{Conversation, tokens},
    script::{Fault, Usage},
};

/// What the model says.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) model: String,
    /// What tells it from other replies; the ids of the message and of its calls are made of it.
    pub(crate) tag: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<ReplyCall>,
    pub(crate) usage: Usage,
    pub(crate) stop: Stop,
}

#[derive(Debug)]
pub(crate) struct ReplyCall {
    pub(crate) tool: String,
    /// JSON, unless the script wants it broken.
    pub(crate) arguments: String,
}

/// Why the model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    Calls,
    Length,
    Refusal,
}

impl Reply {
    pub(crate) fn new(cue: &Cue<'_>, asked: &Conversation, fault: Option<Fault>) -> Self {
        let step = cue.step;
        let mut calls: Vec<ReplyCall> = step
            .calls
            .iter()
            .map(|call| ReplyCall {
                tool: call.tool.clone(),
                arguments: serde_json::Value::Object(call.input.clone()).to_string(),
            })
            .collect();
        let spoken = step.text.len() + calls.iter().map(|call| call.arguments.len()).sum::<usize>();
        let guessed = Usage { input: asked.tokens(), output: tokens(spoken), ..Usage::default() };
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
        let tag = tag(cue, asked);
        Self { model: asked.model.clone(), tag, text, calls, usage: step.usage.unwrap_or(guessed), stop }
    }

    /// The id of one of its calls, in the alphabet that every provider allows.
    pub(crate) fn call_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}{}_{index}", self.tag)
    }
}

/// A closing brace is what weak models and cut streams leave out.
fn break_json(calls: &mut [ReplyCall]) {
    if let Some(call) = calls.first_mut() {
        call.arguments.pop();
        call.arguments.push_str(", \"");
    }
}

/// The same for the same request, another one for a conversation that began otherwise.
fn tag(cue: &Cue<'_>, asked: &Conversation) -> String {
    let hash = Sha256::digest(asked.first.as_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let name: String = cue.agent.name().chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    format!("01{hash}_{name}{}_{}", cue.place.agent, asked.taken)
}

/// A text in several parts, as it comes out of a model. No part is empty, and none splits a character.
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
