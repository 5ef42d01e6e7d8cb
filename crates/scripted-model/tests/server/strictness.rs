//! Invalid requests are rejected with the messages and the status of the real services.

use scripted_model::{ACCESS_KEY, Wire};
use serde_json::{Value, json};

use crate::client::{Answer, RESEARCHER, TestMessage, ask, body, headers, path, post, researcher, send};

const STEPS: &str = "[[agent.step]]\ntext = \"one\"\n[[agent.step]]\ntext = \"two\"";

fn message(wire: Wire, answer: &Answer) -> String {
    let json = answer.json();
    let message = if wire == Wire::Bedrock { &json["message"] } else { &json["error"]["message"] };
    message.as_str().expect("a message").to_owned()
}

fn check_400(wire: Wire, answer: &Answer, expected: &str) {
    let found = message(wire, answer);
    assert_eq!(answer.status, 400, "{wire:?}: {found}");
    assert!(found.contains(expected), "{wire:?}: {found:?} has no {expected:?}");
}

/// A valid request with one change.
fn changed(wire: Wire, change: impl FnOnce(&mut Value)) -> Answer {
    let server = researcher(STEPS);
    let mut body = body(wire, RESEARCHER, &[TestMessage::User("solar")]);
    change(&mut body);
    send(&server, wire, &body)
}

fn call(id: &str) -> (String, &'static str) {
    (id.into(), "read")
}

fn result(id: &str) -> (String, &'static str) {
    (id.into(), "a result")
}

#[test]
fn missing_and_wrong_keys_are_rejected_and_not_echoed() {
    let server = researcher(STEPS);
    for (wire, status) in [(Wire::Anthropic, 401), (Wire::OpenAi, 401), (Wire::Bedrock, 403)] {
        let body = body(wire, RESEARCHER, &[TestMessage::User("solar")]).to_string();
        let with = |headers: &[(&str, String)]| post(server.address(), path(wire), headers, &body);
        let (none, wrong) = (with(&[]), with(&headers(wire, "sk-wrong")));
        assert_eq!((none.status, wrong.status), (status, status), "{wire:?}");
        assert_ne!(message(wire, &none), message(wire, &wrong));
        assert!(!wrong.text().contains("sk-wrong"));
    }
    let bearer =
        [("authorization", format!("Bearer {}", server.key())), ("anthropic-version", "2023-06-01".into())];
    let text = body(Wire::Anthropic, RESEARCHER, &[TestMessage::User("solar")]).to_string();
    assert_eq!(post(server.address(), path(Wire::Anthropic), &bearer, &text).status, 200);
    let basic = [("authorization", "Basic abc".to_owned())];
    assert_eq!(post(server.address(), path(Wire::OpenAi), &basic, "{}").status, 401);
    let unsigned = format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20260101/x/bedrock/aws4_request");
    assert_eq!(post(server.address(), path(Wire::Bedrock), &[("authorization", unsigned)], "{}").status, 403);
}

#[test]
fn the_api_version_is_required() {
    let server = researcher(STEPS);
    let text = body(Wire::Anthropic, RESEARCHER, &[TestMessage::User("solar")]).to_string();
    let mut headers = headers(Wire::Anthropic, server.key());
    headers[1].1 = "2020-01-01".into();
    let wrong = post(server.address(), path(Wire::Anthropic), &headers, &text);
    check_400(Wire::Anthropic, &wrong, "anthropic-version: \"2020-01-01\" is not a valid version");
    let none = post(server.address(), path(Wire::Anthropic), &headers[..1], &text);
    check_400(Wire::Anthropic, &none, "anthropic-version: header is required");
    let none = changed(Wire::Bedrock, |body| {
        body.as_object_mut().unwrap().remove("anthropic_version");
    });
    check_400(Wire::Bedrock, &none, "anthropic_version: Field required");
    let model = changed(Wire::Bedrock, |body| body["model"] = "x".into());
    check_400(Wire::Bedrock, &model, "model: Extra inputs are not permitted");
}

/// The changes of 21 October 2026: none in the stream, three in requests.
#[test]
fn the_version_of_2026_rejects_sampling_and_citations_in_user_messages() {
    let server = researcher(STEPS);
    let cited = json!([{"type": "text", "text": "so", "citations": [{"type": "char_location"}]}]);
    for wire in [Wire::Anthropic, Wire::Bedrock] {
        for (version, status) in [("2023-06-01", 200), ("2026-10-21", 400)] {
            let send = |change: &dyn Fn(&mut Value)| {
                let mut body = body(wire, RESEARCHER, &[TestMessage::User("solar")]);
                change(&mut body);
                let mut headers = headers(wire, server.key());
                if wire == Wire::Anthropic {
                    headers[1].1 = version.into();
                } else if status == 400 {
                    body["anthropic_version"] = version.into();
                }
                post(server.address(), path(wire), &headers, &body.to_string()).status
            };
            assert_eq!(send(&|_| {}), 200, "{wire:?} {version}");
            for field in ["temperature", "top_p", "top_k"] {
                assert_eq!(send(&|body| body[field] = 1.into()), status, "{wire:?} {version} {field}");
            }
            assert_eq!(send(&|body| body["messages"][0]["content"] = cited.clone()), status);
        }
    }
}

