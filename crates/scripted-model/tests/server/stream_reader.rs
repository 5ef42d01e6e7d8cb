//! Decodes the streams of each protocol and assembles the reply.

use base64::{Engine, engine::general_purpose::STANDARD};
use scripted_model::Wire;
use serde_json::Value;

use crate::client::Answer;

/// The reply that a stream contains.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct StreamedReply {
    pub(crate) text: String,
    /// Id, tool and raw input.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) stop: String,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    /// Whether the protocol's end marker arrived.
    pub(crate) ended: bool,
    pub(crate) error: Option<Value>,
}

pub(crate) fn read_stream(wire: Wire, answer: &Answer) -> StreamedReply {
    let mut reply = StreamedReply::default();
    match wire {
        Wire::Anthropic => {
            server_sent(answer).iter().for_each(|(_, data)| reply.anthropic(&json(data)));
        }
        Wire::OpenAi => server_sent(answer).iter().for_each(|(_, data)| reply.openai(data)),
        Wire::Bedrock => frames(&answer.body).iter().for_each(|frame| reply.bedrock(frame)),
    }
    reply
}

/// The complete events, as name and data.
pub(crate) fn server_sent(answer: &Answer) -> Vec<(String, String)> {
    let whole = answer.text().rfind("\n\n").map_or("", |end| &answer.text()[..end]);
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned).unwrap_or_default()
    };
    let events = whole.split("\n\n").filter(|event| !event.is_empty());
    events.map(|event| (field(event, "event: "), field(event, "data: "))).collect()
}

pub(crate) fn json(data: &str) -> Value {
    serde_json::from_str(data).expect("JSON")
}

/// A frame of an AWS event stream with valid checksums.
#[derive(Debug, PartialEq)]
pub(crate) struct AwsFrame {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Value,
}

impl AwsFrame {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Anthropic's event in the frame.
    pub(crate) fn event(&self) -> Value {
        let bytes = self.payload["bytes"].as_str().expect("bytes");
        serde_json::from_slice(&STANDARD.decode(bytes).expect("base64")).expect("JSON")
    }
}

/// The complete frames.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<AwsFrame> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
    let mut frames = Vec::new();
    while bytes.len() >= 16 {
        let (total, headers) = (number(&bytes[..4]) as usize, number(&bytes[4..8]) as usize);
        assert_eq!(number(&bytes[8..12]), crc32(&bytes[..8]), "checksum of the prelude");
        if bytes.len() < total {
            break;
        }
        assert_eq!(number(&bytes[total - 4..total]), crc32(&bytes[..total - 4]), "checksum of the message");
        let payload = serde_json::from_slice(&bytes[12 + headers..total - 4]).expect("JSON");
        frames.push(AwsFrame { headers: aws_headers(&bytes[12..12 + headers]), payload });
        bytes = &bytes[total..];
    }
    frames
}

fn aws_headers(mut bytes: &[u8]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let mut headers = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at(length as usize);
        assert_eq!(rest[0], 7, "the type of a string");
        let (value, rest) = rest[3..].split_at(usize::from(u16::from_be_bytes([rest[1], rest[2]])));
        headers.push((text(name), text(value)));
        bytes = rest;
    }
    headers
}

/// A bitwise CRC-32, independent of the one under test.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

impl StreamedReply {
    pub(crate) fn anthropic(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().expect("a type") {
            "message_start" => {
                self.input = event["message"]["usage"]["input_tokens"].as_u64().expect("tokens");
                self.cache_read =
                    event["message"]["usage"]["cache_read_input_tokens"].as_u64().expect("tokens");
            }
            "content_block_start" => {
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    self.calls.push((text(&block["id"]), text(&block["name"]), String::new()));
                }
            }
            "content_block_delta" => match event["delta"]["type"].as_str().expect("a type") {
                "text_delta" => self.text += &text(&event["delta"]["text"]),
                _ => self.calls.last_mut().expect("a call").2 += &text(&event["delta"]["partial_json"]),
            },
            "message_delta" => {
                self.stop = text(&event["delta"]["stop_reason"]);
                self.output = event["usage"]["output_tokens"].as_u64().expect("tokens");
            }
            "message_stop" => self.ended = true,
            "error" => self.error = Some(event.clone()),
            _ => {}
        }
    }

    fn openai(&mut self, data: &str) {
        if data == "[DONE]" {
            self.ended = true;
            return;
        }
        let chunk = json(data);
        if chunk.get("error").is_some() {
            self.error = Some(chunk);
            return;
        }
        if let Some(prompt) = chunk["usage"]["prompt_tokens"].as_u64() {
            self.cache_read =
                chunk["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().expect("tokens");
            self.input = prompt - self.cache_read;
            self.output = chunk["usage"]["completion_tokens"].as_u64().expect("tokens");
        }
        let choice = &chunk["choices"][0];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.text += &text(&choice["delta"]["content"]);
        self.stop += &text(&choice["finish_reason"]);
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().expect("an index") as usize;
            if index == self.calls.len() {
                self.calls.push((text(&call["id"]), text(&call["function"]["name"]), String::new()));
            }
            self.calls[index].2 += &text(&call["function"]["arguments"]);
        }
    }

    fn bedrock(&mut self, frame: &AwsFrame) {
        match frame.header(":message-type") {
            "event" => self.anthropic(&frame.event()),
            _ => self.error = Some(frame.payload.clone()),
        }
    }
}
