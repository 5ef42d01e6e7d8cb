//! How many turns at once, and what a turn takes at most.

use super::{
    answers::{call, text},
    *,
};
use crate::LocalEndpoint;

async fn ask_at_once(rig: &Rig, alias: &str, turns: usize) {
    let request = request();
    let turns = (0..turns).map(|_| rig.ask(alias, &request));
    for (turn, _) in futures_util::future::join_all(turns).await {
        turn.unwrap();
    }
}

#[tokio::test]
async fn a_provider_is_asked_no_more_at_once_than_is_said() {
    let slow = Scripted { after: Duration::from_millis(40), ..Scripted::ok(text("yes").on(Kind::Openai)) };
    let rig = Rig::with(vec![slow], "provider.openai.at_once = 2", vec!["openai"]).await;
    ask_at_once(&rig, "gpt", 7).await;
    assert_eq!(rig.server.most_at_once(), 2);
}

/// A local model that listens where a server does.
pub(super) struct Here(pub(super) String, pub(super) LocalStatus);

impl LocalModel for Here {
    fn endpoint(&self) -> BoxFuture<'_, Result<LocalEndpoint, ModelError>> {
        let base_url = self.0.parse().unwrap();
        Box::pin(async { Ok(LocalEndpoint { base_url, bearer: Some(Secret::new("local-bearer")) }) })
    }

    fn status(&self) -> LocalStatus {
        self.1.clone()
    }
}

#[tokio::test]
async fn the_local_model_takes_one_turn_at_a_time() {
    let slow = Scripted { after: Duration::from_millis(20), ..Scripted::ok(text("yes").on(Kind::Local)) };
    let rig = Rig::with(vec![slow], "", Vec::new()).await;
    rig.gateway.set_local(Arc::new(Here(format!("{}/v1", rig.server.url()), LocalStatus::Idle)));
    ask_at_once(&rig, "local", 4).await;
    assert_eq!(rig.server.most_at_once(), 1);
    let asked = &rig.server.asked()[0];
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.headers.get("authorization").map(String::as_str), Some("Bearer local-bearer"));
}

#[tokio::test]
async fn the_worst_case_holds_for_whoever_answers() {
    let more = r#"
        model.claude.fallbacks = ["gpt", "bedrock"]
        model.gpt.prices = { input = 3000000, output = 9000000 }
        model.bedrock.max_output = 100
    "#;
    let rig = Rig::with(vec![Scripted::refusal(500, "")], more, vec!["anthropic", "openai"]).await;
    let chosen = rig.gateway.choose(None, "writer").unwrap();
    let plain = Request { tools: Vec::new(), ..request() };
    let prompt = plain.tokens();
    let worst = rig.gateway.worst_case(&chosen, &plain);
    assert_eq!(worst, WorstCase { tokens: prompt + 500, micros: Some(prompt * 3 + 500 * 9) });
    // With tools, an answer may be asked for twice.
    let worst = rig.gateway.worst_case(&chosen, &request());
    assert_eq!(worst.tokens, 2 * (request().tokens() + 500) + 1000);
    // More than a model writes is not counted.
    let long = Request { max_output: 1_000_000, ..plain.clone() };
    assert_eq!(rig.gateway.worst_case(&chosen, &long).tokens, prompt + 1000);
}

#[tokio::test]
async fn the_worst_case_is_not_known_where_a_price_is_not() {
    let more = r#"
        model.claude.fallbacks = ["unknown"]
        model.unknown = { provider = "openai", id = "x", context = 9000, max_output = 100 }
    "#;
    for (keys, known) in [(vec!["anthropic"], true), (vec!["anthropic", "openai"], false)] {
        let rig = Rig::with(vec![Scripted::refusal(500, "")], more, keys).await;
        let chosen = rig.gateway.choose(None, "writer").unwrap();
        assert_eq!(rig.gateway.worst_case(&chosen, &request()).micros.is_some(), known);
    }
}

#[tokio::test]
async fn what_a_turn_takes_is_within_its_worst_case() {
    for (kind, alias) in WIRES {
        let rig = Rig::new(vec![Scripted::ok(text("yes").on(kind))]).await;
        let long = Request { system: "word ".repeat(200), ..request() };
        let worst = rig.gateway.worst_case(&rig.gateway.chosen(alias).unwrap(), &long);
        let turn = rig.ask(alias, &long).await.0.unwrap();
        assert!(turn.reply.usage.total() <= worst.tokens && turn.cost <= worst.micros, "{kind:?}");
    }
}

#[tokio::test]
async fn a_turn_pays_for_two_answers_at_most_whoever_gives_them() {
    let senseless = |kind| Scripted::ok(call("read", r#"{"file":"a"}"#).on(kind));
    let answers = vec![
        senseless(Kind::Anthropic),
        Scripted::refusal(529, "{}"),
        senseless(Kind::Openai),
        senseless(Kind::Openai),
    ];
    let more = "retry.attempts = 1\nmodel.claude.fallbacks = [\"gpt\"]";
    let rig = Rig::with(answers, more, vec!["anthropic", "openai"]).await;
    let worst = rig.gateway.worst_case(&rig.gateway.chosen("claude").unwrap(), &request());
    let error = rig.ask("claude", &request()).await.0.unwrap_err();
    assert_eq!(rig.server.asked().len(), 3, "the last is not asked for");
    assert!(error.usage.total() > 0 && error.usage.total() <= worst.tokens, "{error:?}");
}
