//! Streams of OpenAI and compatible servers: complete, truncated and malformed.

use super::*;
use crate::ErrorClass;

fn read(stream: &str) -> (Result<RawReply, ProviderError>, Vec<Delta>) {
    let mut reader = OpenAi.reader();
    let mut deltas = Vec::new();
    for piece in stream.as_bytes().chunks(7) {
        if let Err(error) = reader.read(piece, &mut deltas) {
            return (Err(error), deltas);
        }
    }
    (reader.finish(), deltas)
}

fn stream(chunks: &[&str]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}}"#;

#[test]
fn a_complete_reply_is_decoded_and_its_deltas_are_reported() {
    let first = delta(r#"{"role":"assistant","content":""}"#);
    let (reply, deltas) = read(&stream(&[
        &first,
        &delta(r#"{"content":"Hel"}"#),
        &delta(r#"{"content":"lo"}"#),
        &finish("stop"),
        USAGE,
        END_MARKER,
    ]));
    let usage = Usage { input: 40, cache_read: 60, cache_write: 0, output: 7 };
    let expected =
        RawReply { text: "Hello".into(), calls: Vec::new(), stop: StopReason::End, usage: Some(usage) };
    assert_eq!(reply, Ok(expected));
    assert_eq!(deltas, [Delta::Text("Hel".into()), Delta::Text("lo".into())]);
}

/// The decoded calls as id, tool and input.
fn calls(deltas: &[&str]) -> Vec<(String, String, String)> {
    let mut chunks: Vec<String> = deltas.iter().map(|part| delta(part)).collect();
    chunks.extend([finish("tool_calls"), END_MARKER.to_owned()]);
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    let (reply, _) = read(&stream(&chunks));
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::Calls);
    reply.calls.into_iter().map(|call| (call.id, call.tool, call.input)).collect()
}

#[test]
fn calls_of_every_dialect_are_assembled() {
    let a = ("a".to_owned(), "read".to_owned(), r#"{"p":1}"#.to_owned());
    let b = ("b".to_owned(), "list".to_owned(), r#"{"q":2}"#.to_owned());
    let no_id = |call: &(String, String, String)| (String::new(), call.1.clone(), call.2.clone());
    let cases: [(&str, Vec<&str>, Vec<_>); 6] = [
        (
            "OpenAI: by index, in parts",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\""}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"list","arguments":"{\"q\":2}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}"#,
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "everything in one part",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}},{"index":1,"id":"b","function":{"name":"list","arguments":"{\"q\":2}"}}]}"#,
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "the same index for all",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"list","arguments":"{\"q\":2}"}}]}"#,
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "no index",
            vec![
                r#"{"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{\"p\":"}}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"1}"}}]}"#,
                r#"{"tool_calls":[{"id":"b","function":{"name":"list","arguments":"{\"q\":2}"}}]}"#,
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "no ids",
            vec![
                r#"{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"p\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"","function":{"name":"list","arguments":"{\"q\":2}"}}]}"#,
            ],
            vec![no_id(&a), no_id(&b)],
        ),
        (
            "the input as an object, the id repeated",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":{"p":1}}}]}"#,
            ],
            vec![a.clone()],
        ),
    ];
    for (name, deltas, expected) in cases {
        assert_eq!(calls(&deltas), expected, "{name}");
    }
}

#[test]
fn thinking_is_reported_but_not_part_of_the_reply() {
    let cases = [
        (r#"{"reasoning_content":"Hm"}"#, vec![Delta::Thought("Hm".into())]),
        (r#"{"reasoning":"Hm"}"#, vec![Delta::Thought("Hm".into())]),
        (r#"{"content":"<think>Hm</think>\n"}"#, vec![Delta::Text("<think>Hm</think>\n".into())]),
    ];
    for (part, mut expected) in cases {
        let (reply, deltas) =
            read(&stream(&[&delta(part), &delta(r#"{"content":"yes"}"#), &finish("stop"), END_MARKER]));
        expected.push(Delta::Text("yes".into()));
        assert_eq!(reply.map(|reply| reply.text), Ok("yes".into()), "{part}");
        assert_eq!(deltas, expected, "{part}");
    }
}

#[test]
fn usage_of_every_dialect_is_understood() {
    let usage = |input, cache_read, output| Some(Usage { input, cache_read, cache_write: 0, output });
    let cases = [
        ("none", r#"{"choices":[]}"#, None),
        ("null", r#"{"choices":[],"usage":null}"#, None),
        ("plain", r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#, usage(9, 0, 2)),
        (
            "no details",
            r#"{"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":null}}"#,
            usage(9, 0, 2),
        ),
        (
            "Moonshot",
            r#"{"choices":[{"delta":{},"usage":{"prompt_tokens":9,"completion_tokens":2,"cached_tokens":4}}]}"#,
            usage(5, 4, 2),
        ),
        (
            "more cached than read",
            r#"{"choices":[],"usage":{"prompt_tokens":9,"cached_tokens":20}}"#,
            usage(0, 9, 0),
        ),
    ];
    for (name, chunk, expected) in cases {
        let (reply, _) = read(&stream(&[&finish("stop"), chunk, END_MARKER]));
        assert_eq!(reply.map(|reply| reply.usage), Ok(expected), "{name}");
    }
}

#[test]
fn every_finish_reason_is_mapped() {
    let cases = [
        ("stop", StopReason::End),
        ("tool_calls", StopReason::Calls),
        ("function_call", StopReason::Calls),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refusal),
        ("sensitive", StopReason::Refusal),
        ("eos", StopReason::End),
    ];
    for (reason, expected) in cases {
        let (reply, _) = read(&stream(&[&finish(reason), END_MARKER]));
        assert_eq!(reply.map(|reply| reply.stop), Ok(expected), "{reason}");
    }
}

#[test]
fn a_stream_truncated_anywhere_is_an_error() {
    let whole = stream(&[&delta(r#"{"content":"Hello"}"#), &finish("stop"), USAGE, END_MARKER]);
    assert!(read(&whole).0.is_ok());
    for length in 0..whole.len() - 1 {
        let class = read(&whole[..length]).0.map_err(|error| error.class);
        assert_eq!(class, Err(ErrorClass::Retryable), "after {length} bytes");
    }
    let without_reason = stream(&[&delta(r#"{"content":"Hello"}"#), END_MARKER]);
    assert_eq!(read(&without_reason).0.map_err(|error| error.class), Err(ErrorClass::Retryable));
}

#[test]
fn errors_inside_a_stream_are_classified() {
    let cases = [
        (r#"{"error":{"message":"busy","type":"server_error"}}"#, ErrorClass::Retryable),
        (
            r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#,
            ErrorClass::RateLimit { after: None },
        ),
        (
            r#"{"error":{"message":"The engine is busy","type":"engine_overloaded_error"}}"#,
            ErrorClass::Overloaded,
        ),
        (r#"{"error":"something"}"#, ErrorClass::Retryable),
        ("<html>", ErrorClass::Retryable),
    ];
    for (chunk, class) in cases {
        let (reply, _) = read(&stream(&[&delta(r#"{"content":"x"}"#), chunk]));
        assert_eq!(reply.map_err(|error| error.class), Err(class), "{chunk}");
    }
}
