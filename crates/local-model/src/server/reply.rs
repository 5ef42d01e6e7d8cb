//! Formats an answer as OpenAI's chat completion, complete or in chunks.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::answer::AnswerDelta;
use crate::engine::AnswerOutcome;
use crate::wire;
use crate::worker::AnswerEvent;

/// The answer so far.
#[derive(Debug)]
pub(super) struct Reply {
    id: String,
    created: u64,
    model: String,
    text: String,
    call: Option<(String, String)>,
}

impl Reply {
    pub(super) fn new(model: String) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or(0);
        Self { id: random_id(), created, model, text: String::new(), call: None }
    }

    pub(super) fn opening(&mut self) -> String {
        self.chunk(json!({ "role": "assistant", "content": "" }), Value::Null)
    }

    /// The chunks for an event, and whether they are the last.
    pub(super) fn chunks(&mut self, event: Option<AnswerEvent>) -> (Vec<String>, bool) {
        match event {
            Some(AnswerEvent::Accepted) => (Vec::new(), false),
            Some(AnswerEvent::Delta(delta)) => (vec![self.delta(delta)], false),
            Some(AnswerEvent::Done(outcome)) => {
                let last = self.chunk(json!({}), json!(outcome.finish));
                let usage = self.envelope("chat.completion.chunk", json!([]), Some(&outcome));
                (vec![last, usage.to_string(), "[DONE]".into()], true)
            }
            Some(AnswerEvent::Failed(error)) => (vec![broken(&with_causes(&error))], true),
            None => (vec![broken("the model has stopped")], true),
        }
    }

    pub(super) fn collect(&mut self, delta: AnswerDelta) {
        match delta {
            AnswerDelta::Text(text) => self.text.push_str(&text),
            AnswerDelta::Call { name } => self.call = Some((name, String::new())),
            AnswerDelta::Arguments(more) => {
                if let Some((_, arguments)) = &mut self.call {
                    arguments.push_str(&more);
                }
            }
        }
    }

    pub(super) fn whole(&self, outcome: &AnswerOutcome) -> Value {
        let mut message = json!({ "role": "assistant", "content": self.text });
        if let Some((name, arguments)) = &self.call {
            let function = json!({ "name": name, "arguments": arguments });
            message["content"] = Value::Null;
            message["tool_calls"] =
                json!([{ "id": self.call_id(), "type": "function", "function": function }]);
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": outcome.finish });
        self.envelope("chat.completion", json!([choice]), Some(outcome))
    }

    fn delta(&self, delta: AnswerDelta) -> String {
        let delta = match delta {
            AnswerDelta::Text(text) => json!({ "content": text }),
            AnswerDelta::Call { name } => {
                let function = json!({ "name": name, "arguments": "" });
                let id = self.call_id();
                json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
            }
            AnswerDelta::Arguments(arguments) => {
                json!({ "tool_calls": [{ "index": 0, "function": { "arguments": arguments } }] })
            }
        };
        self.chunk(delta, Value::Null)
    }

    fn chunk(&self, delta: Value, finish: Value) -> String {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        self.envelope("chat.completion.chunk", json!([choice]), None).to_string()
    }

    fn envelope(&self, object: &str, choices: Value, outcome: Option<&AnswerOutcome>) -> Value {
        let mut envelope = json!({
            "id": format!("chatcmpl-{}", self.id),
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if let Some(outcome) = outcome {
            envelope["usage"] = outcome.usage.json();
            envelope["timings"] = outcome.usage.timings();
        }
        envelope
    }

    fn call_id(&self) -> String {
        format!("call_{}", self.id)
    }
}

fn broken(message: &str) -> String {
    wire::error("server_error", "model_failed", message).to_string()
}

/// An error with its causes.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn random_id() -> String {
    let mut bytes = [0; 12];
    // The id need not be unique: nothing is looked up by it.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
