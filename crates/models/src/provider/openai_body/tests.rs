//! Request bodies for OpenAI and compatible servers.

use std::time::SystemTime;

use super::*;
use crate::{Catalog, chat::Tool};

fn body_of(alias: &str, request: &ChatRequest) -> Value {
    let catalog = Catalog::load(None).unwrap();
    let model = &catalog.models[alias];
    let provider = &catalog.providers[&model.provider];
    let base_url = "http://127.0.0.1/v1".parse().unwrap();
    let target =
        RequestTarget { model, provider, base_url: &base_url, key: None, now: SystemTime::UNIX_EPOCH };
    body(&target, request).into()
}

fn conversation() -> ChatRequest {
    let input = json!({"path": "a"});
    ChatRequest {
        system: "Be good.".into(),
        messages: vec![
            Message::User { text: "Go.".into() },
            Message::Model {
                text: "I look.".into(),
                calls: vec![ToolCall { id: "a".into(), tool: "read".into(), input: input.clone() }],
            },
            Message::Tools {
                results: vec![ToolResult {
                    id: "a".into(),
                    tool: "read".into(),
                    text: "no".into(),
                    failed: true,
                }],
            },
        ],
        tools: vec![Tool { name: "read".into(), description: "d".into(), input: json!({"type": "object"}) }],
        max_output: 99,
        answer: AnswerForm::Any,
    }
}

#[test]
fn a_conversation_becomes_messages_and_functions() {
    let function = json!({"name": "read", "arguments": "{\"path\":\"a\"}"});
    let parameters = json!({"type": "object"});
    let expected = json!({
        "model": "gpt-6.1-sol",
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_completion_tokens": 99,
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "a", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "a", "content": "[failed] no"}
        ],
        "tools": [{"type": "function", "function": {"name": "read", "description": "d", "parameters": parameters}}]
    });
    assert_eq!(body_of("gpt", &conversation()), expected);
}

#[test]
fn json_is_requested_by_schema_or_in_the_system_prompt() {
    let schema = json!({"type": "object", "title": "T"});
    let request = ChatRequest { answer: AnswerForm::Json { schema: schema.clone() }, ..conversation() };
    let enforced = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
    for (alias, format, in_prompt) in [
        ("gpt", enforced.clone(), false),
        ("local", enforced, false),
        ("glm", json!({"type": "json_object"}), true),
    ] {
        let body = body_of(alias, &request);
        assert_eq!(body["response_format"], format, "{alias}");
        assert_eq!(body["messages"][0].to_string().contains("JSON Schema"), in_prompt, "{alias}");
        assert_eq!(body["tools"], Value::Null, "{alias}");
    }
}

#[test]
fn a_call_is_forced_only_if_the_model_supports_it() {
    let request = ChatRequest { answer: AnswerForm::Call, ..conversation() };
    assert_eq!(body_of("gpt", &request)["tool_choice"], "required");
    assert_eq!(body_of("kimi", &request)["tool_choice"], Value::Null);
}

#[test]
fn extra_fields_of_the_catalog_are_set_in_the_body() {
    assert_eq!(body_of("kimi", &conversation())["thinking"], json!({"type": "disabled"}));
    assert_eq!(body_of("kimi", &conversation())["max_tokens"], 99);
}
