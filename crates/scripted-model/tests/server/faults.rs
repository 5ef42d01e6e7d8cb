//! Every fault with every protocol: it has the provider's format and happens as often as configured, then the step is
//! played.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use scripted_model::{Fault, RequestOutcome, Wire};
use serde_json::{Value, json};

use crate::{
    client::{Answer, RESEARCHER, TestMessage, ask, body, has, headers, path, request, researcher},
    stream_reader::read_stream,
};

const HELLO: [TestMessage; 1] = [TestMessage::User("solar")];

fn step(fault: &str) -> String {
    format!(
        "[[agent.step]]\n{fault}\ntext = \"I will look.\"\ncalls = [ {{ tool = \"read\", input = {{ path = \"a.md\" }} }} ]"
    )
}

fn check_played(wire: Wire, answer: &Answer) {
    let reply = read_stream(wire, answer);
    assert!(answer.whole && reply.ended && reply.error.is_none(), "{reply:?}");
    assert_eq!((reply.text.as_str(), reply.calls.len()), ("I will look.", 1));
    assert_eq!(reply.calls[0].2, r#"{"path":"a.md"}"#);
}

/// The fault happens twice, in this format for each protocol, then the step is played.
fn check_status(fault: &str, expected: [(u16, Value); 3]) {
    for (wire, (status, fields)) in Wire::ALL.into_iter().zip(expected) {
        let server = researcher(&step(&format!("fault = \"{fault}\"\ntimes = 2")));
        for _ in 0..2 {
            let answer = ask(&server, wire, &HELLO);
            assert_eq!(answer.status, status, "{wire:?}");
            assert_eq!(answer.header("content-type"), Some("application/json"));
            let mut found = answer.json();
            if let Some(kind) = answer.header("x-amzn-errortype") {
                found["errortype"] = kind.into();
            }
            assert!(has(&found, &fields), "{wire:?}: {found}");
        }
        check_played(wire, &ask(&server, wire, &HELLO));
        assert!(server.refusals().is_empty(), "a scripted fault is not a refusal");
    }
}

fn anthropic(kind: &str) -> Value {
    json!({"type": "error", "error": {"type": kind}})
}

fn openai(kind: &str, code: Option<&str>) -> Value {
    json!({"error": {"type": kind, "code": code}})
}

fn aws(kind: &str) -> Value {
    json!({"errortype": kind})
}

#[test]
fn failures_have_the_status_and_format_of_each_provider() {
    check_status(
        "rate_limit",
        [
            (429, anthropic("rate_limit_error")),
            (429, openai("requests", Some("rate_limit_exceeded"))),
            (429, aws("ThrottlingException")),
        ],
    );
    check_status(
        "overloaded",
        [
            (529, anthropic("overloaded_error")),
            (503, openai("server_error", None)),
            (503, aws("ServiceUnavailableException")),
        ],
    );
    check_status(
        "auth",
        [
            (401, anthropic("authentication_error")),
            (401, openai("invalid_request_error", Some("invalid_api_key"))),
            (403, aws("UnrecognizedClientException")),
        ],
    );
    check_status(
        "bad_request",
        [
            (400, anthropic("invalid_request_error")),
            (400, openai("invalid_request_error", None)),
            (400, aws("ValidationException")),
        ],
    );
    check_status(
        "context_too_long",
        [
            (400, json!({"error": {"message": "prompt is too long: 208310 tokens > 200000 maximum"}})),
            (400, openai("invalid_request_error", Some("context_length_exceeded"))),
            (400, json!({"message": "Input is too long for requested model."})),
        ],
    );
    check_status(
        "server_error",
        [
            (500, anthropic("api_error")),
            (500, openai("server_error", None)),
            (500, aws("InternalServerException")),
        ],
    );
}

#[test]
fn a_rate_limit_has_a_retry_after_header() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"rate_limit\"\nretry_after = 3"));
        assert_eq!(ask(&server, wire, &HELLO).header("retry-after"), Some("3"), "{wire:?}");
    }
}

#[test]
fn a_cut_comes_midway_and_inside_an_event() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"cut\""));
        let answer = ask(&server, wire, &HELLO);
        assert_eq!((answer.status, answer.whole), (200, false), "{wire:?}");
        let reply = read_stream(wire, &answer);
        assert!(!reply.text.is_empty() && !reply.ended, "{reply:?}");
        assert!(!answer.body.ends_with(b"\n\n"));
        check_played(wire, &ask(&server, wire, &HELLO));
    }
}

