//! Spans of a run, as a collector on this machine receives them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use agent_host::agent_services::{AgentServices, ServicesConfig};
use agent_host::telemetry::TelemetryConfig;
use scripted_model::Wire;
use serde_json::Value;

use crate::scenario::Scenario;
use crate::scenario_host::ScenarioHost;

/// Takes every request that comes, and keeps what it holds.
fn collector() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let kept = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&kept);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut text, mut piece) = (Vec::new(), [0; 65536]);
            let body = loop {
                let read = stream.read(&mut piece).unwrap();
                text.extend_from_slice(&piece[..read]);
                let so_far = String::from_utf8_lossy(&text).into_owned();
                let Some((head, body)) = so_far.split_once("\r\n\r\n") else { continue };
                assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
                let length = head.to_lowercase().split("content-length: ").nth(1).unwrap().to_owned();
                if body.len() >= length.lines().next().unwrap().parse::<usize>().unwrap() {
                    break body.to_owned();
                }
            };
            taken.lock().unwrap().push(serde_json::from_str(&body).unwrap());
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, kept)
}

/// Plays a scenario with telemetry, or without, and returns what the collector got: spans by name, as maps.
fn play(name: &str, is_on: bool, contents: bool) -> Vec<BTreeMap<String, String>> {
    let (url, kept) = collector();
    let scenario = Scenario::all().into_iter().find(|scenario| scenario.name == name).unwrap();
    let host = ScenarioHost::new(&scenario, Wire::Anthropic);
    let telemetry = is_on.then(|| TelemetryConfig { otlp: url.parse().unwrap(), contents });
    let agent_services: AgentServices =
        host.agent_services().with_services(&ServicesConfig { search: None, telemetry }).unwrap();
    let end = host.carry_on_with(host.prepare(), &agent_services).unwrap();
    host.judge(&end).unwrap();
    let kept = kept.lock().unwrap();
    let spans = kept.iter().flat_map(|body| body["resourceSpans"].as_array().unwrap());
    let spans = spans.flat_map(|resource| resource["scopeSpans"][0]["spans"].as_array().unwrap());
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    spans
        .map(|span| {
            let own = ["name", "traceId", "spanId", "parentSpanId", "kind", "status"];
            let own = own.iter().map(|key| ((*key).to_owned(), plain(&span[*key])));
            let attributes = span["attributes"].as_array().unwrap().iter().map(|attribute| {
                let value = attribute["value"].as_object().unwrap().values().next().unwrap();
                (attribute["key"].as_str().unwrap().to_owned(), plain(value))
            });
            own.chain(attributes).collect()
        })
        .collect()
}

#[test]
fn a_collector_that_is_named_receives_the_spans_of_a_run() {
    let spans = play("secrets-are-asked-for", true, false);
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let (conductor, researcher) = (named("invoke_agent conductor")[0], named("invoke_agent researcher")[0]);
    assert_eq!((conductor["parentSpanId"].as_str(), &researcher["parentSpanId"]), ("", &conductor["spanId"]));
    let chats = named("chat scripted-1");
    assert_eq!(chats.len(), 4);
    let run = &conductor["gen_ai.conversation.id"];
    assert!(spans.iter().all(|span| &span["gen_ai.conversation.id"] == run));
    assert!(spans.iter().all(|span| span["traceId"] == run.replace('-', "")), "{run}");
    for chat in &chats {
        let told = |key: &str| chat[key].as_str();
        assert_eq!((told("gen_ai.operation.name"), told("gen_ai.provider.name")), ("chat", "anthropic"));
        assert_eq!(
            (told("gen_ai.request.model"), told("gen_ai.response.model")),
            ("scripted-1", "scripted-1")
        );
        assert_eq!((told("gen_ai.usage.input_tokens"), told("gen_ai.usage.output_tokens")), ("100", "10"));
        assert_eq!(told("kind"), "3");
    }
    let reads = named("execute_tool read");
    assert_eq!(reads.len(), 2);
    assert!(reads.iter().all(|read| read["parentSpanId"] == researcher["spanId"]));
    assert!(
        reads
            .iter()
            .all(|read| read["gen_ai.tool.name"] == "read" && !read["gen_ai.tool.call.id"].is_empty())
    );
    let errors: Vec<_> = reads.iter().filter_map(|read| read.get("error.type")).collect();
    assert_eq!(errors, ["failed"]);
    // The spans contain no texts.
    let all = format!("{spans:?}");
    assert!(!all.contains("An app.") && !all.contains("readme"), "{all}");
}

#[test]
fn contents_are_told_only_where_the_owner_says_so() {
    let spans = play("secrets-are-asked-for", true, true);
    let results = spans.iter().filter_map(|span| span.get("gen_ai.tool.call.result"));
    assert!(results.into_iter().any(|result| result.contains("An app.")));
    let said = spans.iter().filter_map(|span| span.get("gen_ai.output.messages"));
    assert!(said.into_iter().any(|said| said.contains("The readme does not say.")));
}

#[test]
fn nothing_is_sent_where_no_collector_is_named() {
    assert_eq!(play("secrets-are-asked-for", false, false), []);
}
