//! Request bodies for Claude.

use std::time::SystemTime;

use super::*;
use crate::{Catalog, chat::ToolCall};

fn body_of(alias: &str, request: &ChatRequest) -> Value {
    let catalog = Catalog::load(None).unwrap();
    let model = &catalog.models[alias];
    let provider = &catalog.providers[&model.provider];
    let base_url = provider.base_url.as_ref().unwrap();
    let target = RequestTarget { model, provider, base_url, key: None, now: SystemTime::UNIX_EPOCH };
    body(&target, request).into()
}

fn conversation() -> ChatRequest {
    let call = |id: &str| ToolCall { id: id.into(), tool: "read".into(), input: json!({"path": "a"}) };
    let result = |id: &str, text: &str, failed| ToolResult {
        id: id.into(),
        tool: "read".into(),
        text: text.into(),
        failed,
    };
    let tool =
        |name: &str| Tool { name: name.into(), description: "d".into(), input: json!({"type": "object"}) };
    ChatRequest {
        system: "Be good.".into(),
        messages: vec![
            Message::User { text: "Go.".into() },
            Message::Model { text: String::new(), calls: vec![call("functions.read:0"), call("b")] },
            Message::Tools {
                results: vec![result("functions.read:0", "content", false), result("b", "", true)],
            },
            Message::User { text: "Faster.".into() },
            Message::Model { text: "Done.".into(), calls: Vec::new() },
            Message::User { text: " ".into() },
        ],
        tools: vec![tool("read"), tool("list")],
        max_output: 99,
        answer: AnswerForm::Any,
    }
}

#[test]
fn a_conversation_becomes_alternating_messages_with_cache_marks() {
    let mark = json!({"type": "ephemeral"});
    let input = json!({"path": "a"});
    let expected = json!({
        "max_tokens": 99,
        "system": [{"type": "text", "text": "Be good.", "cache_control": mark}],
        "tools": [
            {"name": "read", "description": "d", "input_schema": {"type": "object"}},
            {"name": "list", "description": "d", "input_schema": {"type": "object"}, "cache_control": mark}
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Go."}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "functions_read_0", "name": "read", "input": input},
                {"type": "tool_use", "id": "b", "name": "read", "input": input}
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "functions_read_0", "content": "content"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": true},
                {"type": "text", "text": "Faster.", "cache_control": mark}
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
            {"role": "user", "content": [{"type": "text", "text": "(nothing)", "cache_control": mark}]}
        ]
    });
    assert_eq!(body_of("claude-sonnet", &conversation()), expected);
    assert_eq!(body_of("bedrock-sonnet", &conversation()), expected);
    let marks = expected.to_string().matches("cache_control").count();
    assert!(marks <= 4, "Anthropic allows four");
}

#[test]
fn without_forced_calls_the_system_prompt_asks_for_the_answer_tool() {
    let schema = json!({"type": "object"});
    let request = ChatRequest { answer: AnswerForm::Json { schema: schema.clone() }, ..conversation() };
    let body = body_of("claude-sonnet", &request);
    assert_eq!(body["tool_choice"], Value::Null);
    assert_eq!(body["tools"][0]["input_schema"], schema);
    assert_eq!(body["tools"].as_array().map(Vec::len), Some(1), "the other tools are not offered");
    assert!(
        body["system"][0]["text"].as_str().is_some_and(|text| text.contains("calling the tool `answer`"))
    );
}
