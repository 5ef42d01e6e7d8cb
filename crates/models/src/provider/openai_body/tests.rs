//! Requests as OpenAI and its relatives get them.

use std::time::SystemTime;

use super::*;
use crate::{Catalog, chat::Tool};

fn body_of(alias: &str, request: &Request) -> Value {
    let catalog = Catalog::load(None).unwrap();
    let model = &catalog.models[alias];
    let provider = &catalog.providers[&model.provider];
    let base_url = "http://127.0.0.1/v1".parse().unwrap();
    let target = Target { model, provider, base_url: &base_url, key: None, now: SystemTime::UNIX_EPOCH };
    body(&target, request).into()
}

fn conversation() -> Request {
    let input = json!({"path": "a"});
    Request {
        system: "Be good.".into(),
        messages: vec![
            Message::User { text: "Go.".into() },
            Message::Model {
                text: "I look.".into(),
                calls: vec![Call { id: "a".into(), tool: "read".into(), input: input.clone() }],
            },
            Message::Tools {
                results: vec![CallResult {
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
fn each_model_is_asked_for_json_as_it_can() {
    let schema = json!({"type": "object", "title": "T"});
    let request = Request { answer: AnswerForm::Json { schema: schema.clone() }, ..conversation() };
    let held = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
    for (alias, format, told) in
        [("gpt", held.clone(), false), ("local", held, false), ("glm", json!({"type": "json_object"}), true)]
    {
        let body = body_of(alias, &request);
        assert_eq!(body["response_format"], format, "{alias}");
        assert_eq!(body["messages"][0].to_string().contains("JSON Schema"), told, "{alias}");
        assert_eq!(body["tools"], Value::Null, "{alias}");
    }
}

#[test]
fn a_call_is_required_only_where_that_is_known() {
    let request = Request { answer: AnswerForm::Call, ..conversation() };
    assert_eq!(body_of("gpt", &request)["tool_choice"], "required");
    assert_eq!(body_of("kimi", &request)["tool_choice"], Value::Null);
}

#[test]
fn what_the_catalog_says_of_a_model_is_laid_over() {
    assert_eq!(body_of("kimi", &conversation())["thinking"], json!({"type": "disabled"}));
    assert_eq!(body_of("kimi", &conversation())["max_tokens"], 99);
}
