//! OpenAI's chat completions, streamed as server-sent events, with the dialects of those who speak them too: calls
//! without ids or places, inputs that are objects, counts inside a choice, thoughts under other names.

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use super::{Failure, Post, Protocol, RawCall, RawReply, Reader, Target, http, openai_body, refusal, sse};
use crate::chat::{Delta, Request, Stop, Usage};

const END: &str = "[DONE]";

pub(super) struct OpenAi;

impl Protocol for OpenAi {
    fn post(&self, target: &Target<'_>, request: &Request) -> Result<Post, Failure> {
        let mut headers = HeaderMap::new();
        http::authorize(&mut headers, target)?;
        http::post(target, "chat/completions", headers, &openai_body::body(target, request).into())
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(OpenAiReader::default())
    }
}

#[derive(Default)]
struct OpenAiReader {
    events: sse::Events,
    text: String,
    calls: Vec<Slot>,
    stop: Option<Stop>,
    usage: Option<Usage>,
    is_done: bool,
}

/// A call, and the place under which its parts arrive.
struct Slot {
    index: Option<u64>,
    call: RawCall,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Part>,
    finish_reason: Option<String>,
    /// Moonshot counts here.
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Part {
    content: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallPart>>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct CallPart {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPart>,
}

#[derive(Deserialize, Default)]
struct FunctionPart {
    name: Option<String>,
    arguments: Option<Value>,
}

impl Reader for OpenAiReader {
    fn read(&mut self, bytes: &[u8], heard: &mut Vec<Delta>) -> Result<bool, Failure> {
        let events = self.events.push(bytes);
        for event in &events {
            match event.data.trim() {
                END => self.is_done = true,
                data => self.take(data, heard)?,
            }
        }
        Ok(!events.is_empty())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn finish(self: Box<Self>) -> Result<RawReply, Failure> {
        let (true, Some(stop)) = (self.is_done, self.stop) else { return Err(Failure::cut()) };
        let calls: Vec<RawCall> = self.calls.into_iter().map(|slot| slot.call).collect();
        // Some servers say "stop" after calls.
        let stop = if stop == Stop::End && !calls.is_empty() { Stop::Calls } else { stop };
        Ok(RawReply { text: without_thoughts(&self.text).into(), calls, stop, usage: self.usage })
    }
}

impl OpenAiReader {
    fn take(&mut self, data: &str, heard: &mut Vec<Delta>) -> Result<(), Failure> {
        let chunk: Chunk = serde_json::from_str(data).map_err(Failure::garbled)?;
        if chunk.error.is_some() {
            return Err(refusal::of_event(None, data.as_bytes()));
        }
        self.count(chunk.usage.as_ref());
        // Only one answer was asked for.
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(()) };
        self.count(choice.usage.as_ref());
        if let Some(part) = choice.delta {
            self.hear(part, heard);
        }
        self.stop = choice.finish_reason.as_deref().map(stop).or(self.stop);
        Ok(())
    }

    fn hear(&mut self, part: Part, heard: &mut Vec<Delta>) {
        let thought = part.reasoning_content.or(part.reasoning).filter(|thought| !thought.is_empty());
        heard.extend(thought.map(Delta::Thought));
        if let Some(text) = part.content.filter(|text| !text.is_empty()) {
            self.text.push_str(&text);
            heard.push(Delta::Text(text));
        }
        if let Some(refusal) = part.refusal.filter(|refusal| !refusal.is_empty()) {
            self.text.push_str(&refusal);
            self.stop = Some(Stop::Refusal);
        }
        for part in part.tool_calls.unwrap_or_default() {
            self.call(part, heard);
        }
    }

    fn call(&mut self, part: CallPart, heard: &mut Vec<Delta>) {
        let function = part.function.unwrap_or_default();
        let id = part.id.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let slot = match self.slot(part.index, &id, &name) {
            Some(slot) => slot,
            None => {
                self.calls.push(Slot { index: part.index, call: RawCall { id, ..RawCall::default() } });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[slot].call;
        if !name.is_empty() && call.tool.is_empty() {
            heard.push(Delta::Call { tool: name.clone() });
            call.tool = name;
        }
        match function.arguments {
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => {
                call.input.push_str(&text);
                heard.push(Delta::Input(text));
            }
            Some(Value::Null) | None => {}
            Some(whole @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_))) => {
                call.input = whole.to_string();
                heard.push(Delta::Input(call.input.clone()));
            }
        }
    }

    /// The call that a part belongs to. A part with an id of its own begins a new one, even where a server gives every
    /// call the same place; without a place, so does a part with a name.
    fn slot(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let slot = match index {
            Some(_) => self.calls.iter().rposition(|slot| slot.index == index)?,
            None if name.is_empty() => self.calls.len().checked_sub(1)?,
            None => return None,
        };
        let own = &self.calls[slot].call.id;
        (id.is_empty() || own.is_empty() || own == id).then_some(slot)
    }

    fn count(&mut self, counts: Option<&Value>) {
        let Some(counts) = counts.filter(|counts| counts.is_object()) else { return };
        let number = |value: &Value| value.as_u64();
        let input = number(&counts["prompt_tokens"]).unwrap_or_default();
        let details = &counts["prompt_tokens_details"];
        let cached = number(&details["cached_tokens"]).or_else(|| number(&counts["cached_tokens"]));
        let cached = cached.unwrap_or_default().min(input);
        let written = number(&details["cache_write_tokens"]).unwrap_or_default().min(input - cached);
        self.usage = Some(Usage {
            input: input - cached - written,
            cache_read: cached,
            cache_write: written,
            output: number(&counts["completion_tokens"]).unwrap_or_default(),
        });
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_calls" | "function_call" => Stop::Calls,
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => Stop::Length,
        "content_filter" | "sensitive" | "refusal" => Stop::Refusal,
        // `stop`, `eos`, and whatever else they call it.
        _ => Stop::End,
    }
}

/// Some servers leave the thoughts in the text.
fn without_thoughts(text: &str) -> &str {
    match text.trim_start().strip_prefix("<think>").and_then(|rest| rest.split_once("</think>")) {
        Some((_, answer)) => answer.trim_start(),
        None => text,
    }
}

#[cfg(test)]
mod tests;
