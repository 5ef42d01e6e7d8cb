//! Remote MCP servers, over streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::post};
use serde_json::{Value, json};

use crate::test_servers::{SECRET, TestServers};

/// How the server answers.
#[derive(Clone, Copy, PartialEq)]
enum ResponseFormat {
    Json,
    Events,
}

/// A tracker on this machine that wants its key; the address.
async fn serve(form: ResponseFormat) -> (String, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let answer = move |headers: HeaderMap, Json(request): Json<Value>| {
        let calls = Arc::clone(&counted);
        async move { respond(form, &headers, &request, &calls) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/mcp", post(answer))).await });
    (format!("http://127.0.0.1:{port}/mcp"), calls)
}

fn respond(form: ResponseFormat, headers: &HeaderMap, request: &Value, calls: &AtomicU32) -> Response {
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if key != Some(&format!("Bearer {SECRET}")) {
        let said = format!("no entry with {}", key.unwrap_or("nothing"));
        return (StatusCode::UNAUTHORIZED, said).into_response();
    }
    let result = match request["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "far", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [
            { "name": "count", "description": "Counts", "inputSchema": { "type": "object" } },
            { "name": "flood", "description": "Says too much", "inputSchema": { "type": "object" } },
            { "name": "echo", "description": "Says what it is sent", "inputSchema": { "type": "object" } },
        ] }),
        "tools/call" if request["params"]["name"] == "count" => {
            let count = calls.fetch_add(1, Ordering::Relaxed) + 1;
            json!({ "content": [{ "type": "text", "text": format!("{count}") }] })
        }
        "tools/call" if request["params"]["name"] == "flood" => {
            json!({ "content": [{ "type": "text", "text": "x".repeat(20 << 20) }] })
        }
        "tools/call" => json!({ "content": [{ "type": "text", "text": format!("{key:?}") }] }),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
    match form {
        ResponseFormat::Json => Json(message).into_response(),
        ResponseFormat::Events => {
            let body = format!("event: message\ndata: {message}\n\n");
            ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
    }
}

fn tracker(url: &str, key: &str) -> String {
    format!("[mcp.tracker]\nurl = \"{url}\"\nkey = \"{key}\"\nseconds = 5\n")
}

#[tokio::test]
async fn a_server_elsewhere_is_reached_with_the_key_of_the_vault() {
    for form in [ResponseFormat::Json, ResponseFormat::Events] {
        let (url, calls) = serve(form).await;
        let servers = TestServers::new(&tracker(&url, "tracker"));
        let offer = servers.offer().await;
        assert_eq!(offer.tools.len(), 3, "{:?}", servers.tools.lines());
        assert_eq!((servers.says("count").await, servers.says("count").await), ("1".into(), "2".into()));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        let said = servers.says("echo").await;
        assert!(said.contains("[a secret]") && !said.contains(SECRET), "{said}");
    }
}

#[tokio::test]
async fn an_answer_without_end_costs_one_call() {
    for form in [ResponseFormat::Json, ResponseFormat::Events] {
        let (url, _) = serve(form).await;
        let servers = TestServers::new(&tracker(&url, "tracker"));
        let why = servers.fails("flood").await;
        assert!(why.len() < 1_000, "{why}");
        assert_eq!(servers.says("count").await, "1");
    }
}

#[tokio::test]
async fn a_server_that_does_not_let_us_in_is_told_of() {
    let (url, _) = serve(ResponseFormat::Json).await;
    let servers = TestServers::new(&format!("[mcp.tracker]\nurl = \"{url}\"\n"));
    assert_eq!(servers.offer().await.silent, ["tracker"]);
    let trouble = servers.tools.lines()[0].problem.clone().unwrap();
    assert!(trouble.contains("401"), "{trouble}");
    let unreachable = TestServers::new("[mcp.tracker]\nurl = \"http://127.0.0.1:9/mcp\"\n");
    assert_eq!(unreachable.offer().await.silent, ["tracker"]);
    let trouble = unreachable.tools.lines()[0].problem.clone().unwrap();
    assert!(trouble.contains("refused") && !trouble.contains("::"), "{trouble}");
}

#[tokio::test]
async fn what_stands_behind_a_question_mark_is_not_shown() {
    let servers = TestServers::new("[mcp.tracker]\nurl = \"https://example.org/mcp?key=abc\"\n");
    assert_eq!(servers.tools.lines()[0].target, "https://example.org/mcp");
}
