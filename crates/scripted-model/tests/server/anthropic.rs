//! Anthropic's stream, event by event, as its documentation shows it.

use scripted_model::Wire::Anthropic;
use serde_json::{Value, json};

use crate::{
    client::{TestMessage, ask, has, researcher},
    stream_reader::{json, server_sent},
};

const STEP: &str = "[[agent.step]]
text = \"Zwölf Wörter.\"
calls = [ { tool = \"read\", input = { path = \"a.md\" } }, { tool = \"list\" } ]
usage = { input = 120, output = 30, cache_read = 7, cache_write = 5 }";

/// The names of the events, without consecutive duplicates.
fn shape(events: &[(String, String)]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    names
}

#[test]
fn the_events_have_the_documented_order() {
    let server = researcher(STEP);
    let answer = ask(&server, Anthropic, &[TestMessage::User("solar")]);
    assert_eq!((answer.status, answer.whole), (200, true));
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert!(answer.header("request-id").is_some());
    let events = server_sent(&answer);
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let mut expected = vec!["message_start", "content_block_start", "ping", "content_block_delta"];
    expected.push("content_block_stop");
    expected.extend(block.iter().chain(&block).chain(&["message_delta", "message_stop"]));
    assert_eq!(shape(&events), expected);
    assert!(events.iter().all(|(name, data)| json(data)["type"] == **name), "the name is in the data too");
    let bytes: String =
        events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect();
    assert_eq!(answer.text(), bytes, "nothing but events");
}

#[test]
fn the_fields_are_the_documented_ones() {
    let server = researcher(STEP);
    let events: Vec<Value> = server_sent(&ask(&server, Anthropic, &[TestMessage::User("solar")]))
        .iter()
        .map(|(_, d)| json(d))
        .collect();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    let start = &of("message_start")[0]["message"];
    let usage = json!({"input_tokens": 120, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1});
    let expected = json!({"type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    assert!(has(start, &expected), "{start}");
    assert!(start["id"].as_str().unwrap().starts_with("msg_01"));

    let starts = of("content_block_start");
    assert_eq!(starts[0]["content_block"], json!({"type": "text", "text": ""}));
    assert!(has(
        &starts[1],
        &json!({"index": 1, "content_block": {"type": "tool_use", "name": "read", "input": {}}})
    ));
    assert!(has(
        &starts[2],
        &json!({"index": 2, "content_block": {"type": "tool_use", "name": "list", "input": {}}})
    ));
    assert_ne!(starts[1]["content_block"]["id"], starts[2]["content_block"]["id"]);

    let parts = |index: u64, kind: &str, field: &str| -> Vec<String> {
        let deltas = of("content_block_delta").into_iter().filter(|event| event["index"] == index);
        let deltas = deltas.map(|event| event["delta"].clone()).collect::<Vec<_>>();
        assert!(deltas.iter().all(|delta| delta["type"] == kind));
        deltas.iter().map(|delta| delta[field].as_str().unwrap().to_owned()).collect()
    };
    let text = parts(0, "text_delta", "text");
    assert!(text.len() > 2 && text.concat() == "Zwölf Wörter.", "{text:?}");
    let input = parts(1, "input_json_delta", "partial_json");
    assert!(input.len() > 3 && input[0].is_empty() && input.concat() == r#"{"path":"a.md"}"#, "{input:?}");
    assert_eq!(parts(2, "input_json_delta", "partial_json").concat(), "{}");

    let end =
        json!({"delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 30}});
    assert!(has(&of("message_delta")[0], &end));
    assert_eq!(of("message_stop")[0], json!({"type": "message_stop"}));
}
