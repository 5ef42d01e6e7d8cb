//! Bodies that are too long, malformed or of the wrong type: an error as `problem+json`, and nothing changed.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::test_server::{OWN_ORIGIN, TestServer, get, owner, post, request};

const TOKENS: &str = "/api/v1/auth/tokens";

#[tokio::test]
async fn a_body_that_cannot_be_parsed_changes_nothing() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    let good = json!({ "name": "script", "scopes": ["read"] }).to_string();
    let long = format!("{}{good}", " ".repeat(1 << 20));
    for (kind, body, status, code) in [
        ("application/json", long.as_str(), 413, "too_large"),
        ("application/json", "{\"name\":", 400, "bad_request"),
        ("application/json", "\u{fffd}", 400, "bad_request"),
        ("application/json", "", 400, "bad_request"),
        ("application/json", "[]", 422, "invalid"),
        ("application/json", r#"{"name":"x"}"#, 422, "invalid"),
        ("application/json", r#"{"name":"x","scopes":["read"],"admin":true}"#, 422, "invalid"),
        ("application/json", r#"{"name":"x","scopes":["everything"]}"#, 422, "invalid"),
        ("application/json", r#"{"name":"x","scopes":["account"]}"#, 422, "invalid"),
        ("application/json", r#"{"name":"x","scopes":[]}"#, 422, "invalid"),
        ("application/json", r#"{"name":"  ","scopes":["read"]}"#, 422, "invalid"),
        ("application/json", r#"{"name":"a\nb","scopes":["read"]}"#, 422, "invalid"),
        ("application/json", r#"{"name":"x","scopes":["read"],"days":0}"#, 422, "invalid"),
        ("application/json", r#"{"name":"x","scopes":["read"],"days":-1}"#, 422, "invalid"),
        ("text/plain", good.as_str(), 415, "not_json"),
        ("application/x-www-form-urlencoded", good.as_str(), 415, "not_json"),
        ("", good.as_str(), 415, "not_json"),
    ] {
        let request = request(Method::POST, TOKENS).with("origin", OWN_ORIGIN).cookie(&cookie);
        let request = request.with("content-type", kind).body(body.to_owned());
        let answer = request.send(&server).await;
        let result = (answer.status.as_u16(), answer.code());
        assert_eq!(result, (status, code), "{kind} {}", body.trim());
    }
    assert!(server.identity.tokens(&owner()).unwrap().is_empty());
    assert_eq!(
        post(TOKENS, &serde_json::from_str(&good).unwrap()).cookie(&cookie).send(&server).await.status,
        200
    );
}

#[tokio::test]
async fn unknown_routes_and_methods_are_problems_too() {
    let server = TestServer::new();
    assert_eq!(get("/api/v1/nothing").send(&server).await.code(), "not_found");
    assert_eq!(get("/api/v1/auth/sessions/../x").send(&server).await.code(), "not_found");
    let wrong = request(Method::PUT, "/api/v1/auth/link").send(&server).await;
    assert_eq!((wrong.status, wrong.code()), (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"));
}

#[tokio::test]
async fn malformed_credentials_count_as_signed_out() {
    let server = TestServer::new();
    for (name, value) in [
        ("cookie", "choir_session_8080=".to_owned() + &"0".repeat(64)),
        ("cookie", "choir_session_8080".into()),
        ("cookie", "choir_session_8080=;;;=;choir_session_8080=\u{e9}".into()),
        ("cookie", "choir_session_8081=".to_owned() + &"0".repeat(64)),
        ("authorization", "Bearer choir_".to_owned() + &"0".repeat(64)),
        ("authorization", "Bearer".into()),
        ("authorization", "Basic b3duZXI6eA==".into()),
        ("authorization", String::new()),
    ] {
        let answer = get("/api/v1/mine").with(name, &value).send(&server).await;
        assert_eq!(answer.code(), "signed_out", "{name}: {value}");
    }
}

#[tokio::test]
async fn a_route_for_files_accepts_larger_bodies() {
    let server = TestServer::new();
    let token = server.token_of(&owner(), &[shared_types::wire::TokenScope::Write]);
    let request = request(Method::PUT, "/api/v1/bytes").token(&token).body(vec![0; 3 << 20]);
    assert_eq!(request.send(&server).await.bytes, b"3145728");
}
