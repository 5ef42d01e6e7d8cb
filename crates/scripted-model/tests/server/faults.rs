//! Every fault on every wire: it has the provider's form, happens as often as told, and then the step is played.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use scripted_model::{Fault, Outcome, Wire};
use serde_json::{Value, json};

use crate::{
    client::{Answer, RESEARCHER, Said, ask, body, has, headers, path, request, researcher},
    listening::hear,
};

const HELLO: [Said; 1] = [Said::User("solar")];

fn step(fault: &str) -> String {
    format!(
        "[[agent.step]]\n{fault}\ntext = \"I will look.\"\ncalls = [ {{ tool = \"read\", input = {{ path = \"a.md\" }} }} ]"
    )
}

fn check_played(wire: Wire, answer: &Answer) {
    let heard = hear(wire, answer);
    assert!(answer.whole && heard.ended && heard.error.is_none(), "{heard:?}");
    assert_eq!((heard.text.as_str(), heard.calls.len()), ("I will look.", 1));
    assert_eq!(heard.calls[0].2, r#"{"path":"a.md"}"#);
}

/// The fault happens twice, in this form on each wire, and then the step is played.
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
        assert!(server.refusals().is_empty(), "a fault of the script's is no refusal");
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
fn failures_have_the_status_and_the_shape_of_each_provider() {
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
fn a_rate_limit_says_when_to_come_back() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"rate_limit\"\nretry_after = 3"));
        assert_eq!(ask(&server, wire, &HELLO).header("retry-after"), Some("3"), "{wire:?}");
    }
}

#[test]
fn a_cut_comes_after_some_of_the_reply_and_inside_an_event() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"cut\""));
        let answer = ask(&server, wire, &HELLO);
        assert_eq!((answer.status, answer.whole), (200, false), "{wire:?}");
        let heard = hear(wire, &answer);
        assert!(!heard.text.is_empty() && !heard.ended, "{heard:?}");
        assert!(!answer.body.ends_with(b"\n\n"));
        check_played(wire, &ask(&server, wire, &HELLO));
    }
}

#[test]
fn a_cut_at_once_leaves_only_the_head() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"cut_at_once\""));
        let answer = ask(&server, wire, &HELLO);
        assert_eq!((answer.status, answer.whole, answer.body.len()), (200, false, 0), "{wire:?}");
        check_played(wire, &ask(&server, wire, &HELLO));
    }
}

#[test]
fn an_error_inside_a_stream_ends_it_in_order() {
    let expected = [anthropic("overloaded_error"), openai("server_error", None), json!({})];
    for (wire, fields) in Wire::ALL.into_iter().zip(expected) {
        let server = researcher(&step("fault = \"stream_error\""));
        let answer = ask(&server, wire, &HELLO);
        let heard = hear(wire, &answer);
        assert!(answer.status == 200 && answer.whole && !heard.ended && !heard.text.is_empty());
        assert!(heard.error.as_ref().is_some_and(|error| has(error, &fields)), "{wire:?}: {heard:?}");
        check_played(wire, &ask(&server, wire, &HELLO));
    }
}

#[test]
fn bad_json_comes_in_a_stream_that_is_otherwise_in_order() {
    for wire in Wire::ALL {
        let server = researcher(&step("fault = \"bad_json\""));
        let heard = hear(wire, &ask(&server, wire, &HELLO));
        assert!(heard.ended && serde_json::from_str::<Value>(&heard.calls[0].2).is_err(), "{heard:?}");
        check_played(wire, &ask(&server, wire, &HELLO));
    }
}

#[test]
fn a_refusal_and_a_reply_that_is_too_long_say_so_and_have_no_calls() {
    for (fault, text, stops) in [
        ("refuse", "I will look.", ["refusal", "content_filter", "refusal"]),
        ("length", "I will", ["max_tokens", "length", "max_tokens"]),
    ] {
        for (wire, stop) in Wire::ALL.into_iter().zip(stops) {
            let server = researcher(&step(&format!("fault = \"{fault}\"")));
            let heard = hear(wire, &ask(&server, wire, &HELLO));
            assert!(heard.ended && heard.calls.is_empty(), "{heard:?}");
            assert_eq!((heard.text.as_str(), heard.stop.as_str()), (text, stop));
            check_played(wire, &ask(&server, wire, &HELLO));
        }
    }
}

#[test]
fn a_slow_stream_takes_its_time_and_is_whole() {
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
fn silence_lasts_until_the_client_goes_and_holds_up_nobody() {
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
    let played = |fault| Outcome::Played { agent: "any".into(), step: 0, fault };
    assert_eq!(faults[..2], [played(Some(Fault::Silent)), played(None)]);
}

#[test]
fn faults_are_counted_for_each_step_and_anew_for_a_new_script() {
    let steps = format!("{}\n{}", step("fault = \"overloaded\""), step("fault = \"overloaded\""));
    let server = researcher(&steps);
    let later = [Said::User("solar"), Said::Model("I looked.", Vec::new()), Said::User("more")];
    let statuses = |said: &[Said]| [(); 2].map(|()| ask(&server, Wire::Anthropic, said).status);
    assert_eq!((statuses(&HELLO), statuses(&later)), ([529, 200], [529, 200]));
    server.set_script(scripted_model::Script::parse(&format!("[[agent]]\n{steps}")).unwrap());
    assert_eq!(statuses(&HELLO), [529, 200]);
}
