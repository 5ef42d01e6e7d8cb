//! The supported subset of OpenAI's chat completions.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CompletionRequest {
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) model: String,
    pub(crate) messages: Vec<Message>,
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) tools: Vec<Tool>,
    #[serde(default)]
    pub(crate) tool_choice: Option<ToolChoice>,
    #[serde(default)]
    pub(crate) response_format: Option<ResponseFormat>,
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) stream: bool,
    #[serde(default)]
    pub(crate) max_tokens: Option<u32>,
    #[serde(default)]
    pub(crate) max_completion_tokens: Option<u32>,
    #[serde(default)]
    pub(crate) temperature: Option<f32>,
    #[serde(default)]
    pub(crate) top_p: Option<f32>,
    #[serde(default)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Message {
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) content: Option<Content>,
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Part {
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) text: String,
}

impl Message {
    pub(crate) fn is_system(&self) -> bool {
        self.role == "system" || self.role == "developer"
    }

    pub(crate) fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => parts.iter().map(|part| part.text.as_str()).collect(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) function: CalledFunction,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CalledFunction {
    pub(crate) name: String,
    pub(crate) arguments: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tool {
    pub(crate) function: Function,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Function {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) description: String,
    #[serde(default = "no_parameters", deserialize_with = "or_no_parameters")]
    pub(crate) parameters: Value,
}

/// Treats `null` like a missing field.
fn or_null<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

fn or_no_parameters<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    Option::<Value>::deserialize(from).map(|schema| schema.unwrap_or_else(no_parameters))
}

fn no_parameters() -> Value {
    json!({ "type": "object", "properties": {} })
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum ToolChoice {
    Mode(ChoiceMode),
    One { function: NamedFunction },
}

/// Whether the model may call tools. Modes that this server does not know let the model choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChoiceMode {
    None,
    Required,
    #[serde(other)]
    Auto,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NamedFunction {
    pub(crate) name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: NamedSchema },
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NamedSchema {
    pub(crate) schema: Value,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FinishReason {
    Stop,
    Length,
    ToolCalls,
}

/// Tokens and speed of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Usage {
    pub(crate) prompt: usize,
    pub(crate) cached: usize,
    pub(crate) completion: usize,
    pub(crate) prefill_seconds: f64,
    pub(crate) decode_seconds: f64,
}

impl Usage {
    pub(crate) fn json(&self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": { "cached_tokens": self.cached },
        })
    }

    /// The timings in the format of llama.cpp's server.
    pub(crate) fn timings(&self) -> Value {
        let rate = |tokens: usize, seconds: f64| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
        json!({
            "cache_n": self.cached,
            "prompt_n": self.prompt - self.cached,
            "prompt_ms": self.prefill_seconds * 1000.0,
            "prompt_per_second": rate(self.prompt - self.cached, self.prefill_seconds),
            "predicted_n": self.completion,
            "predicted_ms": self.decode_seconds * 1000.0,
            "predicted_per_second": rate(self.completion, self.decode_seconds),
        })
    }
}

/// An error in OpenAI's format.
pub(crate) fn error(kind: &str, code: &str, message: &str) -> Value {
    json!({ "error": { "message": message, "type": kind, "code": code, "param": null } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_means_a_missing_field() {
        let request: CompletionRequest = serde_json::from_value(json!({
            "messages": [{ "role": "assistant", "content": null, "tool_calls": null }],
            "tools": [{ "function": { "name": "now", "description": null, "parameters": null } }],
            "tool_choice": null, "response_format": null, "stream": null, "max_tokens": null,
        }))
        .unwrap();
        assert_eq!(request.messages[0].text(), "");
        assert_eq!(request.tools[0].function.parameters, no_parameters());
        let none: CompletionRequest =
            serde_json::from_value(json!({ "messages": [], "tools": null })).unwrap();
        assert!(none.tools.is_empty() && !none.stream);
    }
}
