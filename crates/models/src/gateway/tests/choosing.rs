//! The choice of the model, and its fallbacks.

use super::{answers::text, limits::FakeLocalModel, *};

const CHAIN: &str = r#"model.claude.fallbacks = ["bedrock", "gpt"]"#;

#[tokio::test]
async fn the_first_model_with_a_key_is_chosen() {
    let missing = |name: &str| {
        format!("No API key for {name}. Add one in Settings, Models, or with choir keys set {name}.")
    };
    let (anthropic, openai) = (missing("anthropic"), missing("openai"));
    let cases = [
        (vec!["anthropic", "openai"], None, Ok("claude")),
        (vec!["openai"], None, Ok("gpt")),
        (vec!["openai", "bedrock"], None, Ok("bedrock")),
        (vec!["openai", "anthropic"], Some("gpt"), Ok("gpt")),
        (vec!["anthropic"], Some("gpt"), Err(openai.as_str())),
        (vec!["anthropic"], Some("nonsense"), Err("This model is not configured.")),
        (Vec::new(), None, Err(anthropic.as_str())),
    ];
    for (keys, wanted, expected) in cases {
        let test =
            TestGateway::with_settings(vec![ScriptedResponse::refusal(500, "")], CHAIN, keys.clone()).await;
        let chosen = test.gateway.choose(wanted, "writer");
        let found =
            chosen.as_ref().map(|chosen| chosen.alias.as_str()).map_err(|error| error.message.as_str());
        assert_eq!(found, expected, "{keys:?} {wanted:?}");
    }
    let test =
        TestGateway::with_settings(vec![ScriptedResponse::refusal(500, "")], CHAIN, vec!["anthropic"]).await;
    assert_eq!(test.gateway.choose(None, "gardener").unwrap_err().class, ErrorClass::Unavailable);
}

#[tokio::test]
async fn the_local_model_is_the_last_resort() {
    let cases = [
        (LocalModelStatus::Idle, Ok("local")),
        (LocalModelStatus::Running { tokens_per_second: Some(9.5) }, Ok("local")),
        (LocalModelStatus::Absent { bytes: 1_117_320_768 }, Err("downloaded first (1117 MB)")),
        (
            LocalModelStatus::Declined,
            Err("choir keys set anthropic. The download of the local model was declined."),
        ),
        (LocalModelStatus::Fetching { done: 2_000_000, bytes: 5_000_000 }, Err("2 of 5 MB")),
        (LocalModelStatus::Failed { reason: "no memory".into() }, Err("no memory")),
    ];
    for (status, expected) in cases {
        let test =
            TestGateway::with_settings(vec![ScriptedResponse::refusal(500, "")], CHAIN, Vec::new()).await;
        test.gateway.set_local_model(Arc::new(FakeLocalModel("http://127.0.0.1:9".into(), status.clone())));
        match (test.gateway.choose(None, "writer"), expected) {
            (Ok(chosen), Ok(alias)) => {
                assert_eq!(
                    (chosen.alias.as_str(), chosen.is_local, chosen.prices.is_some()),
                    (alias, true, true)
                );
            }
            (Err(error), Err(words)) => assert!(error.message.contains(words), "{}", error.message),
            (found, expected) => panic!("{status:?}: {found:?}, not {expected:?}"),
        }
    }
    let test =
        TestGateway::with_settings(vec![ScriptedResponse::refusal(500, "")], CHAIN, vec!["openai"]).await;
    test.gateway
        .set_local_model(Arc::new(FakeLocalModel("http://127.0.0.1:9".into(), LocalModelStatus::Idle)));
    assert_eq!(
        test.gateway.choose(None, "writer").unwrap().alias,
        "gpt",
        "a provider with a key is preferred to the local model"
    );
}

/// Cases: the status of the first model's responses, its attempts, and whether the fallback is used.
#[tokio::test]
async fn a_fallback_is_used_when_the_model_fails() {
    let cases = [
        (429, 4, true),
        (529, 4, true),
        (401, 1, true),
        (404, 1, true),
        (500, 4, true),
        (400, 1, false),
        (413, 1, false),
    ];
    for (status, tries, uses_fallback) in cases {
        let mut answers = vec![ScriptedResponse::refusal(status, "{}"); tries];
        answers.push(ScriptedResponse::ok(text("yes").encode(ProviderKind::Openai)));
        let more = r#"model.claude.fallbacks = ["bedrock", "gpt"]"#;
        let test = TestGateway::with_settings(answers, more, vec!["anthropic", "openai"]).await;
        let (turn, _) = test.ask("claude", &request()).await;
        match (turn, uses_fallback) {
            (Ok(turn), true) => {
                assert_eq!((turn.model.as_str(), turn.attempts as usize), ("gpt", tries + 1), "{status}");
            }
            (Err(error), false) => assert_eq!(error.model, "claude", "{status}"),
            (turn, _) => panic!("{status}: {turn:?}"),
        }
    }
}

