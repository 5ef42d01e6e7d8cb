//! Replies, with every protocol.

use super::{
    answers::{COUNTS, ModelOutput, call, text},
    *,
};
use crate::chat::{StopReason, ToolCall, Usage};

fn usage(kind: ProviderKind, times: u64) -> Usage {
    let (input, cache_read, cache_write, output) = COUNTS;
    let cache_write = if kind == ProviderKind::Openai { 0 } else { cache_write };
    Usage {
        input: input * times,
        cache_read: cache_read * times,
        cache_write: cache_write * times,
        output: output * times,
    }
}

#[tokio::test]
async fn a_reply_includes_its_usage_and_cost() {
    for (kind, alias) in PROTOCOLS {
        let output = ModelOutput {
            text: "Both.",
            calls: vec![("read", r#"{"path":"a"}"#), ("list", r#"{"folder":"b"}"#)],
        };
        let test = TestGateway::new(vec![ScriptedResponse::ok(output.encode(kind))]).await;
        let (turn, deltas) = test.ask(alias, &request()).await;
        let turn = turn.unwrap();
        let call = |id: &str, tool: &str, input| ToolCall { id: id.into(), tool: tool.into(), input };
        let calls = [call("id0", "read", json!({"path": "a"})), call("id1", "list", json!({"folder": "b"}))];
        assert_eq!((turn.reply.text.as_str(), turn.reply.stop), ("Both.", StopReason::Calls), "{kind:?}");
        assert_eq!(turn.reply.calls, calls, "{kind:?}");
        assert_eq!(turn.reply.usage, usage(kind, 1), "{kind:?}");
        let write = if kind == ProviderKind::Openai { 0 } else { 25 };
        assert_eq!(turn.cost, Some(100 + 4 + write + 50), "{kind:?}");
        assert_eq!((turn.attempts, turn.model.as_str()), (1, alias), "{kind:?}");
        let begun = |tool: &str| Delta::Call { tool: tool.into() };
        let deltas: Vec<Delta> =
            deltas.into_iter().filter(|delta| !matches!(delta, Delta::Input(_))).collect();
        assert_eq!(deltas, [Delta::Text("Both.".into()), begun("read"), begun("list")], "{kind:?}");
    }
}

#[tokio::test]
async fn each_provider_has_its_own_path_and_key_header() {
    let cases = [
        (ProviderKind::Anthropic, "claude", "/v1/messages", ("x-api-key", KEY.to_owned())),
        (ProviderKind::Openai, "gpt", "/v1/chat/completions", ("authorization", format!("Bearer {KEY}"))),
        (
            ProviderKind::Bedrock,
            "bedrock",
            "/model/bedrock-1/invoke-with-response-stream",
            ("authorization", format!("Bearer {KEY}")),
        ),
    ];
    for (kind, alias, path, (header, value)) in cases {
        let test = TestGateway::new(vec![ScriptedResponse::ok(text("yes").encode(kind))]).await;
        test.ask(alias, &request()).await.0.unwrap();
        let asked = &test.server.requests()[0];
        assert_eq!(asked.path, path);
        assert_eq!(asked.headers.get(header), Some(&value));
        assert!(!asked.body.to_string().contains(KEY));
    }
}

#[tokio::test]
async fn a_call_with_invalid_input_is_asked_for_once_more() {
    for (kind, alias) in PROTOCOLS {
        let answers = vec![
            ScriptedResponse::ok(call("read", r#"{"file":"a"}"#).encode(kind)),
            ScriptedResponse::ok(call("read", r#"{"path":"a",}"#).encode(kind)),
        ];
        let test = TestGateway::new(answers).await;
        let (turn, deltas) = test.ask(alias, &request()).await;
        let turn = turn.unwrap();
        assert_eq!(turn.reply.calls[0].input, json!({"path": "a"}), "{kind:?}");
        assert_eq!((turn.attempts, turn.reply.usage), (2, usage(kind, 2)), "{kind:?}");
        let write = if kind == ProviderKind::Openai { 0 } else { 25 };
        assert_eq!(turn.cost, Some(2 * (100 + 4 + write + 50)), "{kind:?}");
        assert!(deltas.contains(&Delta::Restart), "{kind:?}");
        let second = test.server.requests()[1].body.to_string();
        assert!(second.contains("the input of read is wrong: `path` is missing"), "{second}");
    }
}

#[tokio::test]
async fn two_invalid_answers_are_an_error() {
    for (kind, alias) in PROTOCOLS {
        let test =
            TestGateway::new(vec![ScriptedResponse::ok(call("read", r#"{"path": "half of"#).encode(kind))])
                .await;
        let (turn, _) = test.ask(alias, &request()).await;
        let error = turn.unwrap_err();
        assert_eq!(error.class, ErrorClass::Unusable, "{kind:?}");
        assert!(error.message.contains("the input of read is no JSON"), "{}", error.message);
        assert_eq!(test.server.requests().len(), 2, "{kind:?}");
    }
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_is_passed_through() {
    for (kind, alias) in PROTOCOLS {
        let test =
            TestGateway::new(vec![ScriptedResponse::ok(call("rm", r#"{"path":"/"}"#).encode(kind))]).await;
        let turn = test.ask(alias, &request()).await.0.unwrap();
        assert_eq!(turn.reply.calls[0].tool, "rm", "{kind:?}");
    }
}

#[tokio::test]
async fn calls_written_as_text_are_accepted_from_models_without_native_calls() {
    let output = text("I look.\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```");
    let test = TestGateway::new(vec![ScriptedResponse::ok(output.encode(ProviderKind::Openai))]).await;
    let turn = test.ask("gpt", &request()).await.0.unwrap();
    assert_eq!(
        turn.reply.calls,
        [ToolCall { id: "call_1_0".into(), tool: "read".into(), input: json!({"path": "a"}) }]
    );
    assert_eq!((turn.reply.text.as_str(), turn.reply.stop), ("I look.", StopReason::Calls));
    // Claude has native calls, so its text stays text.
    let test = TestGateway::new(vec![ScriptedResponse::ok(output.encode(ProviderKind::Anthropic))]).await;
    let turn = test.ask("claude", &request()).await.0.unwrap();
    assert_eq!((turn.reply.calls.len(), turn.reply.stop), (0, StopReason::End));
}

#[tokio::test]
async fn an_answer_without_the_required_call_is_asked_for_once_more() {
    for (kind, alias) in PROTOCOLS {
        let answers = vec![
            ScriptedResponse::ok(text("I would.").encode(kind)),
            ScriptedResponse::ok(call("read", r#"{"path":"a"}"#).encode(kind)),
        ];
        let test = TestGateway::new(answers).await;
        let request = ChatRequest { answer: AnswerForm::Call, ..request() };
        let turn = test.ask(alias, &request).await.0.unwrap();
        assert_eq!((turn.reply.calls.len(), turn.attempts), (1, 2), "{kind:?}");
        let choice = test.server.requests()[0].body["tool_choice"].clone();
        assert!(choice == json!("required") || choice == json!({"type": "any"}), "{choice}");
    }
}

/// An answer in OpenAI's format whose usage is missing or zero.
fn uncounted(delta: &str, usage: &str) -> Vec<u8> {
    let chunk = format!("{{\"choices\":[{{\"delta\":{delta},\"finish_reason\":\"stop\"}}]{usage}}}");
    format!("data: {chunk}\n\ndata: [DONE]\n\n").into()
}

#[tokio::test]
async fn an_unknown_price_gives_an_unknown_cost() {
    let more = r#"model.free = { provider = "openai", id = "x", context = 9000, max_output = 100, prices = { input = 0, output = 0 } }
                  model.unknown = { provider = "openai", id = "x", context = 9000, max_output = 100 }"#;
    let yes = || uncounted(r#"{"content":"yes"}"#, "");
    let cases = [
        ("unknown", text("yes").encode(ProviderKind::Openai), None),
        ("unknown", yes(), None),
        ("free", yes(), Some(0)),
    ];
    for (alias, answer, cost) in cases {
        let test = TestGateway::with_settings(vec![ScriptedResponse::ok(answer)], more, vec!["openai"]).await;
        let turn = test.ask(alias, &request()).await.0.unwrap();
        assert_eq!(turn.cost, cost, "{alias}");
        assert!(turn.reply.usage.input > 0 && turn.reply.usage.output > 0, "tokens are estimated anyway");
    }
}

#[tokio::test]
async fn an_answer_without_usage_costs_its_estimate() {
    let thought = "Hm. ".repeat(300);
    let cases = [
        (uncounted(r#"{"content":"yes"}"#, ""), 1),
        (uncounted(r#"{"content":"yes"}"#, r#","usage":{"prompt_tokens":0}"#), 1),
        (uncounted(&format!(r#"{{"content":"yes","reasoning":"{thought}"}}"#), ""), 401),
        (
            uncounted(
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]}"#,
                "",
            ),
            26,
        ),
    ];
    for (answer, output) in cases {
        let test = TestGateway::with_settings(vec![ScriptedResponse::ok(answer)], "", vec!["openai"]).await;
        let turn = test.ask("gpt", &request()).await.0.unwrap();
        let usage = turn.reply.usage;
        assert_eq!((usage.input, usage.output), (request().estimated_tokens(), output));
        assert_eq!(turn.cost, Some(usage.input + 5 * usage.output));
    }
}
