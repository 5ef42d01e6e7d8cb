//! Anthropic's streams: complete, truncated and malformed.

use super::*;
use crate::ErrorClass;

/// Feeds a stream to the reader in small pieces.
fn read(stream: &str) -> (Result<RawReply, ProviderError>, Vec<Delta>) {
    let mut reader = Anthropic.reader();
    let mut deltas = Vec::new();
    for piece in stream.as_bytes().chunks(7) {
        if let Err(error) = reader.read(piece, &mut deltas) {
            return (Err(error), deltas);
        }
    }
    (reader.finish(), deltas)
}

fn stream(events: &[&str]) -> String {
    events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}}}"#;
const TEXT: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const HELLO: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#;
const THERE: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}"#;
const PING: &str = r#"{"type":"ping"}"#;
const NEW: &str = r#"{"type":"something_new","index":7}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn ends(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":5}}}}"#
    )
}

#[test]
fn a_complete_reply_is_decoded_and_its_deltas_are_reported() {
    let (reply, deltas) = read(&stream(&[START, PING, TEXT, HELLO, NEW, THERE, &ends("end_turn"), STOP]));
    let usage = Usage { input: 10, cache_write: 20, cache_read: 30, output: 5 };
    let expected =
        RawReply { text: "Hello there".into(), calls: Vec::new(), stop: StopReason::End, usage: Some(usage) };
    assert_eq!(reply, Ok(expected));
    assert_eq!(deltas, [Delta::Text("Hello".into()), Delta::Text(" there".into())]);
}

#[test]
fn inputs_of_parallel_calls_are_kept_apart() {
    let call = |index: u8, name: &str| {
        format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"toolu_{index}","name":"{name}","input":{{}}}}}}"#
        )
    };
    let part = |index: u8, part: &str| {
        let part = serde_json::to_string(part).unwrap();
        format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":{part}}}}}"#
        )
    };
    let events = [
        START.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#
            .into(),
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#
            .into(),
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}"#
            .into(),
        call(1, "read"),
        part(1, ""),
        call(2, "list"),
        part(1, "{\"path\":"),
        part(1, " \"a\"}"),
        ends("tool_use"),
        STOP.to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let (reply, deltas) = read(&stream(&events));
    let reply = reply.unwrap();
    let calls: Vec<(&str, &str, &str)> =
        reply.calls.iter().map(|call| (call.id.as_str(), call.tool.as_str(), call.input.as_str())).collect();
    assert_eq!(calls, [("toolu_1", "read", "{\"path\": \"a\"}"), ("toolu_2", "list", "{}")]);
    assert_eq!(reply.stop, StopReason::Calls);
    let call = |tool: &str| Delta::Call { tool: tool.into() };
    let input = |text: &str| Delta::Input(text.into());
    let inputs = [input("{\"path\":"), input(" \"a\"}")];
    assert_eq!(deltas[..3], [Delta::Thought("Hm".into()), call("read"), call("list")]);
    assert_eq!(deltas[3..], inputs);
}

#[test]
fn every_stop_reason_is_mapped() {
    let cases = [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("tool_use", StopReason::Calls),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refusal),
        ("new_in_2030", StopReason::End),
    ];
    for (reason, expected) in cases {
        let (reply, _) = read(&stream(&[START, &ends(reason), STOP]));
        assert_eq!(reply.map(|reply| reply.stop), Ok(expected), "{reason}");
    }
}

#[test]
fn a_stream_truncated_anywhere_is_an_error() {
    let whole = stream(&[START, TEXT, HELLO, &ends("end_turn"), STOP]);
    assert!(read(&whole).0.is_ok());
    for length in 0..whole.len() - 1 {
        let class = read(&whole[..length]).0.map_err(|error| error.class);
        assert_eq!(class, Err(ErrorClass::Retryable), "after {length} bytes");
    }
}

#[test]
fn errors_inside_a_stream_are_classified() {
    let cases = [
        ("overloaded_error", ErrorClass::Overloaded),
        ("rate_limit_error", ErrorClass::RateLimit { after: None }),
        ("api_error", ErrorClass::Retryable),
        ("invalid_request_error", ErrorClass::BadRequest),
        ("new_in_2030", ErrorClass::Retryable),
    ];
    for (kind, class) in cases {
        let error = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}}}}"#);
        let (reply, deltas) = read(&stream(&[START, TEXT, HELLO, &error]));
        assert_eq!(reply.map_err(|error| error.class), Err(class), "{kind}");
        assert_eq!(deltas.len(), 1, "deltas before the error are reported");
    }
}

#[test]
fn an_event_with_invalid_json_is_retryable() {
    let (reply, _) = read(&stream(&[START, "{\"type\":"]));
    assert_eq!(reply.map_err(|error| error.class), Err(ErrorClass::Retryable));
}
