//! Spans of agents for a collector that the machine's owner named (`[telemetry]`), over OTLP with JSON. Off by default.
//!
//! It follows the log beside the choir and is in nobody's way: spans that a collector does not take in time are dropped.

use std::collections::BTreeMap;
use std::time::Duration;

use agents::spans::{Span, SpanSource, Spans};
use event_log::{EventLog, decode_event, read_content};
use models::{Catalog, ProviderKind};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use shared_types::payload::run::RunEvent;
use shared_types::wire::TelemetryLine;
use shared_types::{ContentHash, Event, Payload, RunId, Timestamp};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use url::Url;

use crate::address::shown;
use computer::error::{ComputerError, ErrorCode};

/// Spans that wait for the collector at most.
const WAITING: usize = 4096;
/// Spans of one request, and how long they are gathered.
const BATCH: usize = 256;
const GATHER: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(10);
/// How long closing a computer waits for the last of them.
const FAREWELL: Duration = Duration::from_secs(2);
/// Bytes of a text in a span, where contents are told.
const TEXT: usize = 32 << 10;

/// `[telemetry]` of `choir.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetryConfig {
    /// The collector, such as `http://127.0.0.1:4318`.
    pub otlp: Url,
    /// Whether what models and tools said is told, too.
    #[serde(default)]
    pub contents: bool,
}

/// A collector.
#[derive(Debug, Clone)]
pub struct Telemetry {
    client: Client,
    url: Url,
    contents: bool,
}

impl Telemetry {
    pub fn new(config: &TelemetryConfig) -> Result<Self, ComputerError> {
        let wrong =
            |why: String| ComputerError::new(ErrorCode::BadRequest, format!("[telemetry] otlp: {why}"));
        let url = format!("{}/v1/traces", config.otlp.as_str().trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|e| wrong(e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("{url} is neither http nor https")));
        }
        models::prepare_tls();
        let client = Client::builder().redirect(redirect::Policy::none()).timeout(PATIENCE).build();
        let client = client.map_err(|e| wrong(e.to_string()))?;
        Ok(Self { client, url, contents: config.contents })
    }

    /// As the person sees it.
    pub fn line(&self) -> TelemetryLine {
        TelemetryLine { address: shown(&self.url), contents: self.contents }
    }

    /// Sends what is told until nobody tells anything any more.
    async fn send_all(self, mut told: mpsc::Receiver<Span>) {
        let mut was_refused = false;
        loop {
            let mut spans = Vec::new();
            if told.recv_many(&mut spans, BATCH).await == 0 {
                return;
            }
            let gathered = tokio::time::sleep(GATHER);
            tokio::pin!(gathered);
            while spans.len() < BATCH {
                tokio::select! {
                    span = told.recv() => match span {
                        Some(span) => spans.push(span),
                        None => break,
                    },
                    () = &mut gathered => break,
                }
            }
            let refused = self.send(&spans).await.err();
            if let Some(why) = refused.as_ref().filter(|_| !was_refused) {
                tracing::warn!(why, "the collector of telemetry takes no spans; they are dropped");
            }
            was_refused = refused.is_some();
        }
    }

    async fn send(&self, spans: &[Span]) -> Result<(), String> {
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let response = request.body(otlp(spans).to_string()).send().await;
        let response = response.map_err(|e| e.without_url().to_string())?;
        if response.status().is_success() { Ok(()) } else { Err(format!("it answers {}", response.status())) }
    }
}

/// The runs of one computer on their way to a collector.
#[derive(Debug)]
pub(crate) struct Traced {
    runs: BTreeMap<RunId, Spans>,
    catalog: Catalog,
    contents: bool,
    told: mpsc::Sender<Span>,
    sending: JoinHandle<()>,
}

struct Lookup<'a> {
    catalog: &'a Catalog,
    log: Option<&'a dyn EventLog>,
}