#[test]
fn every_call_needs_exactly_one_result_in_the_next_message() {
    let user = || TestMessage::User("solar");
    let two = || TestMessage::Model("I look.", vec![call("c1"), call("c2")]);
    let missing = [
        vec![user(), two(), TestMessage::Results(vec![result("c1")])],
        vec![user(), two(), TestMessage::User("go on")],
        vec![user(), two()],
        vec![
            user(),
            two(),
            TestMessage::User("wait"),
            TestMessage::Results(vec![result("c1"), result("c2")]),
        ],
    ];
    let unexpected = [
        vec![user(), TestMessage::Results(vec![result("c9")])],
        vec![user(), two(), TestMessage::Results(vec![result("c1"), result("c2"), result("c9")])],
        vec![user(), TestMessage::Model("I looked.", Vec::new()), TestMessage::Results(vec![result("c1")])],
    ];
    let twice = vec![user(), two(), TestMessage::Results(vec![result("c1"), result("c1"), result("c2")])];
    let server = researcher(STEPS);
    let openai = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message";
    for wire in [Wire::Anthropic, Wire::Bedrock] {
        for messages in &missing {
            check_400(
                wire,
                &ask(&server, wire, messages),
                "ids were found without `tool_result` blocks immediately after: c",
            );
        }
        for messages in &unexpected {
            check_400(
                wire,
                &ask(&server, wire, messages),
                "unexpected `tool_use_id` found in `tool_result` blocks: c",
            );
        }
        check_400(wire, &ask(&server, wire, &twice), "each tool_use must have a single result");
    }
    for messages in &missing {
        let answer = ask(&server, Wire::OpenAi, messages);
        check_400(Wire::OpenAi, &answer, "The following tool_call_ids did not have response messages: c");
        assert!(answer.json()["error"]["param"].as_str().unwrap().starts_with("messages.["));
    }
    for messages in unexpected.iter().chain([&twice]) {
        check_400(Wire::OpenAi, &ask(&server, Wire::OpenAi, messages), openai);
    }
    for wire in Wire::ALL {
        let both = [user(), two(), TestMessage::Results(vec![result("c2"), result("c1")])];
        assert_eq!(ask(&server, wire, &both).status, 200, "any order is accepted");
    }
}

#[test]
fn results_must_come_first_in_their_message() {
    let messages = [
        TestMessage::User("solar"),
        TestMessage::Model("", vec![call("c1")]),
        TestMessage::Results(vec![result("c1")]),
    ];
    let server = researcher(STEPS);
    let mut body = body(Wire::Anthropic, RESEARCHER, &messages);
    let words = json!({"type": "text", "text": "here"});
    body["messages"][2]["content"].as_array_mut().unwrap().push(words.clone());
    assert_eq!(send(&server, Wire::Anthropic, &body).status, 200);
    body["messages"][2]["content"].as_array_mut().unwrap().insert(0, words);
    check_400(Wire::Anthropic, &send(&server, Wire::Anthropic, &body), "immediately after: c1");
}

#[test]
fn empty_content_is_rejected() {
    for wire in [Wire::Anthropic, Wire::Bedrock] {
        let with = |content: Value| changed(wire, |body| body["messages"][0]["content"] = content);
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        check_400(wire, &with("".into()), "user messages must have non-empty content");
        check_400(wire, &with(json!([])), "user messages must have non-empty content");
        check_400(wire, &with(text("")), "text content blocks must be non-empty");
        check_400(wire, &with(text(" \n")), "text content blocks must contain non-whitespace text");
        let system = changed(wire, |body| body["system"] = text(""));
        check_400(wire, &system, "system: text content blocks must be non-empty");
        let none = changed(wire, |body| body["messages"] = json!([]));
        check_400(wire, &none, "messages: at least one message is required");
    }
    let with = |content: Value| changed(Wire::OpenAi, |body| body["messages"][1]["content"] = content);
    check_400(Wire::OpenAi, &with("".into()), "must not be empty");
    check_400(Wire::OpenAi, &with(Value::Null), "must not be empty");
    check_400(Wire::OpenAi, &with(json!([])), "empty array");
    let none = changed(Wire::OpenAi, |body| body["messages"] = json!([]));
    check_400(Wire::OpenAi, &none, "Invalid 'messages': empty array.");
    let messages =
        [TestMessage::User("solar"), TestMessage::Model("", Vec::new()), TestMessage::User("and?")];
    check_400(Wire::OpenAi, &ask(&researcher(STEPS), Wire::OpenAi, &messages), "must not be empty");
}

