//! The keys of model providers over HTTP: set, listed, cleared, and never returned, quoted or logged.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use shared_types::UserId;

use crate::test_server::{OWN_ORIGIN, TestRequest, TestResponse, TestServer, get, owner, request};

const KEYS: &str = "/api/v1/keys";
const ANTHROPIC: &str = "/api/v1/keys/anthropic";
const SECRET: &str = "sk-ant-api03-never-seen-again-Xy7Q";

fn change(method: Method, path: &str, cookie: &str) -> TestRequest {
    request(method, path).with("origin", OWN_ORIGIN).cookie(cookie)
}

async fn put(server: &TestServer, cookie: &str, path: &str, body: &Value) -> TestResponse {
    change(Method::PUT, path, cookie).json(body).send(server).await
}

fn read(server: &TestServer, user: &UserId, provider: &str) -> Option<String> {
    server.state.vault.reader(user).get(provider).map(|secret| secret.reveal().to_owned())
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_key_is_set_listed_without_its_secret_and_cleared() {
    let server = TestServer::new();
    let guest = server.guest();
    let (cookie, other) = (server.cookie_of(&guest), server.cookie_of(&owner()));
    assert_eq!(
        put(&server, &cookie, ANTHROPIC, &json!({ "secret": SECRET })).await.status,
        StatusCode::NO_CONTENT
    );
    let bedrock = "AKIAEXAMPLE:xyz".to_owned();
    let set =
        put(&server, &cookie, "/api/v1/keys/bedrock", &json!({ "secret": bedrock, "shared": false })).await;
    assert_eq!(set.status, StatusCode::NO_CONTENT);
    let listed = get(KEYS).cookie(&cookie).send(&server).await;
    assert_eq!(listed.header("cache-control"), "no-store");
    let at = listed.json[0]["set"].clone();
    let entry = |provider: &str, hint: Option<&str>| json!({ "provider": provider, "scope": "own", "hint": hint, "set": at, "readable": true });
    assert_eq!(listed.json, json!([entry("anthropic", Some("Xy7Q")), entry("bedrock", None)]));
    assert_eq!(get(KEYS).cookie(&other).send(&server).await.json, json!([]), "other users do not see it");
    assert_eq!(read(&server, &guest, "anthropic").as_deref(), Some(SECRET));
    assert_eq!(read(&server, &guest, "bedrock"), Some(bedrock));
    assert_eq!(read(&server, &owner(), "anthropic"), None);
    assert!(!contains(&server.everything_on_disk(), SECRET));

    let cleared = || change(Method::DELETE, ANTHROPIC, &cookie).send(&server);
    assert_eq!(cleared().await.status, StatusCode::NO_CONTENT);
    assert_eq!(cleared().await.code(), "not_found");
    assert_eq!(read(&server, &guest, "anthropic"), None);
    let audit = get("/api/v1/auth/audit").cookie(&cookie).send(&server).await;
    assert_eq!(
        (&audit.json[0]["what"], &audit.json[0]["detail"]),
        (&json!("key.cleared"), &json!("anthropic"))
    );
    assert!(!contains(&audit.bytes, "sk-ant"));
}

#[tokio::test]
async fn a_malformed_bedrock_key_is_refused_and_not_stored() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    let parts = json!({ "access_key_id": "AKIAEXAMPLE", "secret_access_key": "xyz" }).to_string();
    let refused = put(&server, &cookie, "/api/v1/keys/bedrock", &json!({ "secret": parts })).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    assert!(refused.json["detail"].as_str().unwrap().contains("ID:SECRET"), "{refused:?}");
    assert_eq!(read(&server, &owner(), "bedrock"), None);
}

#[tokio::test]
async fn the_owner_shares_a_key_and_every_user_uses_it() {
    let server = TestServer::new();
    let guest = server.guest();
    let (owners, guests) = (server.cookie_of(&owner()), server.cookie_of(&guest));
    let shared = json!({ "secret": SECRET, "shared": true });
    let refused = put(&server, &guests, ANTHROPIC, &shared).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "forbidden"));
    assert_eq!(read(&server, &guest, "anthropic"), None);
    assert_eq!(put(&server, &owners, ANTHROPIC, &shared).await.status, StatusCode::NO_CONTENT);
    assert_eq!(read(&server, &guest, "anthropic").as_deref(), Some(SECRET));
    let (mine, theirs) =
        (get(KEYS).cookie(&owners).send(&server).await, get(KEYS).cookie(&guests).send(&server).await);
    assert_eq!((&mine.json[0]["scope"], &mine.json[0]["hint"]), (&json!("shared"), &json!("Xy7Q")));
    assert_eq!((&theirs.json[0]["scope"], &theirs.json[0]["hint"]), (&json!("shared"), &Value::Null));
    let path = format!("{ANTHROPIC}?shared=true");
    assert_eq!(change(Method::DELETE, &path, &guests).send(&server).await.code(), "forbidden");
    assert_eq!(change(Method::DELETE, ANTHROPIC, &guests).send(&server).await.code(), "not_found");
    assert_eq!(change(Method::DELETE, &path, &owners).send(&server).await.status, StatusCode::NO_CONTENT);
    assert_eq!(read(&server, &guest, "anthropic"), None);
}

