//! Checks the messages as Anthropic does: their order, their blocks, and that every call has exactly one result.

use std::collections::HashSet;

use serde_json::Value;

use super::check::Version;
use crate::{conversation::Conversation, wire::is_tool_name};

/// Whether any message contains tool calls or results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tools {
    Used,
    Unused,
}

/// State that is carried from message to message.
struct Reader<'a> {
    conversation: &'a mut Conversation,
    version: Version,
    /// Calls of the previous message, which this one must answer.
    open: Vec<String>,
    /// All calls so far.
    known: HashSet<String>,
}

pub(super) fn read(
    messages: &Value,
    version: Version,
    conversation: &mut Conversation,
) -> Result<Tools, String> {
    let messages = messages.as_array().ok_or("messages: Input should be a valid array")?;
    let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
        return Err("messages: at least one message is required".into());
    };
    if role(first) == Some("assistant") {
        return Err("messages: first message must use the \"user\" role".into());
    }
    let mut reader = Reader { conversation, version, open: Vec::new(), known: HashSet::new() };
    for (at, message) in messages.iter().enumerate() {
        reader.message(at, message)?;
    }
    reader.check_all_answered(messages.len())?;
    if role(last) == Some("assistant") {
        return Err("This model does not support assistant message prefill. \
                    The conversation must end with a user message."
            .into());
    }
    Ok(if reader.known.is_empty() { Tools::Unused } else { Tools::Used })
}

fn role(message: &Value) -> Option<&str> {
    message.get("role")?.as_str()
}

impl Reader<'_> {
    fn message(&mut self, at: usize, message: &Value) -> Result<(), String> {
        let content =
            message.get("content").ok_or_else(|| format!("messages.{at}.content: Field required"))?;
        let blocks = match content {
            Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                return Err(format!("messages.{at}.content: Input should be a valid array"));
            }
        };
        let empty = content.as_str().is_some_and(str::is_empty) || blocks.is_empty();
        match role(message) {
            Some(role @ ("user" | "assistant")) if empty => {
                Err(format!("messages.{at}: {role} messages must have non-empty content"))
            }
            Some("user") => self.user(at, &blocks),
            Some("assistant") => self.assistant(at, &blocks),
            Some("system") => {
                Err("messages: Unexpected role \"system\". The Messages API accepts a top-level \
                                   `system` parameter, not \"system\" as an input message role."
                    .into())
            }
            _ => Err(format!("messages.{at}.role: Input should be 'user' or 'assistant'")),
        }
    }

    fn user(&mut self, at: usize, blocks: &[Value]) -> Result<(), String> {
        let is_result = |block: &Value| block.get("type").and_then(Value::as_str) == Some("tool_result");
        let first_other = blocks.iter().position(|block| !is_result(block)).unwrap_or(blocks.len());
        let mut answered: Vec<&str> = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let field_path = format!("messages.{at}.content.{index}");
            if !is_result(block) {
                continue;
            }
            let id = field(block, "tool_use_id", &format!("{field_path}.tool_result"))?;
            if !self.open.iter().any(|open| open == id) {
                return Err(format!(
                    "{field_path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` \
                     block must have a corresponding `tool_use` block in the previous message."
                ));
            }
            if answered.contains(&id) {
                return Err(format!(
                    "{field_path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                ));
            }
            // Only results at the start of the message count, as in the real service.
            if index < first_other {
                answered.push(id);
            }
        }
        self.open.retain(|open| !answered.contains(&open.as_str()));
        self.check_all_answered(at)?;
        for (index, block) in blocks.iter().enumerate() {
            self.user_block(block, &format!("messages.{at}.content.{index}"))?;
        }
        Ok(())
    }

    fn user_block(&mut self, block: &Value, field_path: &str) -> Result<(), String> {
        match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                let cites =
                    block.get("citations").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
                if cites && self.version == Version::Of2026 {
                    return Err(format!("{field_path}.text.citations: Extra inputs are not permitted"));
                }
                self.conversation.add_user_text(block_text(block, field_path)?);
            }
            Some("tool_result") => self.conversation.add_user_text(&result(block, field_path)?),
            Some("image" | "document") => self.conversation.add_user_text(""),
            Some("tool_use") => {
                return Err(format!("{field_path}: `tool_use` blocks can only be in `assistant` messages"));
            }
            _ => return Err(unknown_tag(block, field_path)),
        }
        Ok(())
    }

    fn assistant(&mut self, at: usize, blocks: &[Value]) -> Result<(), String> {
        self.check_all_answered(at)?;
        for (index, block) in blocks.iter().enumerate() {
            let field_path = format!("messages.{at}.content.{index}");
            match block.get("type").and_then(Value::as_str) {
                Some("text") => self.conversation.add_assistant_text(block_text(block, &field_path)?),
                Some("thinking" | "redacted_thinking") => self.conversation.add_assistant_text(""),
                Some("tool_use") => self.call(block, &field_path)?,
                Some("tool_result") => {
                    return Err(format!("{field_path}: `tool_result` blocks can only be in `user` messages"));
                }
                _ => return Err(unknown_tag(block, &field_path)),
            }
        }
        Ok(())
    }

    fn call(&mut self, block: &Value, field_path: &str) -> Result<(), String> {
        let id = field(block, "id", &format!("{field_path}.tool_use"))?;
        if !is_tool_name(id, usize::MAX) {
            return Err(format!("{field_path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"));
        }
        if !is_tool_name(field(block, "name", &format!("{field_path}.tool_use"))?, 200) {
            return Err(format!(
                "{field_path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'"
            ));
        }
        let input =
            block.get("input").ok_or_else(|| format!("{field_path}.tool_use.input: Field required"))?;
        if !input.is_object() {
            return Err(format!("{field_path}.tool_use.input: Input should be a valid dictionary"));
        }
        if !self.known.insert(id.into()) {
            return Err("messages: `tool_use` ids must be unique".into());
        }
        self.open.push(id.into());
        self.conversation.add_assistant_text(&input.to_string());
        Ok(())
    }

    /// `next` is the index of the message that should contain the results.
    fn check_all_answered(&self, next: usize) -> Result<(), String> {
        if self.open.is_empty() {
            return Ok(());
        }
        Err(format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message.",
            next.saturating_sub(1),
            self.open.join(", ")
        ))
    }
}