/// Changes of a valid request, and the error message of each.
#[test]
fn other_errors_have_the_messages_of_the_provider() {
    type Change = fn(&mut Value);
    let anthropic: &[(Change, &str)] = &[
        (|b| b["max_tokens"] = 0.into(), "max_tokens: Input should be greater than or equal to 1"),
        (|b| b["max_tokens"] = Value::Null, "max_tokens: Input should be a valid integer"),
        (|b| b["colour"] = 1.into(), "colour: Extra inputs are not permitted"),
        (|b| b["messages"][0]["role"] = "system".into(), "Unexpected role \"system\""),
        (|b| b["messages"][0]["role"] = "assistant".into(), "first message must use the \"user\" role"),
        (|b| b["messages"][0]["role"] = "tool".into(), "Input should be 'user' or 'assistant'"),
        (|b| b["tools"][0]["name"] = "a b".into(), "tools.0.custom.name: String should match pattern"),
        (|b| b["tools"][0]["input_schema"] = json!({}), "input_schema.type: Field required"),
        (|b| b["tools"] = json!([b["tools"][0], b["tools"][0]]), "Tool names must be unique"),
        (|b| b["tool_choice"] = json!({"type": "tool", "name": "x"}), "Tool 'x' not found"),
        (|b| b["messages"][0]["content"] = json!([{"type": "poem"}]), "Input tag 'poem'"),
        (
            |b| b["system"] = vec![json!({"type": "text", "text": "x", "cache_control": {}}); 5].into(),
            "A maximum of 4",
        ),
    ];
    for (change, expected) in anthropic {
        for wire in [Wire::Anthropic, Wire::Bedrock] {
            check_400(wire, &changed(wire, change), expected);
        }
    }
    let openai: &[(Change, &str)] = &[
        (|b| b["colour"] = 1.into(), "Unrecognized request argument supplied: colour"),
        (|b| b["model"] = Value::Null, "you must provide a model parameter"),
        (
            |b| b["stream"] = false.into(),
            "'stream_options' parameter is only allowed when 'stream' is enabled",
        ),
        (|b| b["messages"][1]["role"] = "poet".into(), "Invalid value: 'poet'"),
        (|b| b["tools"] = json!([]), "Invalid 'tools': empty array"),
        (|b| b["tools"][0]["function"]["name"] = "a.b".into(), "string does not match pattern"),
        (|b| b["tools"][0]["function"]["parameters"] = json!({}), "Invalid schema for function 'read'"),
        (|b| b["tool_choice"] = "perhaps".into(), "Invalid value for 'tool_choice'"),
        (|b| b["messages"][1]["content"] = 5.into(), "Invalid type for 'messages[1].content'"),
    ];
    for (change, expected) in openai {
        check_400(Wire::OpenAi, &changed(Wire::OpenAi, change), expected);
    }
}

#[test]
fn arguments_are_an_object_for_anthropic_and_a_string_for_openai() {
    let messages = [
        TestMessage::User("solar"),
        TestMessage::Model("", vec![call("c1")]),
        TestMessage::Results(vec![result("c1")]),
    ];
    let server = researcher(STEPS);
    let mut text = body(Wire::Anthropic, RESEARCHER, &messages);
    text["messages"][1]["content"][0]["input"] = "{}".into();
    check_400(
        Wire::Anthropic,
        &send(&server, Wire::Anthropic, &text),
        "input: Input should be a valid dictionary",
    );
    let mut object = body(Wire::OpenAi, RESEARCHER, &messages);
    object["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({});
    let expected = "function.arguments': expected a string, but got an object instead";
    check_400(Wire::OpenAi, &send(&server, Wire::OpenAi, &object), expected);
    let mut untold = body(Wire::Anthropic, RESEARCHER, &messages);
    untold.as_object_mut().unwrap().remove("tools");
    check_400(Wire::Anthropic, &send(&server, Wire::Anthropic, &untold), "must define tools");
}

#[test]
fn invalid_json_and_unknown_paths_are_rejected() {
    let server = researcher(STEPS);
    for wire in Wire::ALL {
        let answer = post(server.address(), path(wire), &headers(wire, server.key()), "{");
        assert_eq!(answer.status, 400, "{wire:?}");
        assert!(message(wire, &answer).contains("JSON"));
    }
    assert_eq!(post(server.address(), "/v2/poems", &[], "{}").status, 404);
}
