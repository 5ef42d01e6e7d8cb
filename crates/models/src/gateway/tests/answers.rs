//! Encodes the same answer in every protocol.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::ProviderKind;

/// What a model writes, independent of the protocol.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelOutput {
    pub(super) text: &'static str,
    /// The tool, and its input as the model writes it.
    pub(super) calls: Vec<(&'static str, &'static str)>,
}

pub(super) fn text(text: &'static str) -> ModelOutput {
    ModelOutput { text, calls: Vec::new() }
}

pub(super) fn call(tool: &'static str, input: &'static str) -> ModelOutput {
    ModelOutput { text: "", calls: vec![(tool, input)] }
}

/// The usage of every answer: input, cache read, cache write, output. OpenAI does not report cache writes.
pub(super) const COUNTS: (u64, u64, u64, u64) = (100, 40, 20, 10);

impl ModelOutput {
    pub(super) fn encode(&self, kind: ProviderKind) -> Vec<u8> {
        match kind {
            ProviderKind::Anthropic => {
                self.claude().iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into()
            }
            ProviderKind::Bedrock => self.claude().iter().flat_map(frame).collect(),
            ProviderKind::Openai | ProviderKind::Local => self.openai().into(),
        }
    }

    /// The same without its last bytes.
    pub(super) fn encode_truncated(&self, kind: ProviderKind) -> Vec<u8> {
        let mut bytes = self.encode(kind);
        bytes.truncate(bytes.len() - 5);
        bytes
    }

    /// A keep-alive of the protocol.
    pub(super) fn keep_alive(kind: ProviderKind) -> Vec<u8> {
        let ping = json!({"type": "ping"});
        match kind {
            ProviderKind::Anthropic => format!("event: ping\ndata: {ping}\n\n").into(),
            ProviderKind::Bedrock => frame(&ping),
            ProviderKind::Openai | ProviderKind::Local => b": still here\n\n".into(),
        }
    }

    fn claude(&self) -> Vec<Value> {
        let (input, read, write, output) = COUNTS;
        let usage = json!({"input_tokens": input, "cache_read_input_tokens": read, "cache_creation_input_tokens": write});
        let mut events = vec![json!({"type": "message_start", "message": {"usage": usage}})];
        events.push(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        );
        events.push(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": self.text}}));
        for (index, (tool, input)) in self.calls.iter().enumerate() {
            let (index, id) = (index + 1, format!("id{index}"));
            let block = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
            events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
            let delta = json!({"type": "input_json_delta", "partial_json": input});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        let reason = if self.calls.is_empty() { "end_turn" } else { "tool_use" };
        let usage = json!({"output_tokens": output});
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn openai(&self) -> String {
        let (input, read, _, output) = COUNTS;
        let mut chunks =
            vec![json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": self.text}}]})];
        for (index, (tool, input)) in self.calls.iter().enumerate() {
            let call = json!({"index": index, "id": format!("id{index}"), "function": {"name": tool, "arguments": input}});
            chunks.push(json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}));
        }
        let reason = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        chunks.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
        let details = json!({"cached_tokens": read});
        let usage = json!({"prompt_tokens": input + read, "completion_tokens": output, "prompt_tokens_details": details});
        chunks.push(json!({"choices": [], "usage": usage}));
        let chunks: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        format!("{chunks}data: [DONE]\n\n")
    }
}

fn frame(event: &Value) -> Vec<u8> {
    let payload = json!({"bytes": STANDARD.encode(event.to_string())}).to_string();
    let headers = [(":message-type", "event"), (":event-type", "chunk")];
    crate::provider::encode_frame(&headers, payload.as_bytes())
}
