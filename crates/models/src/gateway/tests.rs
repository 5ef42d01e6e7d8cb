//! The gateway against a server of the tests' own, on every wire.

mod answers;
mod choosing;
mod functions;
mod keys;
mod limits;
mod patience;
mod replies;
mod server;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use serde_json::json;

use self::server::{Scripted, Server};
use super::*;
use crate::{
    Kind, Secret,
    chat::{Delta, Tool},
};

/// The three protocols, with the model of each in the tests' catalog.
const WIRES: [(Kind, &str); 3] =
    [(Kind::Anthropic, "claude"), (Kind::Openai, "gpt"), (Kind::Bedrock, "bedrock")];
const KEY: &str = "key-that-nobody-may-see";

/// Keys for these providers.
struct Vault(Vec<&'static str>);

impl Keys for Vault {
    fn key(&self, provider: &str) -> Option<Secret> {
        self.0.contains(&provider).then(|| Secret::new(KEY))
    }
}

/// Waits without waiting, and remembers for how long.
#[derive(Default)]
struct Still(Mutex<Vec<Duration>>);

impl Clock for Still {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_746_096)
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().push(pause);
        Box::pin(async {})
    }
}

/// A catalog whose every provider is this server; `more` is laid over it.
fn catalog(url: &str, more: &str) -> Catalog {
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
    let more: toml::Table = more.parse().unwrap();
    merge(&mut table, more);
    Catalog::load(Some(&table)).unwrap()
}

fn merge(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => merge(under, over),
            (_, value) => _ = under.insert(key, value),
        }
    }
}

/// A gateway to a server with these answers.
struct Rig {
    gateway: Gateway,
    server: Server,
    clock: Arc<Still>,
}

impl Rig {
    async fn new(answers: Vec<Scripted>) -> Self {
        Self::with(answers, "", vec!["anthropic", "openai", "bedrock"]).await
    }

    async fn with(answers: Vec<Scripted>, more: &str, keys: Vec<&'static str>) -> Self {
        let server = Server::start(answers).await;
        let clock = Arc::new(Still::default());
        let gateway = Gateway::with_clock(catalog(server.url(), more), Arc::new(Vault(keys)), clock.clone());
        Self { gateway, server, clock }
    }

    async fn ask(&self, alias: &str, request: &Request) -> (Result<Turn, ModelError>, Vec<Delta>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = heard.clone();
        let listener: Listener = Arc::new(move |delta| ears.lock().unwrap().push(delta));
        let chosen = self.gateway.chosen(alias).unwrap();
        let turn = self.gateway.take_turn(&chosen, request, listener, &Meter::default()).await;
        let heard = heard.lock().unwrap().clone();
        (turn, heard)
    }

    fn pauses(&self) -> Vec<Duration> {
        self.clock.0.lock().unwrap().clone()
    }
}

fn request() -> Request {
    let tool = |name: &str, field: &str| Tool {
        name: name.into(),
        description: format!("Can {name}."),
        input: json!({"type": "object", "required": [field], "properties": {field: {"type": "string"}}}),
    };
    Request {
        system: "Be good.".into(),
        messages: vec![Message::User { text: "Go.".into() }],
        tools: vec![tool("read", "path"), tool("list", "folder")],
        max_output: 500,
        answer: AnswerForm::Any,
    }
}

fn class(turn: Result<Turn, ModelError>) -> ErrorClass {
    turn.unwrap_err().class
}

#[test]
fn a_gateway_and_its_turns_can_be_sent() {
    fn is_send<T: Send>(_: &T) {}
    fn is_shared<T: Clone + Send + Sync>(_: &T) {}
    let gateway = Gateway::new(Catalog::load(None).unwrap(), Arc::new(Vault(Vec::new())));
    is_shared(&gateway);
    let (chosen, request) = (gateway.chosen("claude-sonnet").unwrap(), request());
    is_send(&gateway.take_turn(&chosen, &request, Arc::new(|_| {}), &Meter::default()));
}
