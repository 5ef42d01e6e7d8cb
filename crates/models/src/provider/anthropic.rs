//! Anthropic's Messages API, streamed as server-sent events.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    HttpPost, ProviderError, RawCall, RawReply, ReplyReader, RequestTarget, WireProtocol, claude_body,
    error_response, http, sse,
};
use crate::chat::{ChatRequest, Delta, StopReason, Usage};

pub(super) struct Anthropic;

impl WireProtocol for Anthropic {
    fn post(&self, target: &RequestTarget<'_>, request: &ChatRequest) -> Result<HttpPost, ProviderError> {
        let mut body = claude_body::body(target, request);
        body.insert("model".into(), target.model.id.clone().into());
        body.insert("stream".into(), true.into());
        claude_body::set_extra_fields(&mut body, target);
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        http::authorize(&mut headers, target)?;
        http::post(target, "v1/messages", headers, &body.into())
    }

    fn reader(&self) -> Box<dyn ReplyReader> {
        Box::new(AnthropicReader::default())
    }
}

#[derive(Default)]
struct AnthropicReader {
    events: sse::EventDecoder,
    message: ClaudeMessage,
}

impl ReplyReader for AnthropicReader {
    fn read(&mut self, bytes: &[u8], deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        let mut has_event = false;
        for event in self.events.push(bytes) {
            has_event |= self.message.take(event.data.as_bytes(), deltas)?;
        }
        Ok(has_event)
    }

    fn is_done(&self) -> bool {
        self.message.is_done
    }

    fn finish(self: Box<Self>) -> Result<RawReply, ProviderError> {
        self.message.finish()
    }
}

/// Assembles an answer of Claude from its events. Bedrock sends the same events inside frames.
#[derive(Default)]
pub(super) struct ClaudeMessage {
    blocks: BTreeMap<u64, Block>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    pub(super) is_done: bool,
}

enum Block {
    Text(String),
    Call(RawCall),
    /// Thinking, and blocks of server-side tools.
    Other,
}

/// Unknown events and blocks are ignored, as Anthropic's documentation requires.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Value,
    },
    ContentBlockStart {
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u64,
        delta: BlockDelta,
    },
    MessageDelta {
        delta: Value,
        usage: Option<Value>,
    },
    MessageStop,
    Ping,
    Error,
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Unknown,
}

impl ClaudeMessage {
    /// Applies the next event. Returns false for a keep-alive.
    pub(super) fn take(&mut self, data: &[u8], deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        match serde_json::from_slice(data).map_err(ProviderError::malformed)? {
            Event::MessageStart { message } => self.count(&message["usage"]),
            Event::ContentBlockStart { index, content_block } => {
                self.start_block(index, &content_block, deltas)
            }
            Event::ContentBlockDelta { index, delta } => self.apply_delta(index, delta, deltas),
            Event::MessageDelta { delta, usage } => {
                self.stop = delta["stop_reason"].as_str().map(stop_reason).or(self.stop);
                self.count(&usage.unwrap_or_default());
            }
            Event::MessageStop => self.is_done = true,
            Event::Ping => return Ok(false),
            Event::Error => return Err(error_response::from_event(None, data)),
            Event::Unknown => {}
        }
        Ok(true)
    }

    fn start_block(&mut self, index: u64, block: &Value, deltas: &mut Vec<Delta>) {
        let field = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let block = match block["type"].as_str() {
            Some("text") => Block::Text(field("text")),
            Some("tool_use") => {
                deltas.push(Delta::Call { tool: field("name") });
                Block::Call(RawCall { id: field("id"), tool: field("name"), input: String::new() })
            }
            Some(_) | None => Block::Other,
        };
        self.blocks.insert(index, block);
    }

    fn apply_delta(&mut self, index: u64, delta: BlockDelta, deltas: &mut Vec<Delta>) {
        match (self.blocks.get_mut(&index), delta) {
            (Some(Block::Text(all)), BlockDelta::TextDelta { text }) => {
                all.push_str(&text);
                deltas.push(Delta::Text(text));
            }
            (Some(Block::Call(call)), BlockDelta::InputJsonDelta { partial_json })
                if !partial_json.is_empty() =>
            {
                call.input.push_str(&partial_json);
                deltas.push(Delta::Input(partial_json));
            }
            (_, BlockDelta::ThinkingDelta { thinking }) if !thinking.is_empty() => {
                deltas.push(Delta::Thought(thinking))
            }
            (Some(_) | None, _) => {}
        }
    }

    /// Updates the usage. The counts are running totals: later values replace earlier ones, and missing fields keep theirs.
    fn count(&mut self, counts: &Value) {
        if !counts.is_object() {
            return;
        }
        let usage = self.usage.get_or_insert_default();
        let set = |field: &mut u64, key: &str| *field = counts[key].as_u64().unwrap_or(*field);
        set(&mut usage.input, "input_tokens");
        set(&mut usage.output, "output_tokens");
        set(&mut usage.cache_read, "cache_read_input_tokens");
        set(&mut usage.cache_write, "cache_creation_input_tokens");
    }

    pub(super) fn finish(self) -> Result<RawReply, ProviderError> {
        let (true, Some(stop)) = (self.is_done, self.stop) else { return Err(ProviderError::truncated()) };
        let mut text = String::new();
        let mut calls = Vec::new();
        for block in self.blocks.into_values() {
            match block {
                Block::Text(part) => text.push_str(&part),
                // A call without input has no delta.
                Block::Call(call) if call.input.trim().is_empty() => {
                    calls.push(RawCall { input: json!({}).to_string(), ..call });
                }
                Block::Call(call) => calls.push(call),
                Block::Other => {}
            }
        }
        Ok(RawReply { text, calls, stop, usage: self.usage })
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "tool_use" => StopReason::Calls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refusal,
        // `end_turn`, `stop_sequence`, and future reasons.
        _ => StopReason::End,
    }
}

#[cfg(test)]
mod tests;
