//! Parsing of answers, and the second request after an invalid one.

use super::*;
use crate::{Catalog, provider::RawCall};

fn model(supports: &[ModelFeature]) -> Model {
    let mut model = Catalog::load(None).unwrap().models["gpt"].clone();
    model.supports = supports.iter().copied().collect();
    model
}

fn request(messages: Vec<Message>) -> ChatRequest {
    let input = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    let tool = |name: &str| Tool { name: name.into(), description: String::new(), input: input.clone() };
    ChatRequest {
        system: String::new(),
        messages,
        tools: vec![tool("read"), tool("write")],
        max_output: 10,
        answer: AnswerForm::Any,
    }
}

fn raw(stop: StopReason, calls: &[(&str, &str, &str)]) -> RawReply {
    let call = |(id, tool, input): &(&str, &str, &str)| RawCall {
        id: (*id).into(),
        tool: (*tool).into(),
        input: (*input).into(),
    };
    RawReply { text: String::new(), calls: calls.iter().map(call).collect(), stop, usage: None }
}

fn parse_one(stop: StopReason, input: &str) -> Result<Value, String> {
    let reply =
        parse(raw(stop, &[("a", "read", input)]), &request(Vec::new()), &model(&[ModelFeature::Calls]));
    reply.map(|reply| reply.calls[0].input.clone()).map_err(|invalid| invalid.problem)
}

#[test]
fn inputs_are_parsed_and_repaired() {
    let good = json!({"path": "a"});
    let cases = [
        ("as it should be", r#"{"path": "a"}"#, Ok(good.clone())),
        ("repaired", "{'path': 'a',", Ok(good.clone())),
        ("JSON in a string", r#""{\"path\": \"a\"}""#, Ok(good.clone())),
        ("more than was asked", r#"{"path": "a", "why": 1}"#, Ok(json!({"path": "a", "why": 1}))),
        ("missing", "", Err("the input of read is wrong: `path` is missing")),
        ("null", "null", Err("the input of read is wrong: `path` is missing")),
        ("a list", "[1]", Err("the input of read is wrong: the value must be of type object")),
        (
            "half",
            r#"{"path": "a"#,
            Err("the input of read is no JSON: EOF while parsing a string at line 1 column 11"),
        ),
    ];
    for (name, input, expected) in cases {
        assert_eq!(parse_one(StopReason::Calls, input), expected.map_err(str::to_owned), "{name}");
    }
}

#[test]
fn an_input_that_was_cut_off_is_never_completed() {
    assert_eq!(parse_one(StopReason::Calls, r#"{"path": "a""#), Ok(json!({"path": "a"})));
    assert_eq!(
        parse_one(StopReason::Length, r#"{"path": "a""#),
        Err("it was too long and broke off; make it shorter".to_owned())
    );
}

#[test]
fn every_call_of_a_conversation_has_a_unique_id() {
    let before = ToolCall { id: "a".into(), tool: "read".into(), input: json!({}) };
    let messages = vec![
        Message::User { text: "Go.".into() },
        Message::Model { text: String::new(), calls: vec![before] },
        Message::Tools { results: Vec::new() },
    ];
    let input = r#"{"path": "a"}"#;
    let calls = [("a", "read", input), ("", "read", input), ("b", "read", input), ("b", "write", input)];
    let reply = parse(raw(StopReason::Calls, &calls), &request(messages), &model(&[])).unwrap();
    let ids: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_3_0", "call_3_1", "b", "call_3_3"]);
}

#[test]
fn a_refusal_is_a_valid_answer() {
    let request =
        ChatRequest { answer: AnswerForm::Json { schema: json!({"type": "object"}) }, ..request(Vec::new()) };
    let reply = parse(raw(StopReason::Refusal, &[("a", "read", "{}")]), &request, &model(&[])).unwrap();
    assert_eq!((reply.stop, reply.calls.len()), (StopReason::Refusal, 0));
}

#[test]
fn the_stop_reason_matches_the_calls() {
    let input = r#"{"path": "a"}"#;
    let cases = [
        (StopReason::End, true, StopReason::Calls),
        (StopReason::Calls, true, StopReason::Calls),
        (StopReason::Calls, false, StopReason::End),
        (StopReason::Length, true, StopReason::Length),
        (StopReason::Length, false, StopReason::Length),
    ];
    for (stop, calls, expected) in cases {
        let calls: &[_] = if calls { &[("a", "read", input)] } else { &[] };
        let reply = parse(raw(stop, calls), &request(Vec::new()), &model(&[])).unwrap();
        assert_eq!(reply.stop, expected, "{stop:?} with {} calls", calls.len());
    }
}

#[test]
fn the_second_request_quotes_the_answer_and_names_its_problem() {
    let first = request(vec![Message::User { text: "Go.".into() }]);
    let invalid = InvalidReply { problem: "no tool was called".into(), quote: "x".repeat(5000) };
    let again = ask_again(&first, &invalid);
    let [Message::User { .. }, Message::Model { text, calls }, Message::User { text: problem }] =
        &again.messages[..]
    else {
        panic!("{:?}", again.messages);
    };
    assert_eq!((text.len(), calls.len()), (LONGEST_QUOTE, 0));
    assert!(problem.starts_with("This answer cannot be used: no tool was called."), "{problem}");
}
