//! OpenAI's stream, chunk by chunk, as its reference shows it.

use scripted_model::Wire::OpenAi;
use serde_json::{Value, json};

use crate::{
    client::{RESEARCHER, TestMessage, ask, body, has, researcher, send},
    stream_reader::{json, server_sent},
};

const STEP: &str = "[[agent.step]]
text = \"I will look.\"
calls = [ { tool = \"read\", input = { path = \"a.md\" } }, { tool = \"list\" } ]
usage = { input = 120, output = 30, cache_read = 7 }";

fn chunks(events: &[(String, String)]) -> Vec<Value> {
    let (last, chunks) = events.split_last().expect("events");
    assert_eq!(last.1, "[DONE]");
    chunks.iter().map(|(_, data)| json(data)).collect()
}

#[test]
fn the_chunks_are_the_documented_ones() {
    let server = researcher(STEP);
    let answer = ask(&server, OpenAi, &[TestMessage::User("solar")]);
    assert_eq!((answer.status, answer.whole), (200, true));
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert!(answer.text().ends_with("\n\ndata: [DONE]\n\n"));
    let chunks = chunks(&server_sent(&answer));
    for chunk in &chunks {
        assert!(has(chunk, &json!({"object": "chat.completion.chunk", "model": "gpt-x"})), "{chunk}");
        assert!(chunk["id"].as_str().unwrap().starts_with("chatcmpl-") && chunk["created"].is_u64());
    }
    let (usage, chunks) = chunks.split_last().unwrap();
    assert!(chunks.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
    let expected = json!({"choices": [], "usage": {"prompt_tokens": 127, "completion_tokens": 30,
        "total_tokens": 157, "prompt_tokens_details": {"cached_tokens": 7}}});
    assert!(has(usage, &expected), "{usage}");

    let choices: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]).collect();
    let (last, others) = choices.split_last().unwrap();
    assert!(has(last, &json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"})));
    assert!(others.iter().all(|choice| choice.get("finish_reason") == Some(&Value::Null)));
    assert!(has(&others[0]["delta"], &json!({"role": "assistant", "content": ""})));
    let text: Vec<&str> = others.iter().filter_map(|choice| choice["delta"]["content"].as_str()).collect();
    assert!(text.len() > 3 && text.concat() == "I will look.");
}

#[test]
fn calls_have_an_index_and_arguments_in_fragments() {
    let server = researcher(STEP);
    let chunks = chunks(&server_sent(&ask(&server, OpenAi, &[TestMessage::User("solar")])));
    let deltas: Vec<&Value> =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0)).collect();
    let of = |index: u64| deltas.iter().filter(move |call| call["index"] == index).collect::<Vec<_>>();
    for (index, tool, input) in [(0, "read", r#"{"path":"a.md"}"#), (1, "list", "{}")] {
        let calls = of(index);
        let (first, rest) = calls.split_first().unwrap();
        assert!(has(first, &json!({"type": "function", "function": {"name": tool, "arguments": ""}})));
        assert!(first["id"].as_str().unwrap().starts_with("call_"));
        assert!(rest.iter().all(|call| call.get("id").is_none() && call["function"].get("name").is_none()));
        let parts: Vec<&str> = rest.iter().map(|c| c["function"]["arguments"].as_str().unwrap()).collect();
        assert_eq!(parts.concat(), input);
        assert!(parts.len() > 1);
    }
}

#[test]
fn usage_is_sent_only_on_request() {
    let server = researcher(STEP);
    let mut body = body(OpenAi, RESEARCHER, &[TestMessage::User("solar")]);
    body.as_object_mut().unwrap().remove("stream_options");
    let chunks = chunks(&server_sent(&send(&server, OpenAi, &body)));
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none() && chunk["choices"][0].is_object()));
}

#[test]
fn a_message_with_only_calls_has_no_content() {
    let server = researcher("[[agent.step]]\ncalls = [ { tool = \"read\" } ]");
    let chunks = chunks(&server_sent(&ask(&server, OpenAi, &[TestMessage::User("solar")])));
    assert_eq!(chunks[0]["choices"][0]["delta"].get("content"), Some(&Value::Null));
}
