//! Bedrock's stream, frame by frame; the decoder verifies every checksum independently.

use scripted_model::Wire::Bedrock;
use serde_json::json;

use crate::{
    client::{TestMessage, ask, has, researcher},
    stream_reader::frames,
};

const STEP: &str = "[[agent.step]]
text = \"I will look.\"
calls = [ { tool = \"read\", input = { path = \"a.md\" } } ]
usage = { input = 120, output = 30 }";

#[test]
fn every_frame_is_a_chunk_with_one_event() {
    let server = researcher(STEP);
    let answer = ask(&server, Bedrock, &[TestMessage::User("solar")]);
    assert_eq!((answer.status, answer.whole), (200, true));
    assert_eq!(answer.header("content-type"), Some("application/vnd.amazon.eventstream"));
    assert_eq!(answer.header("x-amzn-bedrock-content-type"), Some("application/json"));
    let frames = frames(&answer.body);
    let expected =
        [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
    for frame in &frames {
        let headers: Vec<_> =
            frame.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers, expected);
    }
    let length: usize = frames.iter().map(|frame| frame.event().to_string().len()).sum();
    assert!(answer.body.len() > length, "no bytes are left over");
    let events: Vec<_> = frames.iter().map(super::stream_reader::AwsFrame::event).collect();
    let mut kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    kinds.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected: Vec<&str> =
        [&["message_start"][..], &block, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(kinds, expected);
    let message = &events[0]["message"];
    assert!(has(message, &json!({"model": "anthropic.claude-x-v1:0", "usage": {"input_tokens": 120}})));
    assert!(message["id"].as_str().unwrap().starts_with("msg_bdrk_01"));
    let metrics = &events.last().unwrap()["amazon-bedrock-invocationMetrics"];
    assert!(has(metrics, &json!({"inputTokenCount": 120, "outputTokenCount": 30})));
}

#[test]
fn an_error_inside_the_stream_is_an_exception_frame() {
    let server = researcher("[[agent.step]]\nfault = \"stream_error\"\ntext = \"I will look.\"");
    let frames = frames(&ask(&server, Bedrock, &[TestMessage::User("solar")]).body);
    let (last, chunks) = frames.split_last().unwrap();
    assert!(!chunks.is_empty() && chunks.iter().all(|frame| frame.header(":message-type") == "event"));
    assert_eq!(last.header(":message-type"), "exception");
    assert_eq!(last.header(":exception-type"), "throttlingException");
    assert_eq!(last.header(":content-type"), "application/json");
    assert!(last.payload["message"].is_string());
}
