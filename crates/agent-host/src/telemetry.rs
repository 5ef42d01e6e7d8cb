//! Sends spans of agents to the collector that the machine's owner configured (`[telemetry]`), over OTLP with JSON.
//! Off by default.
//!
//! It follows the log independently of agents. Spans that the collector does not accept in time are dropped.

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

use crate::address::redacted;
use computer::error::{ComputerError, ErrorCode};

/// Spans that may wait for the collector.
const QUEUE_LENGTH: usize = 4096;
/// Spans of one request, and how long they are collected.
const BATCH: usize = 256;
const BATCH_INTERVAL: Duration = Duration::from_millis(500);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long closing a computer waits for the last spans.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest text in a span, if contents are sent.
const MAX_TEXT_BYTES: usize = 32 << 10;

/// `[telemetry]` of `choir.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetryConfig {
    /// The collector, such as `http://127.0.0.1:4318`.
    pub otlp: Url,
    /// Whether texts of models and tools are sent, too.
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
            |reason: String| ComputerError::new(ErrorCode::BadRequest, format!("[telemetry] otlp: {reason}"));
        let url = format!("{}/v1/traces", config.otlp.as_str().trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|e| wrong(e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("{url} is neither http nor https")));
        }
        models::prepare_tls();
        let client = Client::builder().redirect(redirect::Policy::none()).timeout(REQUEST_TIMEOUT).build();
        let client = client.map_err(|e| wrong(e.to_string()))?;
        Ok(Self { client, url, contents: config.contents })
    }

    /// The collector as shown to the person.
    pub fn line(&self) -> TelemetryLine {
        TelemetryLine { address: redacted(&self.url), contents: self.contents }
    }

    /// Sends queued spans until the queue is closed.
    async fn send_all(self, mut queue: mpsc::Receiver<Span>) {
        let mut was_refused = false;
        loop {
            let mut spans = Vec::new();
            if queue.recv_many(&mut spans, BATCH).await == 0 {
                return;
            }
            let interval = tokio::time::sleep(BATCH_INTERVAL);
            tokio::pin!(interval);
            while spans.len() < BATCH {
                tokio::select! {
                    span = queue.recv() => match span {
                        Some(span) => spans.push(span),
                        None => break,
                    },
                    () = &mut interval => break,
                }
            }
            let refused = self.send(&spans).await.err();
            if let Some(reason) = refused.as_ref().filter(|_| !was_refused) {
                tracing::warn!(reason, "the telemetry collector does not accept spans; they are dropped");
            }
            was_refused = refused.is_some();
        }
    }

    async fn send(&self, spans: &[Span]) -> Result<(), String> {
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let response = request.body(otlp(spans).to_string()).send().await;
        let response = response.map_err(|e| e.without_url().to_string())?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(format!("HTTP status {}", response.status()))
        }
    }
}

/// Converts the events of one computer's runs to spans and queues them.
#[derive(Debug)]
pub(crate) struct RunTelemetry {
    runs: BTreeMap<RunId, Spans>,
    catalog: Catalog,
    contents: bool,
    queue: mpsc::Sender<Span>,
    sending: JoinHandle<()>,
}

struct SpanLookup<'a> {
    catalog: &'a Catalog,
    log: Option<&'a dyn EventLog>,
}

impl SpanSource for SpanLookup<'_> {
    fn model(&self, alias: &str) -> (String, String) {
        let Some(model) = self.catalog.models.get(alias) else { return ("unknown".into(), alias.into()) };
        let kind = self.catalog.providers.get(&model.provider).map(|provider| provider.kind);
        let provider = match kind {
            Some(ProviderKind::Anthropic) => "anthropic",
            Some(ProviderKind::Bedrock) => "aws.bedrock",
            // Many providers use this protocol; report each under its own name.
            Some(ProviderKind::Openai | ProviderKind::Local) | None => &model.provider,
        };
        (provider.to_owned(), model.id.clone())
    }

    fn content(&self, hash: ContentHash) -> Option<String> {
        let bytes = read_content(self.log?, &hash).ok()?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        Some(text)
    }
}

impl RunTelemetry {
    /// Must be called inside a Tokio runtime.
    pub(crate) fn new(telemetry: &Telemetry, catalog: &Catalog) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_LENGTH);
        let sending = tokio::spawn(telemetry.clone().send_all(waiting));
        let (catalog, contents) = (catalog.clone(), telemetry.contents);
        Self { runs: BTreeMap::new(), catalog, contents, queue, sending }
    }

    /// Adds the next events of the log.
    pub(crate) fn add_events(&mut self, events: &[Event], log: &dyn EventLog) {
        let lookup = SpanLookup { catalog: &self.catalog, log: self.contents.then_some(log) };
        for event in events {
            let Some(run) = event.run_id else { continue };
            let spans = self.runs.entry(run).or_insert_with(|| spans_before(run, event, log, &lookup));
            if let Some(span) = spans.add(event, &lookup) {
                // If the queue is full, the span is dropped.
                let _ = self.queue.try_send(span);
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

    /// Waits briefly for the last spans to be sent.
    pub(crate) async fn close(self) {
        drop(self.queue);
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.sending).await;
    }
}

/// Restores the spans of a run that began before this process started, from the log.
fn spans_before(run: RunId, event: &Event, log: &dyn EventLog, lookup: &SpanLookup<'_>) -> Spans {
    let mut spans = Spans::new(run);
    let past = log.run(run).unwrap_or_default();
    for stored in past.iter().filter(|stored| stored.seq < event.seq) {
        if let Ok(event) = decode_event(log, stored) {
            spans.add(&event, lookup);
        }
    }
    spans
}

/// Encodes spans as OTLP JSON.
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
        // OTLP writes 64-bit integers as JSON strings.
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::String(text) => json!({ "stringValue": text }),
        Value::Null | Value::Object(_) => json!({ "stringValue": value.to_string() }),
    }
}
