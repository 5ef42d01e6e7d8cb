//! What an answer is read as, and what is asked when it cannot be read.

use super::*;
use crate::{Catalog, provider::RawCall};

fn model(supports: &[Support]) -> Model {
    let mut model = Catalog::load(None).unwrap().models["gpt"].clone();
    model.supports = supports.iter().copied().collect();
    model
}

fn request(messages: Vec<Message>) -> Request {
    let input = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    let tool = |name: &str| Tool { name: name.into(), description: String::new(), input: input.clone() };
    Request {
        system: String::new(),
        messages,
        tools: vec![tool("read"), tool("write")],
        max_output: 10,
        answer: AnswerForm::Any,
    }
}

fn raw(stop: Stop, calls: &[(&str, &str, &str)]) -> RawReply {
    let call = |(id, tool, input): &(&str, &str, &str)| RawCall {
        id: (*id).into(),
        tool: (*tool).into(),
        input: (*input).into(),
    };
    RawReply { text: String::new(), calls: calls.iter().map(call).collect(), stop, usage: None }
}

fn read_one(stop: Stop, input: &str) -> Result<Value, String> {
    let reply = read(raw(stop, &[("a", "read", input)]), &request(Vec::new()), &model(&[Support::Calls]));
    reply.map(|reply| reply.calls[0].input.clone()).map_err(|flaw| flaw.problem)
}

#[test]
fn inputs_are_read_as_they_were_meant() {
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
        assert_eq!(read_one(Stop::Calls, input), expected.map_err(str::to_owned), "{name}");
    }
}

#[test]
fn an_input_that_was_cut_off_is_never_completed() {
    assert_eq!(read_one(Stop::Calls, r#"{"path": "a""#), Ok(json!({"path": "a"})));
    assert_eq!(
        read_one(Stop::Length, r#"{"path": "a""#),
        Err("it was too long and broke off; make it shorter".to_owned())
    );
}

#[test]
fn every_call_of_a_conversation_has_an_id_of_its_own() {
    let before = Call { id: "a".into(), tool: "read".into(), input: json!({}) };
    let messages = vec![
        Message::User { text: "Go.".into() },
        Message::Model { text: String::new(), calls: vec![before] },
        Message::Tools { results: Vec::new() },
    ];
    let input = r#"{"path": "a"}"#;
    let calls = [("a", "read", input), ("", "read", input), ("b", "read", input), ("b", "write", input)];
    let reply = read(raw(Stop::Calls, &calls), &request(messages), &model(&[])).unwrap();
    let ids: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_3_0", "call_3_1", "b", "call_3_3"]);
}

#[test]
fn a_refusal_is_an_answer() {
    let request =
        Request { answer: AnswerForm::Json { schema: json!({"type": "object"}) }, ..request(Vec::new()) };
    let reply = read(raw(Stop::Refusal, &[("a", "read", "{}")]), &request, &model(&[])).unwrap();
    assert_eq!((reply.stop, reply.calls.len()), (Stop::Refusal, 0));
}

#[test]
fn a_stop_fits_the_calls() {
    let input = r#"{"path": "a"}"#;
    let cases = [
        (Stop::End, true, Stop::Calls),
        (Stop::Calls, true, Stop::Calls),
        (Stop::Calls, false, Stop::End),
        (Stop::Length, true, Stop::Length),
        (Stop::Length, false, Stop::Length),
    ];
    for (stop, calls, expected) in cases {
        let calls: &[_] = if calls { &[("a", "read", input)] } else { &[] };
        let reply = read(raw(stop, calls), &request(Vec::new()), &model(&[])).unwrap();
        assert_eq!(reply.stop, expected, "{stop:?} with {} calls", calls.len());
    }
}

#[test]
fn the_second_question_quotes_the_answer_and_names_its_flaw() {
    let first = request(vec![Message::User { text: "Go.".into() }]);
    let flaw = Flaw { problem: "no tool was called".into(), said: "x".repeat(5000) };
    let again = ask_again(&first, &flaw);
    let [Message::User { .. }, Message::Model { text, calls }, Message::User { text: told }] =
        &again.messages[..]
    else {
        panic!("{:?}", again.messages);
    };
    assert_eq!((text.len(), calls.len()), (LONGEST_QUOTE, 0));
    assert!(told.starts_with("This answer cannot be used: no tool was called."), "{told}");
}