fn field<'a>(block: &'a Value, name: &str, field_path: &str) -> Result<&'a str, String> {
    block.get(name).and_then(Value::as_str).ok_or_else(|| format!("{field_path}.{name}: Field required"))
}

fn unknown_tag(block: &Value, field_path: &str) -> String {
    let tag = block.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("{field_path}: Input tag '{tag}' found using 'type' does not match any of the expected tags")
}

fn block_text<'a>(block: &'a Value, field_path: &str) -> Result<&'a str, String> {
    match field(block, "text", &format!("{field_path}.text"))? {
        "" if block.get("cache_control").is_some() => {
            Err(format!("{field_path}.text: cache_control cannot be set for empty text blocks"))
        }
        "" => Err("messages: text content blocks must be non-empty".into()),
        text if text.trim().is_empty() => {
            Err("messages: text content blocks must contain non-whitespace text".into())
        }
        text => Ok(text),
    }
}

/// The content of a tool result: nothing, a text, or blocks.
fn result(block: &Value, field_path: &str) -> Result<String, String> {
    match block.get("content") {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(blocks)) => {
            let mut texts = Vec::new();
            for (index, block) in blocks.iter().enumerate() {
                let field_path = format!("{field_path}.tool_result.content.{index}");
                match block.get("type").and_then(Value::as_str) {
                    Some("text") => match field(block, "text", &format!("{field_path}.text"))? {
                        "" => return Err("messages: text content blocks must be non-empty".into()),
                        text => texts.push(text),
                    },
                    Some("image" | "document" | "search_result") => {}
                    _ => return Err(unknown_tag(block, &field_path)),
                }
            }
            Ok(texts.join("\n"))
        }
        Some(_) => Err(format!("{field_path}.tool_result.content: Input should be a valid array")),
    }
}
