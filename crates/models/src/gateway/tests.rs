//! The gateway against a scripted test server, with every protocol.

mod answers;
mod choosing;
mod json_answers;
mod keys;
mod limits;
mod replies;
mod retries;
mod server;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use serde_json::json;

use self::server::{ScriptedResponse, Server};
use super::*;
use crate::{
    ApiKey, ProviderKind,
    chat::{Delta, Tool},
};

/// The three protocols, and the model of each in the test catalog.
const PROTOCOLS: [(ProviderKind, &str); 3] =
    [(ProviderKind::Anthropic, "claude"), (ProviderKind::Openai, "gpt"), (ProviderKind::Bedrock, "bedrock")];
const KEY: &str = "key-that-must-stay-secret";

/// ApiKeys for these providers.
struct TestKeys(Vec<&'static str>);

impl ApiKeys for TestKeys {
    fn key(&self, provider: &str) -> Option<ApiKey> {
        self.0.contains(&provider).then(|| ApiKey::new(KEY))
    }
}

/// A clock that does not wait and records the pauses.
#[derive(Default)]
struct InstantClock(Mutex<Vec<Duration>>);

impl Clock for InstantClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_746_096)
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().push(pause);
        Box::pin(async {})
    }
}

/// A catalog whose providers are all this server, with `overrides` applied.
fn catalog(url: &str, overrides: &str) -> Catalog {
    let model = |provider: &str, supports: &str| {
        format!(
            r#"{{ provider = "{provider}", id = "{provider}-1", context = 200000, max_output = 1000, supports = {supports}, fallbacks = [],
                prices = {{ input = 1000000, output = 5000000, cache_read = 100000, cache_write = 1250000 }} }}"#
        )
    };
    let text = format!(
        r#"
        provider.anthropic = {{ base_url = "{url}" }}
        provider.openai = {{ base_url = "{url}/v1" }}
        provider.bedrock = {{ base_url = "{url}" }}
        model.claude = {}
        model.gpt = {}
        model.bedrock = {}
        roles = {{ writer = "claude" }}
        patience = {{ silence_ms = 400 }}
        "#,
        model("anthropic", r#"["calls", "cache", "forced_calls"]"#),
        model("openai", r#"["json_schema", "forced_calls"]"#),
        model("bedrock", r#"["calls", "cache", "forced_calls"]"#),
    );
    let mut table: toml::Table = text.parse().unwrap();
    let overrides: toml::Table = overrides.parse().unwrap();
    merge(&mut table, overrides);
    Catalog::load(Some(&table)).unwrap()
}

fn merge(base: &mut toml::Table, overrides: toml::Table) {
    for (key, value) in overrides {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(overrides)) => merge(base, overrides),
            (_, value) => _ = base.insert(key, value),
        }
    }
}

/// A gateway connected to a scripted test server.
struct TestGateway {
    gateway: Gateway,
    server: Server,
    clock: Arc<InstantClock>,
}

impl TestGateway {
    async fn new(answers: Vec<ScriptedResponse>) -> Self {
        Self::with_settings(answers, "", vec!["anthropic", "openai", "bedrock"]).await
    }

    async fn with_settings(answers: Vec<ScriptedResponse>, overrides: &str, keys: Vec<&'static str>) -> Self {
        let server = Server::start(answers).await;
        let clock = Arc::new(InstantClock::default());
        let gateway =
            Gateway::with_clock(catalog(server.url(), overrides), Arc::new(TestKeys(keys)), clock.clone());
        Self { gateway, server, clock }
    }

    async fn ask(
        &self,
        alias: &str,
        request: &ChatRequest,
    ) -> (Result<CompletedTurn, ModelError>, Vec<Delta>) {
        let deltas = Arc::new(Mutex::new(Vec::new()));
        let collected = deltas.clone();
        let listener: DeltaListener = Arc::new(move |delta| collected.lock().unwrap().push(delta));
        let chosen = self.gateway.chosen(alias).unwrap();
        let turn = self.gateway.take_turn(&chosen, request, listener, &UsageMeter::default()).await;
        let deltas = deltas.lock().unwrap().clone();
        (turn, deltas)
    }

    fn pauses(&self) -> Vec<Duration> {
        self.clock.0.lock().unwrap().clone()
    }
}

fn request() -> ChatRequest {
    let tool = |name: &str, field: &str| Tool {
        name: name.into(),
        description: format!("Can {name}."),
        input: json!({"type": "object", "required": [field], "properties": {field: {"type": "string"}}}),
    };
    ChatRequest {
        system: "Be good.".into(),
        messages: vec![Message::User { text: "Go.".into() }],
        tools: vec![tool("read", "path"), tool("list", "folder")],
        max_output: 500,
        answer: AnswerForm::Any,
    }
}

fn class(turn: Result<CompletedTurn, ModelError>) -> ErrorClass {
    turn.unwrap_err().class
}

#[test]
fn the_gateway_is_sync_and_its_futures_are_send() {
    fn is_send<T: Send>(_: &T) {}
    fn is_shared<T: Clone + Send + Sync>(_: &T) {}
    let gateway = Gateway::new(Catalog::load(None).unwrap(), Arc::new(TestKeys(Vec::new())));
    is_shared(&gateway);
    let (chosen, request) = (gateway.chosen("claude-sonnet").unwrap(), request());
    is_send(&gateway.take_turn(&chosen, &request, Arc::new(|_| {}), &UsageMeter::default()));
}
