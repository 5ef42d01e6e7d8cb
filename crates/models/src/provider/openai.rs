//! OpenAI's chat completions, streamed as server-sent events, and the variations of compatible servers: calls without
//! ids or indexes, inputs that are objects, usage inside a choice, thinking under other names.

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use super::{
    HttpPost, ProviderError, RawCall, RawReply, ReplyReader, RequestTarget, WireProtocol, error_response,
    http, openai_body, sse,
};
use crate::chat::{ChatRequest, Delta, StopReason, Usage};

const END_MARKER: &str = "[DONE]";

pub(super) struct OpenAi;

impl WireProtocol for OpenAi {
    fn post(&self, target: &RequestTarget<'_>, request: &ChatRequest) -> Result<HttpPost, ProviderError> {
        let mut headers = HeaderMap::new();
        http::authorize(&mut headers, target)?;
        http::post(target, "chat/completions", headers, &openai_body::body(target, request).into())
    }

    fn reader(&self) -> Box<dyn ReplyReader> {
        Box::new(OpenAiReader::default())
    }
}

#[derive(Default)]
struct OpenAiReader {
    events: sse::EventDecoder,
    text: String,
    calls: Vec<PartialCall>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    is_done: bool,
}

/// A call that is being assembled, and the index under which its parts arrive.
struct PartialCall {
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
    delta: Option<ChoiceDelta>,
    finish_reason: Option<String>,
    /// Moonshot sends the usage here.
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct ChoiceDelta {
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

impl ReplyReader for OpenAiReader {
    fn read(&mut self, bytes: &[u8], deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        let events = self.events.push(bytes);
        for event in &events {
            match event.data.trim() {
                END_MARKER => self.is_done = true,
                data => self.take(data, deltas)?,
            }
        }
        Ok(!events.is_empty())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn finish(self: Box<Self>) -> Result<RawReply, ProviderError> {
        let (true, Some(stop)) = (self.is_done, self.stop) else { return Err(ProviderError::truncated()) };
        let calls: Vec<RawCall> = self.calls.into_iter().map(|partial| partial.call).collect();
        // Some servers send "stop" after calls.
        let stop = if stop == StopReason::End && !calls.is_empty() { StopReason::Calls } else { stop };
        Ok(RawReply { text: strip_thinking(&self.text).into(), calls, stop, usage: self.usage })
    }
}

impl OpenAiReader {
    fn take(&mut self, data: &str, deltas: &mut Vec<Delta>) -> Result<(), ProviderError> {
        let chunk: Chunk = serde_json::from_str(data).map_err(ProviderError::malformed)?;
        if chunk.error.is_some() {
            return Err(error_response::from_event(None, data.as_bytes()));
        }
        self.count(chunk.usage.as_ref());
        // We request only one choice.
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(()) };
        self.count(choice.usage.as_ref());
        if let Some(delta) = choice.delta {
            self.apply_delta(delta, deltas);
        }
        self.stop = choice.finish_reason.as_deref().map(stop_reason).or(self.stop);
        Ok(())
    }

    fn apply_delta(&mut self, delta: ChoiceDelta, deltas: &mut Vec<Delta>) {
        let thought = delta.reasoning_content.or(delta.reasoning).filter(|thought| !thought.is_empty());
        deltas.extend(thought.map(Delta::Thought));
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            self.text.push_str(&text);
            deltas.push(Delta::Text(text));
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            self.text.push_str(&refusal);
            self.stop = Some(StopReason::Refusal);
        }
        for part in delta.tool_calls.unwrap_or_default() {
            self.call(part, deltas);
        }
    }

    fn call(&mut self, part: CallPart, deltas: &mut Vec<Delta>) {
        let function = part.function.unwrap_or_default();
        let id = part.id.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let position = match self.find_call(part.index, &id, &name) {
            Some(position) => position,
            None => {
                self.calls
                    .push(PartialCall { index: part.index, call: RawCall { id, ..RawCall::default() } });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position].call;
        if !name.is_empty() && call.tool.is_empty() {
            deltas.push(Delta::Call { tool: name.clone() });
            call.tool = name;
        }
        match function.arguments {
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => {
                call.input.push_str(&text);
                deltas.push(Delta::Input(text));
            }
            Some(Value::Null) | None => {}
            Some(whole @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_))) => {
                call.input = whole.to_string();
                deltas.push(Delta::Input(call.input.clone()));
            }
        }
    }

    /// The position of the call that a part belongs to. A part with a new id starts a new call, even if the server gives
    /// every call the same index. Without an index, a part with a name starts a new call.
    fn find_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let position = match index {
            Some(_) => self.calls.iter().rposition(|partial| partial.index == index)?,
            None if name.is_empty() => self.calls.len().checked_sub(1)?,
            None => return None,
        };
        let own = &self.calls[position].call.id;
        (id.is_empty() || own.is_empty() || own == id).then_some(position)
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

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "tool_calls" | "function_call" => StopReason::Calls,
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => StopReason::Length,
        "content_filter" | "sensitive" | "refusal" => StopReason::Refusal,
        // `stop`, `eos`, and unknown reasons.
        _ => StopReason::End,
    }
}

/// Removes the thinking that some servers leave in the text.
fn strip_thinking(text: &str) -> &str {
    match text.trim_start().strip_prefix("<think>").and_then(|rest| rest.split_once("</think>")) {
        Some((_, answer)) => answer.trim_start(),
        None => text,
    }
}

#[cfg(test)]
mod tests;