impl SpanSource for Lookup<'_> {
    fn model(&self, alias: &str) -> (String, String) {
        let Some(model) = self.catalog.models.get(alias) else { return ("unknown".into(), alias.into()) };
        let kind = self.catalog.providers.get(&model.provider).map(|provider| provider.kind);
        let provider = match kind {
            Some(ProviderKind::Anthropic) => "anthropic",
            Some(ProviderKind::Bedrock) => "aws.bedrock",
            // Many speak this protocol, and each has a name of its own.
            Some(ProviderKind::Openai | ProviderKind::Local) | None => &model.provider,
        };
        (provider.to_owned(), model.id.clone())
    }

    fn content(&self, hash: ContentHash) -> Option<String> {
        let bytes = read_content(self.log?, &hash).ok()?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        text.truncate(text.floor_char_boundary(TEXT));
        Some(text)
    }
}

impl Traced {
    /// Has to be called where tasks can be spawned.
    pub(crate) fn new(telemetry: &Telemetry, catalog: &Catalog) -> Self {
        let (told, waiting) = mpsc::channel(WAITING);
        let sending = tokio::spawn(telemetry.clone().send_all(waiting));
        let (catalog, contents) = (catalog.clone(), telemetry.contents);
        Self { runs: BTreeMap::new(), catalog, contents, told, sending }
    }

    /// The next events of the log.
    pub(crate) fn tell(&mut self, events: &[Event], log: &dyn EventLog) {
        let lookup = Lookup { catalog: &self.catalog, log: self.contents.then_some(log) };
        for event in events {
            let Some(run) = event.run_id else { continue };
            let spans = self.runs.entry(run).or_insert_with(|| before(run, event, log, &lookup));
            if let Some(span) = spans.add(event, &lookup) {
                // Whoever cannot follow misses some.
                let _ = self.told.try_send(span);
            }
            let is_over = matches!(
                event.payload,
                Payload::Run(RunEvent::Complete(_) | RunEvent::Fail(_) | RunEvent::Cancel(_))
            );
            if is_over {
                self.runs.remove(&run);
            }
        }
    }

    /// Waits a little for the last of them.
    pub(crate) async fn close(self) {
        drop(self.told);
        let _ = tokio::time::timeout(FAREWELL, self.sending).await;
    }
}

/// A run that began before this process did: who works in it is known from the log.
fn before(run: RunId, event: &Event, log: &dyn EventLog, lookup: &Lookup<'_>) -> Spans {
    let mut spans = Spans::new(run);
    let past = log.run(run).unwrap_or_default();
    for stored in past.iter().filter(|stored| stored.seq < event.seq) {
        if let Ok(event) = decode_event(log, stored) {
            spans.add(&event, lookup);
        }
    }
    spans
}

/// Spans as a collector wants them.
fn otlp(spans: &[Span]) -> Value {
    let nanos = |at: Timestamp| format!("{}000000", at.millis().max(0));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let one = |span: &Span| {
        let attributes = span.attributes.iter();
        let attributes: Vec<Value> =
            attributes.map(|(key, value)| json!({ "key": key, "value": any_value(value) })).collect();
        json!({
            "traceId": hex(span.trace.as_bytes()),
            "spanId": hex(&span.id),
            "parentSpanId": span.parent.map(|id| hex(&id)).unwrap_or_default(),
            "name": span.name,
            "kind": if span.is_client { 3 } else { 1 },
            "startTimeUnixNano": nanos(span.start),
            "endTimeUnixNano": nanos(span.end),
            "attributes": attributes,
            "status": if span.error.is_some() { json!({ "code": 2 }) } else { json!({}) },
        })
    };
    let spans: Vec<Value> = spans.iter().map(one).collect();
    let service = json!({ "key": "service.name", "value": { "stringValue": "choir" } });
    let scope = json!({ "name": "choir.agents", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceSpans": [{
        "resource": { "attributes": [service] },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] })
}

fn any_value(value: &Value) -> Value {
    match value {
        Value::Array(values) => {
            let values: Vec<Value> = values.iter().map(any_value).collect();
            json!({ "arrayValue": { "values": values } })
        }
        // Whole numbers of 64 bits are texts in JSON.
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::String(text) => json!({ "stringValue": text }),
        Value::Null | Value::Object(_) => json!({ "stringValue": value.to_string() }),
    }
}
