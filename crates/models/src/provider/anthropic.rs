//! Anthropic's messages, streamed as server-sent events.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Failure, Post, Protocol, RawCall, RawReply, Reader, Target, claude_body, http, refusal, sse};
use crate::chat::{Delta, Request, Stop, Usage};

pub(super) struct Anthropic;

impl Protocol for Anthropic {
    fn post(&self, target: &Target<'_>, request: &Request) -> Result<Post, Failure> {
        let mut body = claude_body::body(target, request);
        body.insert("model".into(), target.model.id.clone().into());
        body.insert("stream".into(), true.into());
        claude_body::lay_over(&mut body, target);
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        http::authorize(&mut headers, target)?;
        http::post(target, "v1/messages", headers, &body.into())
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(AnthropicReader::default())
    }
}

#[derive(Default)]
struct AnthropicReader {
    events: sse::Events,
    message: Claude,
}

impl Reader for AnthropicReader {
    fn read(&mut self, bytes: &[u8], heard: &mut Vec<Delta>) -> Result<bool, Failure> {
        let mut is_more = false;
        for event in self.events.push(bytes) {
            is_more |= self.message.take(event.data.as_bytes(), heard)?;
        }
        Ok(is_more)
    }

    fn is_done(&self) -> bool {
        self.message.is_done
    }

    fn finish(self: Box<Self>) -> Result<RawReply, Failure> {
        self.message.finish()
    }
}

/// An answer of Claude's while it arrives, event by event; Bedrock sends the same ones in frames.
#[derive(Default)]
pub(super) struct Claude {
    blocks: BTreeMap<u64, Block>,
    stop: Option<Stop>,
    usage: Option<Usage>,
    pub(super) is_done: bool,
}

enum Block {
    Text(String),
    Call(RawCall),
    /// Thoughts, and what comes with servers' own tools.
    Other,
}

/// Events and blocks that are not known are passed over, as Anthropic asks.
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
        delta: Change,
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
enum Change {
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

impl Claude {
    /// Takes the next event. True unless it is only a sign of life.
    pub(super) fn take(&mut self, data: &[u8], heard: &mut Vec<Delta>) -> Result<bool, Failure> {
        match serde_json::from_slice(data).map_err(Failure::garbled)? {
            Event::MessageStart { message } => self.count(&message["usage"]),
            Event::ContentBlockStart { index, content_block } => self.begin(index, &content_block, heard),
            Event::ContentBlockDelta { index, delta } => self.change(index, delta, heard),
            Event::MessageDelta { delta, usage } => {
                self.stop = delta["stop_reason"].as_str().map(stop).or(self.stop);
                self.count(&usage.unwrap_or_default());
            }
            Event::MessageStop => self.is_done = true,
            Event::Ping => return Ok(false),
            Event::Error => return Err(refusal::of_event(None, data)),
            Event::Unknown => {}
        }
        Ok(true)
    }

    fn begin(&mut self, index: u64, block: &Value, heard: &mut Vec<Delta>) {
        let word = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let block = match block["type"].as_str() {
            Some("text") => Block::Text(word("text")),
            Some("tool_use") => {
                heard.push(Delta::Call { tool: word("name") });
                Block::Call(RawCall { id: word("id"), tool: word("name"), input: String::new() })
            }
            Some(_) | None => Block::Other,
        };
        self.blocks.insert(index, block);
    }

    fn change(&mut self, index: u64, change: Change, heard: &mut Vec<Delta>) {
        match (self.blocks.get_mut(&index), change) {
            (Some(Block::Text(all)), Change::TextDelta { text }) => {
                all.push_str(&text);
                heard.push(Delta::Text(text));
            }
            (Some(Block::Call(call)), Change::InputJsonDelta { partial_json })
                if !partial_json.is_empty() =>
            {
                call.input.push_str(&partial_json);
                heard.push(Delta::Input(partial_json));
            }
            (_, Change::ThinkingDelta { thinking }) if !thinking.is_empty() => {
                heard.push(Delta::Thought(thinking))
            }
            (Some(_) | None, _) => {}
        }
    }

    /// Counts are totals so far: a later one replaces an earlier one, and what it leaves out stays.
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

    pub(super) fn finish(self) -> Result<RawReply, Failure> {
        let (true, Some(stop)) = (self.is_done, self.stop) else { return Err(Failure::cut()) };
        let mut text = String::new();
        let mut calls = Vec::new();
        for block in self.blocks.into_values() {
            match block {
                Block::Text(part) => text.push_str(&part),
                // A call without any input has no delta.
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

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_use" => Stop::Calls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refusal,
        // `end_turn`, `stop_sequence`, and what may come to be.
        _ => Stop::End,
    }
}

#[cfg(test)]
mod tests;
