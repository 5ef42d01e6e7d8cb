//! The server with a scripted model.

use axum::body::Body;
use axum::http::Request as HttpRequest;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::engine::tests::engine;

fn service(answers: &[&str]) -> Router {
    router(Worker::start(engine(answers), |_| {}).unwrap(), "secret".into(), "small".into())
}

async fn ask(service: &Router, token: &str, body: Value) -> (StatusCode, String) {
    let request = HttpRequest::post("/v1/chat/completions")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    let response = service.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn user(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

fn with_tool(mut request: Value) -> Value {
    let parameters =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    request["tools"] =
        json!([{ "type": "function", "function": { "name": "read", "parameters": parameters } }]);
    request
}

/// The chunks of a stream.
fn chunks(text: &str) -> Vec<Value> {
    let lines: Vec<&str> = text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    let (last, chunks) = lines.split_last().unwrap();
    assert_eq!(*last, "[DONE]");
    chunks.iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect()
}

#[tokio::test]
async fn a_complete_answer_has_text_usage_and_a_finish_reason() {
    let (status, body) = ask(&service(&["Hello."]), "secret", user("Hi")).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, StatusCode::OK);
    assert_eq!(answer["model"], "small");
    assert_eq!(answer["choices"][0]["message"], json!({ "role": "assistant", "content": "Hello." }));
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["completion_tokens"], 6);
    assert_eq!(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

#[tokio::test]
async fn a_stream_sends_text_in_pieces_and_the_usage_at_the_end() {
    let mut request = user("Hi");
    request["stream"] = true.into();
    let service = service(&["Hello.", "Hello."]);
    let (_, body) = ask(&service, "secret", request.clone()).await;
    let chunks = chunks(&body);
    assert_eq!(chunks[0]["object"], "chat.completion.chunk");
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let text: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Hello.");
    let [.., last, usage] = chunks.as_slice() else { panic!("{body}") };
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["completion_tokens"], 6);
    // The second time, nearly all of the prompt is cached.
    let (_, body) = ask(&service, "secret", request).await;
    let usage = &self::chunks(&body).pop().unwrap()["usage"];
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert_eq!(cached, usage["prompt_tokens"].as_u64().unwrap() - 1);
}

#[tokio::test]
async fn a_call_is_sent_as_tool_calls() {
    let wanted = r#"{"name": "read", "arguments": {"path": "a.txt"}}"#;
    let service = service(&[wanted, wanted]);
    let mut request = with_tool(user("Hi"));
    let (_, body) = ask(&service, "secret", request.clone()).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"], json!({ "name": "read", "arguments": r#"{"path": "a.txt"}"# }));
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");

    request["stream"] = true.into();
    let (_, body) = ask(&service, "secret", request).await;
    let chunks = chunks(&body);
    let calls: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| !call.is_null())
        .collect();
    assert_eq!(calls[0]["function"]["name"], "read");
    assert!(calls[0]["id"].as_str().unwrap().starts_with("call_"));
    let arguments: String = calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!(arguments, r#"{"path": "a.txt"}"#);
}

#[tokio::test]
async fn requests_without_the_token_are_rejected() {
    let service = service(&["Hello."]);
    for token in ["", "wrong", "secre", "secrets"] {
        let (status, body) = ask(&service, token, user("Hi")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{token}");
        assert!(body.contains("invalid_api_key") && !body.contains("secret\""), "{body}");
    }
    let health = service.oneshot(HttpRequest::get("/health").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
}

#[tokio::test]
async fn invalid_requests_are_rejected_before_the_stream_starts() {
    let service = service(&[]);
    let mut long = user(&"x".repeat(3000));
    long["stream"] = true.into();
    for (request, code) in [
        (long, "context_length_exceeded"),
        (json!({ "messages": [] }), "invalid_request"),
        (json!({ "message": "?" }), "invalid_json"),
    ] {
        let (status, body) = ask(&service, "secret", request).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"]["code"], code);
    }
}

#[tokio::test]
async fn a_full_queue_returns_an_overload_error() {
    // A worker that never takes a job from its queue.
    let worker = Worker::stuck();
    let waiting: Vec<_> =
        (0..8).map(|_| worker.answer(serde_json::from_value(user("Hi")).unwrap())).collect();
    assert!(waiting.iter().all(Result::is_ok));
    let service = router(worker, "secret".into(), "small".into());
    let (status, body) = ask(&service, "secret", user("Hi")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("overloaded"), "{body}");
}
