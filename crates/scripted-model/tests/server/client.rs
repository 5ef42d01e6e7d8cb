//! A minimal HTTP client without libraries.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use scripted_model::{Script, ScriptedServer, Wire};
use serde_json::{Value, json};

pub(crate) const RESEARCHER: &str = "You are the Researcher of a choir.";

/// A parsed HTTP response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body ended regularly.
    pub(crate) whole: bool,
}

/// One message of a conversation, for any protocol.
#[derive(Debug, Clone)]
pub(crate) enum TestMessage {
    User(&'static str),
    /// Text, and calls as id and tool.
    Model(&'static str, Vec<(String, &'static str)>),
    /// Id and text.
    Results(Vec<(String, &'static str)>),
}

pub(crate) fn serve(script: &str) -> ScriptedServer {
    ScriptedServer::start(Script::parse(script).expect("a valid script"))
}

/// A server with a script of one agent.
pub(crate) fn researcher(steps: &str) -> ScriptedServer {
    serve(&format!("[[agent]]\nrole = \"researcher\"\n{steps}"))
}

pub(crate) fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "/v1/messages",
        Wire::OpenAi => "/v1/chat/completions",
        Wire::Bedrock => "/model/anthropic.claude-x-v1%3A0/invoke-with-response-stream",
    }
}

pub(crate) fn headers(wire: Wire, key: &str) -> Vec<(&'static str, String)> {
    match wire {
        Wire::Anthropic => vec![("x-api-key", key.into()), ("anthropic-version", "2023-06-01".into())],
        Wire::OpenAi | Wire::Bedrock => vec![("authorization", format!("Bearer {key}"))],
    }
}

pub(crate) fn body(wire: Wire, system: &str, messages: &[TestMessage]) -> Value {
    match wire {
        Wire::Anthropic => {
            let mut body = anthropic_body(system, messages);
            body["model"] = "claude-x".into();
            body["stream"] = true.into();
            body
        }
        Wire::Bedrock => {
            let mut body = anthropic_body(system, messages);
            body["anthropic_version"] = "bedrock-2023-05-31".into();
            body
        }
        Wire::OpenAi => openai_body(system, messages),
    }
}

fn anthropic_body(system: &str, messages: &[TestMessage]) -> Value {
    let message = |message: &TestMessage| match message {
        TestMessage::User(text) => json!({"role": "user", "content": text}),
        TestMessage::Model(text, calls) => {
            let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            let call = |(id, tool): &(String, &str)| json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
            let blocks: Vec<_> = text.into_iter().chain(calls.iter().map(call)).collect();
            json!({"role": "assistant", "content": blocks})
        }
        TestMessage::Results(results) => {
            let block = |(id, text): &(String, &str)| json!({"type": "tool_result", "tool_use_id": id, "content": text});
            json!({"role": "user", "content": results.iter().map(block).collect::<Vec<_>>()})
        }
    };
    json!({
        "max_tokens": 100,
        "system": system,
        "messages": messages.iter().map(message).collect::<Vec<_>>(),
        "tools": [{"name": "read", "description": "reads", "input_schema": {"type": "object"}}],
    })
}

fn openai_body(system: &str, conversation: &[TestMessage]) -> Value {
    let mut messages = vec![json!({"role": "system", "content": system})];
    for message in conversation {
        match message {
            TestMessage::User(text) => messages.push(json!({"role": "user", "content": text})),
            TestMessage::Model(text, calls) if calls.is_empty() => {
                messages.push(json!({"role": "assistant", "content": text}));
            }
            TestMessage::Model(text, calls) => {
                let function = |tool: &str| json!({"name": tool, "arguments": "{}"});
                let call = |(id, tool): &(String, &str)| json!({"id": id, "type": "function", "function": function(tool)});
                let calls: Vec<_> = calls.iter().map(call).collect();
                messages.push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
            }
            TestMessage::Results(results) => {
                let result = |(id, text): &(String, &str)| json!({"role": "tool", "tool_call_id": id, "content": text});
                messages.extend(results.iter().map(result));
            }
        }
    }
    json!({
        "model": "gpt-x",
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages,
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
    })
}

/// Sends these messages as the researcher.
pub(crate) fn ask(server: &ScriptedServer, wire: Wire, messages: &[TestMessage]) -> Answer {
    send(server, wire, &body(wire, RESEARCHER, messages))
}

pub(crate) fn send(server: &ScriptedServer, wire: Wire, body: &Value) -> Answer {
    post(server.address(), path(wire), &headers(wire, server.key()), &body.to_string())
}

pub(crate) fn post(to: SocketAddr, path: &str, headers: &[(&str, String)], body: &str) -> Answer {
    let mut socket = request(to, path, headers, body);
    let mut bytes = Vec::new();
    // Some tests expect the connection to break.
    let _ = socket.read_to_end(&mut bytes);
    parse(&bytes)
}

pub(crate) fn get(from: SocketAddr, path: &str) -> Answer {
    let mut socket = TcpStream::connect(from).expect("the server listens");
    let head = format!("GET {path} HTTP/1.1\r\nhost: {from}\r\nconnection: close\r\n\r\n");
    let mut bytes = Vec::new();
    socket.write_all(head.as_bytes()).and_then(|()| socket.read_to_end(&mut bytes)).expect("an answer");
    parse(&bytes)
}

/// Sends a request; the caller reads the response.
pub(crate) fn request(to: SocketAddr, path: &str, headers: &[(&str, String)], body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(to).expect("the server listens");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{lines}\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body.as_bytes())).expect("it is sent");
    socket
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = std::str::from_utf8(&bytes[..end]).expect("a head of text");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let split =
        |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<_> = lines.filter_map(split).collect();
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let rest = &bytes[end + 4..];
    let (body, whole) = if chunked { unchunk(rest) } else { (rest.to_vec(), true) };
    Answer { status: status.expect("a status"), headers, body, whole }
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let Some(size) = size else { break };
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// Whether `value` contains all the given fields.
pub(crate) fn has(value: &Value, fields: &Value) -> bool {
    match (value, fields) {
        (Value::Object(value), Value::Object(fields)) => {
            fields.iter().all(|(name, field)| value.get(name).is_some_and(|value| has(value, field)))
        }
        (value, fields) => value == fields,
    }
}
