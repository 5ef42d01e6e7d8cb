//! Checks the messages as OpenAI does: their roles, their contents, and that every call has exactly one result.

use serde_json::Value;

use super::check::{invalid, list, text, wrong_type};
use crate::{conversation::Conversation, failure::InvalidRequest};

pub(super) fn read(messages: &[Value], conversation: &mut Conversation) -> Result<(), InvalidRequest> {
    // Calls without a result. Results must come before any other message.
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let field_path = format!("messages[{at}]");
        let role = text(message.get("role"), &format!("{field_path}.role"))?;
        if role != "tool" {
            check_all_answered(&open, at)?;
        }
        match role {
            "system" | "developer" => {
                conversation.add_system_text(&content(message, &field_path)?.unwrap_or_default())
            }
            "user" => match content(message, &field_path)? {
                Some(words) if !words.trim().is_empty() => conversation.add_user_text(&words),
                _ => return Err(empty(at, role)),
            },
            "assistant" => open = assistant(message, at, conversation)?,
            "tool" => {
                let id = text(message.get("tool_call_id"), &format!("{field_path}.tool_call_id"))?;
                let called = open.iter().position(|open| *open == id);
                open.remove(called.ok_or_else(|| unexpected(at))?);
                conversation.add_user_text(&content(message, &field_path)?.ok_or_else(|| empty(at, role))?);
            }
            _ => {
                let message = format!(
                    "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', \
                     and 'developer'."
                );
                return Err(invalid(message, &format!("{field_path}.role"), Some("invalid_value")));
            }
        }
    }
    check_all_answered(&open, messages.len())
}

fn assistant<'a>(
    message: &'a Value,
    at: usize,
    conversation: &mut Conversation,
) -> Result<Vec<&'a str>, InvalidRequest> {
    let field_path = format!("messages[{at}]");
    let words = content(message, &field_path)?.unwrap_or_default();
    let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) else {
        if words.is_empty() {
            return Err(empty(at, "assistant"));
        }
        conversation.add_assistant_text(&words);
        return Ok(Vec::new());
    };
    conversation.add_assistant_text(&words);
    let mut ids = Vec::new();
    for (index, call) in list(Some(calls), &format!("{field_path}.tool_calls"))?.iter().enumerate() {
        let field_path = format!("{field_path}.tool_calls[{index}]");
        let id = text(call.get("id"), &format!("{field_path}.id"))?;
        if text(call.get("type"), &format!("{field_path}.type"))? != "function" {
            let message = "Invalid value. Supported values are: 'function'.".to_owned();
            return Err(invalid(message, &format!("{field_path}.type"), Some("invalid_value")));
        }
        let function = call.get("function");
        text(function.and_then(|function| function.get("name")), &format!("{field_path}.function.name"))?;
        let arguments = function.and_then(|function| function.get("arguments"));
        let arguments = text(arguments, &format!("{field_path}.function.arguments"))?;
        // Normalized, so that the token count is the same in every protocol.
        let plain = serde_json::from_str::<Value>(arguments).map(|value| value.to_string());
        conversation.add_assistant_text(&plain.unwrap_or_else(|_| arguments.to_owned()));
        ids.push(id);
    }
    Ok(ids)
}

/// A string, text parts, or nothing.
fn content(message: &Value, field_path: &str) -> Result<Option<String>, InvalidRequest> {
    let field_path = format!("{field_path}.content");
    match message.get("content") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(words)) => Ok(Some(words.clone())),
        Some(parts @ Value::Array(_)) => {
            let mut words = Vec::new();
            for (index, part) in list(Some(parts), &field_path)?.iter().enumerate() {
                let field_path = format!("{field_path}[{index}]");
                match text(part.get("type"), &format!("{field_path}.type"))? {
                    "text" => words.push(text(part.get("text"), &format!("{field_path}.text"))?),
                    "image_url" | "input_audio" | "file" | "refusal" => {}
                    other => {
                        let message = format!(
                            "Invalid value: '{other}'. Supported values are: 'text', 'image_url', \
                                               'input_audio', 'refusal', 'audio', and 'file'."
                        );
                        return Err(invalid(message, &format!("{field_path}.type"), Some("invalid_value")));
                    }
                }
            }
            Ok(Some(words.join("\n")))
        }
        Some(other) => Err(wrong_type(&field_path, "one of a string or array of objects", other)),
    }
}

/// OpenAI rejects `null`; compatible services such as Moonshot and Z.ai also reject empty strings.
fn empty(at: usize, role: &str) -> InvalidRequest {
    let message = format!("Invalid value for 'content': the message with role '{role}' must not be empty.");
    invalid(message, &format!("messages.[{at}].content"), None)
}

fn unexpected(at: usize) -> InvalidRequest {
    let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                   'tool_calls'.";
    invalid(message.into(), &format!("messages.[{at}].role"), None)
}

fn check_all_answered(open: &[&str], at: usize) -> Result<(), InvalidRequest> {
    if open.is_empty() {
        return Ok(());
    }
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
         The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(invalid(message, &format!("messages.[{at}].role"), None))
}
