//! Writes a conversation in the chat format of the model, with a short description of the tools.
//!
//! The grammar enforces the form of calls, so the prompt needs no schemas: one line per tool is enough. Earlier
//! answers are written exactly as the model wrote them, so that the cached prefix stays valid.

mod estimate;

use std::fmt::Write as _;

use serde_json::Value;

use crate::answer_mode::AnswerMode;
use crate::spaced_json::spaced;
use crate::wire::{Message, Tool};
pub use estimate::estimate_tokens;

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptPiece {
    /// A control token.
    Mark(&'static str),
    Text(String),
}

const START: &str = "<|im_start|>";
const END: &str = "<|im_end|>";
const WITHOUT_SYSTEM: &str = "You are a helpful assistant.";

/// The prompt for the next turn.
pub(crate) fn render(messages: &[Message], tools: &[Tool], answer_mode: AnswerMode) -> Vec<PromptPiece> {
    let mut pieces = Vec::new();
    let is_system = |message: &&Message| message.is_system();
    let mut system: Vec<String> = messages.iter().take_while(is_system).map(Message::text).collect();
    let rest = &messages[system.len()..];
    if system.is_empty() {
        system.push(WITHOUT_SYSTEM.into());
    }
    if answer_mode != AnswerMode::Free {
        system.push(instructions(tools));
    }
    turn(&mut pieces, "system", &system.join("\n\n"));
    let mut at = 0;
    while let Some(message) = rest.get(at) {
        match message.role.as_str() {
            "assistant" => turn(&mut pieces, "assistant", &spoken(message, answer_mode)),
            "tool" => {
                let answers = rest[at..].iter().take_while(|message| message.role == "tool");
                let answers: Vec<String> = answers.map(result).collect();
                at += answers.len() - 1;
                turn(&mut pieces, "user", &answers.join("\n"));
            }
            "system" | "developer" => turn(&mut pieces, "system", &message.text()),
            _ => turn(&mut pieces, "user", &message.text()),
        }
        at += 1;
    }
    pieces.push(PromptPiece::Mark(START));
    pieces.push(PromptPiece::Text("assistant\n".into()));
    pieces
}

fn turn(pieces: &mut Vec<PromptPiece>, who: &str, text: &str) {
    pieces.push(PromptPiece::Mark(START));
    pieces.push(PromptPiece::Text(format!("{who}\n{text}")));
    pieces.push(PromptPiece::Mark(END));
    pieces.push(PromptPiece::Text("\n".into()));
}

fn result(message: &Message) -> String {
    format!("<tool_response>\n{}\n</tool_response>", message.text())
}

/// An earlier answer in the form in which the model wrote it.
fn spoken(message: &Message, answer_mode: AnswerMode) -> String {
    let calls = message.tool_calls.iter().map(|call| {
        let arguments = serde_json::from_str(&call.function.arguments).unwrap_or(Value::Null);
        called(&call.function.name, &arguments)
    });
    let calls: Vec<String> = calls.collect();
    if !calls.is_empty() {
        return calls.join("\n");
    }
    match answer_mode {
        AnswerMode::Free => message.text(),
        AnswerMode::CallOrSay | AnswerMode::Call => format!("{{\"say\": {}}}", Value::from(message.text())),
    }
}

fn called(name: &str, arguments: &Value) -> String {
    format!("{{\"name\": {}, \"arguments\": {}}}", Value::from(name), spaced(arguments))
}

fn instructions(tools: &[Tool]) -> String {
    let mut text = String::from("Tools:\n");
    for tool in tools {
        let function = &tool.function;
        let _ = write!(text, "- {}({})", function.name, parameters(&function.parameters));
        if !function.description.is_empty() {
            let _ = write!(text, ": {}", function.description);
        }
        text.push('\n');
    }
    // The same text whether a call is optional or required, so that the prefix stays cached; the grammar enforces the
    // rest.
    text.push_str("Use one tool at a time: {\"name\": ..., \"arguments\": {...}}. ");
    text.push_str("Find out with tools, do not guess. Once everything is done: {\"say\": \"...\"}.");
    text
}

/// The properties of an object, written like the parameters of a function.
fn parameters(schema: &Value) -> String {
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return String::new() };
    let one = |(name, property): (&String, &Value)| {
        let mark = if required(name) { "" } else { "?" };
        let note = property.get("description").and_then(Value::as_str);
        let note = note.map(|note| format!(" /* {note} */")).unwrap_or_default();
        format!("{name}{mark}: {}{note}", kind(property, schema, 0))
    };
    properties.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A short notation for a type.
fn kind(schema: &Value, root: &Value, depth: usize) -> String {
    if depth > 3 {
        return "any".into();
    }
    let list = |values: &[Value], one: &dyn Fn(&Value) -> String| {
        values.iter().map(one).collect::<Vec<_>>().join("|")
    };
    if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
        let to = to.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return to.map_or_else(|| "any".into(), |to| kind(to, root, depth + 1));
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return list(values, &Value::to_string);
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(Value::Array(options)) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
        return list(options, &|option| kind(option, root, depth + 1));
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => {
            let item = schema.get("items").map(|items| kind(items, root, depth + 1));
            format!("[{}]", item.unwrap_or_else(|| "any".into()))
        }
        Some(Value::String(name)) if name == "object" && schema.get("properties").is_some() => {
            format!("{{{}}}", parameters(schema))
        }
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => list(names, &|name| name.as_str().unwrap_or("any").to_owned()),
        _ => "any".into(),
    }
}

#[cfg(test)]
mod tests;