/// Sends invalid requests of every kind, each with the secret somewhere in it.
async fn send_invalid_requests(server: &TestServer, cookie: &str) -> Vec<(&'static str, TestResponse)> {
    let mut answers = Vec::new();
    let long = json!({ "secret": SECRET.repeat(1000) }).to_string();
    let endless = format!("{}{long}", " ".repeat(1 << 20));
    for (code, kind, body) in [
        ("bad_request", "application/json", SECRET.to_owned()),
        ("bad_request", "application/json", format!("{{\"secret\":\"{SECRET}\"")),
        ("invalid", "application/json", format!("\"{SECRET}\"")),
        ("invalid", "application/json", json!([SECRET, SECRET]).to_string()),
        ("invalid", "application/json", json!({ "secret": [SECRET] }).to_string()),
        ("invalid", "application/json", json!({ SECRET: 1 }).to_string()),
        ("invalid", "application/json", json!({ "secret": "x", "shared": SECRET }).to_string()),
        ("invalid", "application/json", json!({ "secret": "x", "more": SECRET }).to_string()),
        ("invalid", "application/json", json!({ "secret": format!("{SECRET}\n{SECRET}") }).to_string()),
        ("invalid", "application/json", json!({ "secret": " " }).to_string()),
        ("invalid", "application/json", long),
        ("too_large", "application/json", endless),
        ("not_json", "text/plain", json!({ "secret": SECRET }).to_string()),
        ("not_json", "", json!({ "secret": SECRET }).to_string()),
    ] {
        let request = change(Method::PUT, ANTHROPIC, cookie).with("content-type", kind).body(body);
        answers.push((code, request.send(server).await));
    }
    let body = json!({ "secret": SECRET });
    for (code, path) in [("invalid", "/api/v1/keys/Anthropic"), ("invalid", "/api/v1/keys/a%2Fb")] {
        answers.push((code, put(server, cookie, path, &body).await));
    }
    let elsewhere = change(Method::PUT, ANTHROPIC, cookie).with("origin", "http://evil.example").json(&body);
    answers.push(("wrong_origin", elsewhere.send(server).await));
    let odd = change(Method::DELETE, &format!("{ANTHROPIC}?shared=perhaps"), cookie);
    answers.push(("bad_request", odd.send(server).await));
    answers
}

#[tokio::test]
async fn errors_about_a_key_never_quote_it() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    for (n, (code, answer)) in send_invalid_requests(&server, &cookie).await.into_iter().enumerate() {
        assert_eq!(answer.code(), code, "{n}: {answer:?}");
        assert!(!contains(&answer.bytes, "sk-ant"), "{n}: {answer:?}");
    }
    assert_eq!(get(KEYS).cookie(&cookie).send(&server).await.json, json!([]));
}

#[tokio::test]
async fn without_its_master_key_the_vault_reports_what_to_do_and_keeps_all_entries() {
    let server = TestServer::new();
    let guest = server.guest();
    let (owners, guests) = (server.cookie_of(&owner()), server.cookie_of(&guest));
    let body = json!({ "secret": SECRET });
    assert_eq!(put(&server, &owners, ANTHROPIC, &body).await.status, StatusCode::NO_CONTENT);
    let path = server.folder.path().join("master.key");
    let right = std::fs::read(&path).unwrap();
    std::fs::write(&path, "ab".repeat(32)).unwrap();
    let refused = put(&server, &owners, ANTHROPIC, &json!({ "secret": "sk-another" })).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::SERVICE_UNAVAILABLE, "vault_locked"));
    assert!(refused.json["detail"].as_str().unwrap().contains("master.key"), "{refused:?}");
    let refused = put(&server, &guests, ANTHROPIC, &body).await;
    assert_eq!(refused.code(), "vault_locked");
    assert!(!refused.json["detail"].as_str().unwrap().contains("master.key"), "{refused:?}");
    let listed = get(KEYS).cookie(&owners).send(&server).await;
    assert_eq!((&listed.json[0]["readable"], &listed.json[0]["hint"]), (&json!(false), &Value::Null));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = put(&server, &owners, ANTHROPIC, &body).await;
    assert!(refused.json["detail"].as_str().unwrap().contains("chmod 600"), "{refused:?}");
    std::fs::write(&path, right).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(read(&server, &owner(), "anthropic").as_deref(), Some(SECRET));
}

/// Captures the log at its most verbose level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_log_line_has_a_secret_in_it() {
    let log = Log::default();
    let lines = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || lines.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    send_invalid_requests(&server, &cookie).await;
    put(&server, &cookie, ANTHROPIC, &json!({ "secret": SECRET, "shared": true })).await;
    get(KEYS).cookie(&cookie).send(&server).await;
    let path = server.folder.path().join("master.key");
    let right = std::fs::read_to_string(&path).unwrap();
    assert_eq!(read(&server, &owner(), "anthropic").as_deref(), Some(SECRET));
    std::fs::write(&path, "ab".repeat(32)).unwrap();
    put(&server, &cookie, ANTHROPIC, &json!({ "secret": SECRET })).await;
    let logged = log.0.lock().unwrap().clone();
    assert!(contains(&logged, "the vault is locked"), "{}", String::from_utf8_lossy(&logged));
    for secret in ["sk-ant", "Xy7Q", right.trim(), &"ab".repeat(32)] {
        assert!(!contains(&logged, secret), "{}", String::from_utf8_lossy(&logged));
    }
}
