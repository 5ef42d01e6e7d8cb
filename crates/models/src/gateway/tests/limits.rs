//! Limits on concurrent requests, and the worst case of a turn.

use super::{
    answers::{call, text},
    *,
};
use crate::LocalModelEndpoint;

async fn ask_at_once(test: &TestGateway, alias: &str, turns: usize) {
    let request = request();
    let turns = (0..turns).map(|_| test.ask(alias, &request));
    for (turn, _) in futures_util::future::join_all(turns).await {
        turn.unwrap();
    }
}

#[tokio::test]
async fn concurrent_requests_to_a_provider_are_limited() {
    let slow = ScriptedResponse {
        delay: Duration::from_millis(40),
        ..ScriptedResponse::ok(text("yes").encode(ProviderKind::Openai))
    };
    let test = TestGateway::with_settings(vec![slow], "provider.openai.at_once = 2", vec!["openai"]).await;
    ask_at_once(&test, "gpt", 7).await;
    assert_eq!(test.server.most_at_once(), 2);
}

/// A local model at the given URL and with the given status.
pub(super) struct FakeLocalModel(pub(super) String, pub(super) LocalModelStatus);

impl LocalModel for FakeLocalModel {
    fn endpoint(&self) -> BoxFuture<'_, Result<LocalModelEndpoint, ModelError>> {
        let base_url = self.0.parse().unwrap();
        Box::pin(async { Ok(LocalModelEndpoint { base_url, bearer: Some(ApiKey::new("local-bearer")) }) })
    }

    fn status(&self) -> LocalModelStatus {
        self.1.clone()
    }
}

#[tokio::test]
async fn the_local_model_gets_one_request_at_a_time() {
    let slow = ScriptedResponse {
        delay: Duration::from_millis(20),
        ..ScriptedResponse::ok(text("yes").encode(ProviderKind::Local))
    };
    let test = TestGateway::with_settings(vec![slow], "", Vec::new()).await;
    test.gateway.set_local_model(Arc::new(FakeLocalModel(
        format!("{}/v1", test.server.url()),
        LocalModelStatus::Idle,
    )));
    ask_at_once(&test, "local", 4).await;
    assert_eq!(test.server.most_at_once(), 1);
    let asked = &test.server.requests()[0];
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.headers.get("authorization").map(String::as_str), Some("Bearer local-bearer"));
}

#[tokio::test]
async fn the_worst_case_covers_every_fallback() {
    let more = r#"
        model.claude.fallbacks = ["gpt", "bedrock"]
        model.gpt.prices = { input = 3000000, output = 9000000 }
        model.bedrock.max_output = 100
    "#;
    let test = TestGateway::with_settings(
        vec![ScriptedResponse::refusal(500, "")],
        more,
        vec!["anthropic", "openai"],
    )
    .await;
    let chosen = test.gateway.choose(None, "writer").unwrap();
    let plain = ChatRequest { tools: Vec::new(), ..request() };
    let prompt = plain.estimated_tokens();
    let worst = test.gateway.worst_case(&chosen, &plain);
    assert_eq!(worst, WorstCase { tokens: prompt + 500, micros: Some(prompt * 3 + 500 * 9) });
    // With tools, the answer may be asked for twice.
    let worst = test.gateway.worst_case(&chosen, &request());
    assert_eq!(worst.tokens, 2 * (request().estimated_tokens() + 500) + 1000);
    // The model's own output limit bounds the answer.
    let long = ChatRequest { max_output: 1_000_000, ..plain.clone() };
    assert_eq!(test.gateway.worst_case(&chosen, &long).tokens, prompt + 1000);
}

#[tokio::test]
async fn an_unknown_price_makes_the_worst_case_unknown() {
    let more = r#"
        model.claude.fallbacks = ["unknown"]
        model.unknown = { provider = "openai", id = "x", context = 9000, max_output = 100 }
    "#;
    for (keys, known) in [(vec!["anthropic"], true), (vec!["anthropic", "openai"], false)] {
        let test = TestGateway::with_settings(vec![ScriptedResponse::refusal(500, "")], more, keys).await;
        let chosen = test.gateway.choose(None, "writer").unwrap();
        assert_eq!(test.gateway.worst_case(&chosen, &request()).micros.is_some(), known);
    }
}

#[tokio::test]
async fn the_usage_of_a_turn_stays_within_its_worst_case() {
    for (kind, alias) in PROTOCOLS {
        let test = TestGateway::new(vec![ScriptedResponse::ok(text("yes").encode(kind))]).await;
        let long = ChatRequest { system: "word ".repeat(200), ..request() };
        let worst = test.gateway.worst_case(&test.gateway.chosen(alias).unwrap(), &long);
        let turn = test.ask(alias, &long).await.0.unwrap();
        assert!(turn.reply.usage.total() <= worst.tokens && turn.cost <= worst.micros, "{kind:?}");
    }
}

#[tokio::test]
async fn a_turn_is_billed_for_at_most_two_answers_over_all_models() {
    let invalid = |kind| ScriptedResponse::ok(call("read", r#"{"file":"a"}"#).encode(kind));
    let answers = vec![
        invalid(ProviderKind::Anthropic),
        ScriptedResponse::refusal(529, "{}"),
        invalid(ProviderKind::Openai),
        invalid(ProviderKind::Openai),
    ];
    let more = "retry.attempts = 1\nmodel.claude.fallbacks = [\"gpt\"]";
    let test = TestGateway::with_settings(answers, more, vec!["anthropic", "openai"]).await;
    let worst = test.gateway.worst_case(&test.gateway.chosen("claude").unwrap(), &request());
    let error = test.ask("claude", &request()).await.0.unwrap_err();
    assert_eq!(test.server.requests().len(), 3, "there is no fourth request");
    assert!(error.usage.total() > 0 && error.usage.total() <= worst.tokens, "{error:?}");
}
