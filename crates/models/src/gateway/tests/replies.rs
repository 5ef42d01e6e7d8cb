//! What an answer becomes, on every wire.

use super::{
    answers::{COUNTS, Says, call, text},
    *,
};
use crate::chat::{Call, Stop, Usage};

fn usage(kind: Kind, times: u64) -> Usage {
    let (input, cache_read, cache_write, output) = COUNTS;
    let cache_write = if kind == Kind::Openai { 0 } else { cache_write };
    Usage {
        input: input * times,
        cache_read: cache_read * times,
        cache_write: cache_write * times,
        output: output * times,
    }
}

#[tokio::test]
async fn a_whole_reply_comes_with_its_usage_and_cost() {
    for (kind, alias) in WIRES {
        let says =
            Says { text: "Both.", calls: vec![("read", r#"{"path":"a"}"#), ("list", r#"{"folder":"b"}"#)] };
        let rig = Rig::new(vec![Scripted::ok(says.on(kind))]).await;
        let (turn, heard) = rig.ask(alias, &request()).await;
        let turn = turn.unwrap();
        let call = |id: &str, tool: &str, input| Call { id: id.into(), tool: tool.into(), input };
        let calls = [call("id0", "read", json!({"path": "a"})), call("id1", "list", json!({"folder": "b"}))];
        assert_eq!((turn.reply.text.as_str(), turn.reply.stop), ("Both.", Stop::Calls), "{kind:?}");
        assert_eq!(turn.reply.calls, calls, "{kind:?}");
        assert_eq!(turn.reply.usage, usage(kind, 1), "{kind:?}");
        let write = if kind == Kind::Openai { 0 } else { 25 };
        assert_eq!(turn.cost, Some(100 + 4 + write + 50), "{kind:?}");
        assert_eq!((turn.attempts, turn.model.as_str()), (1, alias), "{kind:?}");
        let begun = |tool: &str| Delta::Call { tool: tool.into() };
        let heard: Vec<Delta> = heard.into_iter().filter(|delta| !matches!(delta, Delta::Input(_))).collect();
        assert_eq!(heard, [Delta::Text("Both.".into()), begun("read"), begun("list")], "{kind:?}");
    }
}

#[tokio::test]
async fn each_provider_is_asked_at_its_own_path_with_its_own_key() {
    let cases = [
        (Kind::Anthropic, "claude", "/v1/messages", ("x-api-key", KEY.to_owned())),
        (Kind::Openai, "gpt", "/v1/chat/completions", ("authorization", format!("Bearer {KEY}"))),
        (
            Kind::Bedrock,
            "bedrock",
            "/model/bedrock-1/invoke-with-response-stream",
            ("authorization", format!("Bearer {KEY}")),
        ),
    ];
    for (kind, alias, path, (header, value)) in cases {
        let rig = Rig::new(vec![Scripted::ok(text("yes").on(kind))]).await;
        rig.ask(alias, &request()).await.0.unwrap();
        let asked = &rig.server.asked()[0];
        assert_eq!(asked.path, path);
        assert_eq!(asked.headers.get(header), Some(&value));
        assert!(!asked.body.to_string().contains(KEY));
    }
}

#[tokio::test]
async fn a_call_of_the_wrong_form_is_asked_for_once_more() {
    for (kind, alias) in WIRES {
        let answers = vec![
            Scripted::ok(call("read", r#"{"file":"a"}"#).on(kind)),
            Scripted::ok(call("read", r#"{"path":"a",}"#).on(kind)),
        ];
        let rig = Rig::new(answers).await;
        let (turn, heard) = rig.ask(alias, &request()).await;
        let turn = turn.unwrap();
        assert_eq!(turn.reply.calls[0].input, json!({"path": "a"}), "{kind:?}");
        assert_eq!((turn.attempts, turn.reply.usage), (2, usage(kind, 2)), "{kind:?}");
        let write = if kind == Kind::Openai { 0 } else { 25 };
        assert_eq!(turn.cost, Some(2 * (100 + 4 + write + 50)), "{kind:?}");
        assert!(heard.contains(&Delta::Restart), "{kind:?}");
        let told = rig.server.asked()[1].body.to_string();
        assert!(told.contains("the input of read is wrong: `path` is missing"), "{told}");
    }
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_twice_is_unusable() {
    for (kind, alias) in WIRES {
        let rig = Rig::new(vec![Scripted::ok(call("read", r#"{"path": "half of"#).on(kind))]).await;
        let (turn, _) = rig.ask(alias, &request()).await;
        let error = turn.unwrap_err();
        assert_eq!(error.class, ErrorClass::Unusable, "{kind:?}");
        assert!(error.message.contains("the input of read is no JSON"), "{}", error.message);
        assert_eq!(rig.server.asked().len(), 2, "{kind:?}");
    }
}

#[tokio::test]
async fn a_tool_that_was_not_offered_is_left_to_whoever_runs_the_calls() {
    for (kind, alias) in WIRES {
        let rig = Rig::new(vec![Scripted::ok(call("rm", r#"{"path":"/"}"#).on(kind))]).await;
        let turn = rig.ask(alias, &request()).await.0.unwrap();
        assert_eq!(turn.reply.calls[0].tool, "rm", "{kind:?}");
    }
}

#[tokio::test]
async fn a_call_written_as_text_is_a_call_where_the_model_knows_no_better() {
    let says = text("I look.\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```");
    let rig = Rig::new(vec![Scripted::ok(says.on(Kind::Openai))]).await;
    let turn = rig.ask("gpt", &request()).await.0.unwrap();
    assert_eq!(
        turn.reply.calls,
        [Call { id: "call_1_0".into(), tool: "read".into(), input: json!({"path": "a"}) }]
    );
    assert_eq!((turn.reply.text.as_str(), turn.reply.stop), ("I look.", Stop::Calls));
    // Claude means what it writes.
    let rig = Rig::new(vec![Scripted::ok(says.on(Kind::Anthropic))]).await;
    let turn = rig.ask("claude", &request()).await.0.unwrap();
    assert_eq!((turn.reply.calls.len(), turn.reply.stop), (0, Stop::End));
}

#[tokio::test]
async fn a_call_is_insisted_on_where_one_was_asked_for() {
    for (kind, alias) in WIRES {
        let answers = vec![
            Scripted::ok(text("I would.").on(kind)),
            Scripted::ok(call("read", r#"{"path":"a"}"#).on(kind)),
        ];
        let rig = Rig::new(answers).await;
        let request = Request { answer: AnswerForm::Call, ..request() };
        let turn = rig.ask(alias, &request).await.0.unwrap();
        assert_eq!((turn.reply.calls.len(), turn.attempts), (1, 2), "{kind:?}");
        let choice = rig.server.asked()[0].body["tool_choice"].clone();
        assert!(choice == json!("required") || choice == json!({"type": "any"}), "{choice}");
    }
}

/// An answer in OpenAI's form that says nothing of what it took, or only that it took nothing.
fn uncounted(delta: &str, usage: &str) -> Vec<u8> {
    let chunk = format!("{{\"choices\":[{{\"delta\":{delta},\"finish_reason\":\"stop\"}}]{usage}}}");
    format!("data: {chunk}\n\ndata: [DONE]\n\n").into()
}

#[tokio::test]
async fn a_price_that_is_not_known_makes_no_cost_of_zero() {
    let more = r#"model.free = { provider = "openai", id = "x", context = 9000, max_output = 100, prices = { input = 0, output = 0 } }
                  model.unknown = { provider = "openai", id = "x", context = 9000, max_output = 100 }"#;
    let yes = || uncounted(r#"{"content":"yes"}"#, "");
    let cases =
        [("unknown", text("yes").on(Kind::Openai), None), ("unknown", yes(), None), ("free", yes(), Some(0))];
    for (alias, answer, cost) in cases {
        let rig = Rig::with(vec![Scripted::ok(answer)], more, vec!["openai"]).await;
        let turn = rig.ask(alias, &request()).await.0.unwrap();
        assert_eq!(turn.cost, cost, "{alias}");
        assert!(turn.reply.usage.input > 0 && turn.reply.usage.output > 0, "tokens are counted all the same");
    }
}

#[tokio::test]
async fn an_answer_that_nobody_counted_costs_what_it_is_estimated_to() {
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
        let rig = Rig::with(vec![Scripted::ok(answer)], "", vec!["openai"]).await;
        let turn = rig.ask("gpt", &request()).await.0.unwrap();
        let usage = turn.reply.usage;
        assert_eq!((usage.input, usage.output), (request().tokens(), output));
        assert_eq!(turn.cost, Some(usage.input + 5 * usage.output));
    }
}
