//! Streams of OpenAI's and its relatives', whole, cut and wrong.

use super::*;
use crate::ErrorClass;

fn read(stream: &str) -> (Result<RawReply, Failure>, Vec<Delta>) {
    let mut reader = OpenAi.reader();
    let mut heard = Vec::new();
    for piece in stream.as_bytes().chunks(7) {
        if let Err(failure) = reader.read(piece, &mut heard) {
            return (Err(failure), heard);
        }
    }
    (reader.finish(), heard)
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
fn a_whole_reply_is_read_and_heard() {
    let first = delta(r#"{"role":"assistant","content":""}"#);
    let (reply, heard) = read(&stream(&[
        &first,
        &delta(r#"{"content":"Hel"}"#),
        &delta(r#"{"content":"lo"}"#),
        &finish("stop"),
        USAGE,
        END,
    ]));
    let usage = Usage { input: 40, cache_read: 60, cache_write: 0, output: 7 };
    let expected = RawReply { text: "Hello".into(), calls: Vec::new(), stop: Stop::End, usage: Some(usage) };
    assert_eq!(reply, Ok(expected));
    assert_eq!(heard, [Delta::Text("Hel".into()), Delta::Text("lo".into())]);
}

/// Calls as id, tool and input.
fn calls(deltas: &[&str]) -> Vec<(String, String, String)> {
    let mut chunks: Vec<String> = deltas.iter().map(|part| delta(part)).collect();
    chunks.extend([finish("tool_calls"), END.to_owned()]);
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    let (reply, _) = read(&stream(&chunks));
    let reply = reply.unwrap();
    assert_eq!(reply.stop, Stop::Calls);
    reply.calls.into_iter().map(|call| (call.id, call.tool, call.input)).collect()
}

#[test]
fn calls_of_every_dialect_are_put_together() {
    let a = ("a".to_owned(), "read".to_owned(), r#"{"p":1}"#.to_owned());
    let b = ("b".to_owned(), "list".to_owned(), r#"{"q":2}"#.to_owned());
    let no_id = |call: &(String, String, String)| (String::new(), call.1.clone(), call.2.clone());
    let cases: [(&str, Vec<&str>, Vec<_>); 6] = [
        (
            "OpenAI: by place, in parts",
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
            "the same place for all",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"list","arguments":"{\"q\":2}"}}]}"#,
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "no place",
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
fn thoughts_are_heard_and_not_kept() {
    let cases = [
        (r#"{"reasoning_content":"Hm"}"#, vec![Delta::Thought("Hm".into())]),
        (r#"{"reasoning":"Hm"}"#, vec![Delta::Thought("Hm".into())]),
        (r#"{"content":"<think>Hm</think>\n"}"#, vec![Delta::Text("<think>Hm</think>\n".into())]),
    ];
    for (part, mut expected) in cases {
        let (reply, heard) =
            read(&stream(&[&delta(part), &delta(r#"{"content":"yes"}"#), &finish("stop"), END]));
        expected.push(Delta::Text("yes".into()));
        assert_eq!(reply.map(|reply| reply.text), Ok("yes".into()), "{part}");
        assert_eq!(heard, expected, "{part}");
    }
}

#[test]
fn counts_of_every_dialect_are_understood() {
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
        let (reply, _) = read(&stream(&[&finish("stop"), chunk, END]));
        assert_eq!(reply.map(|reply| reply.usage), Ok(expected), "{name}");
    }
}

#[test]
fn every_finish_reason_has_its_meaning() {
    let cases = [
        ("stop", Stop::End),
        ("tool_calls", Stop::Calls),
        ("function_call", Stop::Calls),
        ("length", Stop::Length),
        ("content_filter", Stop::Refusal),
        ("sensitive", Stop::Refusal),
        ("eos", Stop::End),
    ];
    for (reason, expected) in cases {
        let (reply, _) = read(&stream(&[&finish(reason), END]));
        assert_eq!(reply.map(|reply| reply.stop), Ok(expected), "{reason}");
    }
}

#[test]
fn a_stream_cut_anywhere_is_no_reply() {
    let whole = stream(&[&delta(r#"{"content":"Hello"}"#), &finish("stop"), USAGE, END]);
    assert!(read(&whole).0.is_ok());
    for length in 0..whole.len() - 1 {
        let class = read(&whole[..length]).0.map_err(|failure| failure.class);
        assert_eq!(class, Err(ErrorClass::Retryable), "after {length} bytes");
    }
    let without_reason = stream(&[&delta(r#"{"content":"Hello"}"#), END]);
    assert_eq!(read(&without_reason).0.map_err(|failure| failure.class), Err(ErrorClass::Retryable));
}

#[test]
fn errors_inside_a_stream_have_their_class() {
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
        assert_eq!(reply.map_err(|failure| failure.class), Err(class), "{chunk}");
    }
}