#[tokio::test]
async fn a_fallback_is_used_when_the_provider_is_unreachable() {
    let more = format!("{CHAIN}\nprovider.anthropic.base_url = \"http://127.0.0.1:9\"");
    let answers = vec![ScriptedResponse::ok(text("yes").encode(ProviderKind::Openai))];
    let test = TestGateway::with_settings(answers, &more, vec!["anthropic", "openai"]).await;
    let turn = test.ask("claude", &request()).await.0.unwrap();
    assert_eq!((turn.model.as_str(), turn.attempts), ("gpt", 5));
}

#[tokio::test]
async fn no_fallback_is_used_when_an_answer_breaks_off_midway() {
    let test = TestGateway::with_settings(
        vec![ScriptedResponse::ok(text("Hel").encode_truncated(ProviderKind::Anthropic))],
        CHAIN,
        vec!["anthropic", "openai"],
    )
    .await;
    assert_eq!(class(test.ask("claude", &request()).await.0), ErrorClass::Retryable);
    assert_eq!(test.server.requests().len(), 4);
}

#[tokio::test]
async fn when_all_models_fail_the_error_is_that_of_the_chosen_model() {
    let answers = vec![
        ScriptedResponse::refusal(401, r#"{"error":{"message":"first"}}"#),
        ScriptedResponse::refusal(400, r#"{"error":{"message":"second"}}"#),
    ];
    let test = TestGateway::with_settings(answers, CHAIN, vec!["anthropic", "openai"]).await;
    let error = test.ask("claude", &request()).await.0.unwrap_err();
    assert_eq!((error.model.as_str(), error.class), ("claude", ErrorClass::Auth));
    assert!(error.message.starts_with("first"), "{}", error.message);
}

#[tokio::test]
async fn deltas_are_discarded_when_a_fallback_starts() {
    let error =
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    let mut broken = text("Hel").encode_truncated(ProviderKind::Anthropic);
    let end = broken.windows(6).rposition(|window| window == b"data: ").unwrap();
    broken.truncate(end);
    broken.extend_from_slice(error.as_bytes());
    let more = format!("{CHAIN}\nretry.attempts = 1");
    let answers =
        vec![ScriptedResponse::ok(broken), ScriptedResponse::ok(text("Hello").encode(ProviderKind::Openai))];
    let test = TestGateway::with_settings(answers, &more, vec!["anthropic", "openai"]).await;
    let (turn, deltas) = test.ask("claude", &request()).await;
    assert_eq!(turn.unwrap().model, "gpt");
    assert_eq!(deltas, [Delta::Text("Hel".into()), Delta::Restart, Delta::Text("Hello".into())]);
}

#[tokio::test]
async fn a_model_with_a_context_that_is_too_small_is_not_a_fallback() {
    let more = r#"model.claude.fallbacks = ["gpt"]
                  model.gpt.context = 2000"#;
    let answers = vec![
        ScriptedResponse::refusal(401, "{}"),
        ScriptedResponse::ok(text("yes").encode(ProviderKind::Openai)),
    ];
    let test = TestGateway::with_settings(answers, more, vec!["anthropic", "openai"]).await;
    let long = ChatRequest { system: "word ".repeat(5000), ..request() };
    assert_eq!(test.ask("claude", &long).await.0.unwrap_err().model, "claude");
    assert_eq!(test.server.requests().len(), 1);
}

#[tokio::test]
async fn a_test_request_has_no_retries_and_no_fallbacks() {
    let answers = vec![ScriptedResponse::refusal(529, "{}")];
    let test = TestGateway::with_settings(answers, CHAIN, vec!["anthropic", "openai"]).await;
    assert_eq!(test.gateway.test("claude").await.unwrap_err().class, ErrorClass::Overloaded);
    assert_eq!(test.server.requests().len(), 1);
    assert_eq!(test.gateway.test("bedrock").await.unwrap_err().class, ErrorClass::Auth);
    assert_eq!(test.gateway.test("nonsense").await.unwrap_err().class, ErrorClass::Unavailable);
    let test = TestGateway::new(vec![ScriptedResponse::ok(text("yes").encode(ProviderKind::Openai))]).await;
    let turn = test.gateway.test("openai").await.unwrap();
    assert_eq!((turn.reply.text.as_str(), turn.attempts), ("yes", 1));
}
