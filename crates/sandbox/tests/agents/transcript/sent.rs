//! Requests as a server of models received them, read back from the protocol of each provider.

use std::collections::BTreeMap;

use agents::roles::Role;
use models::chat::{Message, Tool, ToolCall, ToolResult};
use scripted_model::{RecordedRequest, Wire};
use serde_json::Value;

use super::{Line, lines, role_of};

pub(super) struct Sent {
    pub(super) role: Role,
    pub(super) system: String,
    pub(super) tools: Vec<Tool>,
    pub(super) lines: Vec<Line>,
}

pub(super) fn read(request: &RecordedRequest) -> Result<Sent, String> {
    let body = request.json();
    let read = match request.wire {
        Some(Wire::Anthropic | Wire::Bedrock) => of_claude(&body),
        Some(Wire::OpenAi) => of_openai(&body),
        None => None,
    };
    let (system, tools, messages) = read.ok_or_else(|| format!("this cannot be read back: {body}"))?;
    Ok(Sent { role: role_of(&system)?, system, tools, lines: lines(&messages) })
}

type Read = (String, Vec<Tool>, Vec<Message>);

fn of_claude(body: &Value) -> Option<Read> {
    let system = text(&body["system"][0]["text"])?;
    let tools = each(&body["tools"], |tool| read_tool(tool, "input_schema"))?;
    let mut names = BTreeMap::new();
    let messages = each(&body["messages"], |message| {
        each(&message["content"], |block| claude_block(&message["role"], block, &mut names))
    })?;
    Some((system, tools, messages.concat()))
}

/// Every block is a message of its own here.
fn claude_block(role: &Value, block: &Value, names: &mut BTreeMap<String, String>) -> Option<Message> {
    match (role.as_str()?, block["type"].as_str()?) {
        ("user", "text") => Some(Message::User { text: text(&block["text"])? }),
        ("assistant", "text") => Some(Message::Model { text: text(&block["text"])?, calls: Vec::new() }),
        ("assistant", "tool_use") => {
            let (id, tool) = (text(&block["id"])?, text(&block["name"])?);
            names.insert(id.clone(), tool.clone());
            let calls = vec![ToolCall { id, tool, input: block["input"].clone() }];
            Some(Message::Model { text: String::new(), calls })
        }
        ("user", "tool_result") => {
            let (id, failed) = (text(&block["tool_use_id"])?, block["is_error"] == true);
            let (tool, text) = (names.get(&id)?.clone(), text(&block["content"]).unwrap_or_default());
            Some(Message::Tools { results: vec![ToolResult { id, tool, text, failed }] })
        }
        _ => None,
    }
}

fn of_openai(body: &Value) -> Option<Read> {
    let tools = each(&body["tools"], |tool| read_tool(&tool["function"], "parameters"))?;
    let (system, messages) = body["messages"].as_array()?.split_first()?;
    let system = text(&system["content"])?;
    let mut names = BTreeMap::new();
    let messages = messages.iter().map(|message| openai_message(message, &mut names));
    Some((system, tools, messages.collect::<Option<_>>()?))
}

fn openai_message(message: &Value, names: &mut BTreeMap<String, String>) -> Option<Message> {
    let content = text(&message["content"])?;
    match message["role"].as_str()? {
        "user" => Some(Message::User { text: content }),
        "assistant" => {
            let calls =
                message.get("tool_calls").map_or(Some(Vec::new()), |calls| each(calls, openai_call))?;
            names.extend(calls.iter().map(|call| (call.id.clone(), call.tool.clone())));
            Some(Message::Model { text: content, calls })
        }
        "tool" => {
            let id = text(&message["tool_call_id"])?;
            // The protocol has no other word for a call that failed.
            let (text, failed) = match content.strip_prefix("[failed] ") {
                Some(text) => (text.to_owned(), true),
                None => (content, false),
            };
            Some(Message::Tools {
                results: vec![ToolResult { tool: names.get(&id)?.clone(), id, text, failed }],
            })
        }
        _ => None,
    }
}

fn openai_call(call: &Value) -> Option<ToolCall> {
    let function = &call["function"];
    let input = serde_json::from_str(function["arguments"].as_str()?).ok()?;
    Some(ToolCall { id: text(&call["id"])?, tool: text(&function["name"])?, input })
}

fn read_tool(tool: &Value, input: &str) -> Option<Tool> {
    let (name, description) = (text(&tool["name"])?, text(&tool["description"])?);
    Some(Tool { name, description, input: tool[input].clone() })
}

fn each<T>(values: &Value, read: impl FnMut(&Value) -> Option<T>) -> Option<Vec<T>> {
    values.as_array()?.iter().map(read).collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