#[test]
fn an_immediate_cut_leaves_only_the_headers() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"cut_at_once\""));
        let answer = ask(&server, wire, &HELLO);
        assert_eq!((answer.status, answer.whole, answer.body.len()), (200, false, 0), "{wire:?}");
        check_played(wire, &ask(&server, wire, &HELLO));
    }
}

#[test]
fn an_error_inside_a_stream_ends_it_regularly() {
    let expected = [anthropic("overloaded_error"), openai("server_error", None), json!({})];
    for (wire, fields) in Wire::ALL.into_iter().zip(expected) {
        let server = researcher(&step("fault = \"stream_error\""));
        let answer = ask(&server, wire, &HELLO);
        let reply = read_stream(wire, &answer);
        assert!(answer.status == 200 && answer.whole && !reply.ended && !reply.text.is_empty());
        assert!(reply.error.as_ref().is_some_and(|error| has(error, &fields)), "{wire:?}: {reply:?}");
        check_played(wire, &ask(&server, wire, &HELLO));
    }
}

#[test]
fn bad_json_comes_in_an_otherwise_valid_stream() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"bad_json\""));
        let reply = read_stream(wire, &ask(&server, wire, &HELLO));
        assert!(reply.ended && serde_json::from_str::<Value>(&reply.calls[0].2).is_err(), "{reply:?}");
        check_played(wire, &ask(&server, wire, &HELLO));
    }
}

#[test]
fn refusals_and_truncated_replies_have_a_stop_reason_and_no_calls() {
    for (fault, text, stops) in [
        ("refuse", "I will look.", ["refusal", "content_filter", "refusal"]),
        ("length", "I will", ["max_tokens", "length", "max_tokens"]),
    ] {
        for (wire, stop) in Wire::ALL.into_iter().zip(stops) {
            let server = researcher(&step(&format!("fault = \"{fault}\"")));
            let reply = read_stream(wire, &ask(&server, wire, &HELLO));
            assert!(reply.ended && reply.calls.is_empty(), "{reply:?}");
            assert_eq!((reply.text.as_str(), reply.stop.as_str()), (text, stop));
            check_played(wire, &ask(&server, wire, &HELLO));
        }
    }
}

#[test]
fn a_slow_stream_is_delayed_and_complete() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"slow\"\ndelay_ms = 5"));
        let begin = Instant::now();
        check_played(wire, &ask(&server, wire, &HELLO));
        assert!(begin.elapsed() > Duration::from_millis(100), "{:?}", begin.elapsed());
    }
}

#[test]
fn a_delay_comes_before_the_first_byte() {
    let server = researcher(&step("delay_ms = 80"));
    let begin = Instant::now();
    check_played(Wire::OpenAi, &ask(&server, Wire::OpenAi, &HELLO));
    assert!(begin.elapsed() >= Duration::from_millis(80));
}

#[test]
fn silence_lasts_until_the_client_disconnects_and_blocks_no_other_request() {
    let server = researcher(&step("fault = \"silent\""));
    for wire in Wire::ALL {
        server.set_script(
            scripted_model::Script::parse(&format!("[[agent]]\n{}", step("fault = \"silent\""))).unwrap(),
        );
        let text = body(wire, RESEARCHER, &HELLO).to_string();
        let mut socket = request(server.address(), path(wire), &headers(wire, server.key()), &text);
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(socket.read(&mut [0; 1]).is_err(), "no byte came");
        check_played(wire, &ask(&server, wire, &HELLO));
    }
    let faults: Vec<_> = server.requests().into_iter().map(|request| request.outcome).collect();
    let played = |fault| RequestOutcome::Played { agent: "any".into(), step: 0, fault };
    assert_eq!(faults[..2], [played(Some(Fault::Silent)), played(None)]);
}

#[test]
fn faults_are_counted_per_step_and_reset_by_a_new_script() {
    let steps = format!("{}\n{}", step("fault = \"overloaded\""), step("fault = \"overloaded\""));
    let server = researcher(&steps);
    let later =
        [TestMessage::User("solar"), TestMessage::Model("I looked.", Vec::new()), TestMessage::User("more")];
    let statuses =
        |messages: &[TestMessage]| [(); 2].map(|()| ask(&server, Wire::Anthropic, messages).status);
    assert_eq!((statuses(&HELLO), statuses(&later)), ([529, 200], [529, 200]));
    server.set_script(scripted_model::Script::parse(&format!("[[agent]]\n{steps}")).unwrap());
    assert_eq!(statuses(&HELLO), [529, 200]);
}
