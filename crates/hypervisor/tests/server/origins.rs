//! Host names, origins, proxies and rate limits.

use axum::http::{Method, StatusCode};
use serde_json::json;
use shared_types::wire::TokenScope;

use crate::test_server::{OWN_ORIGIN, TestServer, get, link, owner, post, request};

#[tokio::test]
async fn an_unknown_host_is_refused_and_loopback_ips_redirect_to_the_name() {
    let server = TestServer::new();
    let token = server.token_of(&owner(), &[TokenScope::Read]);
    for host in ["evil.example", "localhost:9", "localhost.evil.example:8080", "192.0.2.1:8080", ""] {
        let answer = get("/").with("host", host).send(&server).await;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::MISDIRECTED_REQUEST, "unknown_host"),
            "{host}"
        );
    }
    for host in ["127.0.0.1:8080", "[::1]:8080"] {
        let page = get("/files?path=a%20b").with("host", host).send(&server).await;
        assert_eq!(page.status, StatusCode::PERMANENT_REDIRECT);
        assert_eq!(page.header("location"), "http://localhost:8080/files?path=a%20b");
        for path in ["/health", "/ready", "/metrics"] {
            assert_eq!(get(path).with("host", host).send(&server).await.status, StatusCode::OK, "{path}");
        }
        let script = get("/api/v1/mine").with("host", host).token(&token).send(&server).await;
        assert_eq!(script.status, StatusCode::OK);
        let tricked = get("//evil.example/").with("host", host).send(&server).await;
        assert!(tricked.header("location").starts_with("http://localhost:8080/"));
    }
}

#[tokio::test]
async fn a_cookie_counts_only_from_our_own_pages() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    for (origin, fetched, right) in [
        (Some(OWN_ORIGIN), None, true),
        (Some(OWN_ORIGIN), Some("same-origin"), true),
        (None, Some("same-origin"), true),
        (None, Some("none"), true),
        (None, Some("same-site"), false),
        (None, Some("cross-site"), false),
        (None, None, false),
        (Some("null"), None, false),
        (Some("http://localhost:3000"), None, false),
        (Some("https://localhost:8080"), None, false),
        (Some("http://evil.example"), Some("same-origin"), false),
    ] {
        let mut request = request(Method::POST, "/api/v1/mine").cookie(&cookie);
        request = if let Some(origin) = origin { request.with("origin", origin) } else { request };
        request = if let Some(site) = fetched { request.with("sec-fetch-site", site) } else { request };
        let answer = request.send(&server).await;
        assert_eq!(answer.status == 200, right, "{origin:?} {fetched:?}: {}", answer.status);
        assert!(right || answer.code() == "wrong_origin");
    }
    let token = server.token_of(&owner(), &[TokenScope::Write]);
    let script = request(Method::POST, "/api/v1/mine").token(&token).send(&server).await;
    assert_eq!(script.status, StatusCode::OK);
}

#[tokio::test]
async fn a_foreign_page_cannot_sign_a_user_in() {
    let server = TestServer::new();
    let secret = server.identity.make_link(&owner()).unwrap().reveal();
    let foreign = post("/api/v1/auth/link", &link(&secret)).with("origin", "http://evil.example");
    assert_eq!(foreign.send(&server).await.code(), "wrong_origin");
    let script = post("/api/v1/auth/link", &link(&secret)).without("origin");
    assert_eq!(script.send(&server).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_websocket_is_opened_by_our_pages_or_by_a_token() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    let upgrade = || get("/api/v1/mine").with("connection", "upgrade").with("upgrade", "WebSocket");
    let ours = upgrade().cookie(&cookie).with("origin", OWN_ORIGIN).send(&server).await;
    assert_eq!(ours.status, StatusCode::OK);
    for origin in [None, Some("http://evil.example"), Some("null")] {
        let request = upgrade().cookie(&cookie);
        let request = if let Some(origin) = origin { request.with("origin", origin) } else { request };
        assert_eq!(request.send(&server).await.code(), "wrong_origin", "{origin:?}");
    }
    let token = server.token_of(&owner(), &[TokenScope::Read]);
    assert_eq!(upgrade().token(&token).send(&server).await.status, StatusCode::OK);
}

#[tokio::test]
async fn only_configured_origins_may_read_responses() {
    let server = TestServer::with_site(None, &["https://app.example.org"], &[]);
    let token = server.token_of(&owner(), &[TokenScope::Read]);
    let preflight = |origin: &str| {
        let request = request(Method::OPTIONS, "/api/v1/mine").with("origin", origin);
        request.with("access-control-request-method", "GET")
    };
    let allowed_origin = preflight("https://app.example.org").send(&server).await;
    assert_eq!(allowed_origin.status, StatusCode::NO_CONTENT);
    assert_eq!(allowed_origin.header("access-control-allow-origin"), "https://app.example.org");
    assert!(allowed_origin.headers.get("access-control-allow-credentials").is_none());
    let stranger = preflight("https://evil.example").send(&server).await;
    assert_eq!(stranger.header("access-control-allow-origin"), "");
    let read =
        get("/api/v1/mine").token(&token).with("origin", "https://app.example.org").send(&server).await;
    assert_eq!(
        (read.status, read.header("access-control-allow-origin")),
        (StatusCode::OK, "https://app.example.org")
    );
    let cookie = server.cookie_of(&owner());
    let write =
        request(Method::POST, "/api/v1/mine").cookie(&cookie).with("origin", "https://app.example.org");
    assert_eq!(write.send(&server).await.code(), "wrong_origin", "a cookie does not count from there");
}

#[tokio::test]
async fn too_many_sign_in_attempts_get_a_retry_after() {
    let server = TestServer::with_site(None, &[], &["10.0.0.0/8"]);
    let attempt = |from: &str| post("/api/v1/auth/link", &json!({ "secret": "guess" })).from(from);
    for _ in 0..10 {
        assert_eq!(attempt("203.0.113.5").send(&server).await.code(), "refused");
    }
    let flooded = attempt("203.0.113.5").send(&server).await;
    assert_eq!((flooded.status, flooded.code()), (StatusCode::TOO_MANY_REQUESTS, "too_many"));
    assert_eq!(flooded.header("retry-after"), "6");
    let others = attempt("10.0.0.1").with("x-forwarded-for", "198.51.100.2").send(&server).await;
    assert_eq!(others.code(), "refused", "other addresses are not affected");
    let behind = attempt("10.0.0.1").with("x-forwarded-for", "203.0.113.5").send(&server).await;
    assert_eq!(behind.code(), "too_many", "a proxy does not hide the client");
    server.wait(6_000);
    assert_eq!(attempt("203.0.113.5").send(&server).await.code(), "refused");

    let secret = server.identity.make_link(&owner()).unwrap().reveal();
    let right = post("/api/v1/auth/link", &link(&secret)).from("203.0.113.5").send(&server).await;
    assert_eq!(right.code(), "too_many", "even the right one has to wait");
    assert_eq!(server.state.metrics.too_many.get(), 3);
}

#[tokio::test]
async fn one_users_flood_does_not_affect_another_user() {
    let server = TestServer::new();
    let (cookie, guest) = (server.cookie_of(&owner()), server.cookie_of(&server.guest()));
    let mine = |cookie: &str| get("/api/v1/mine").cookie(cookie);
    for _ in 0..600 {
        assert_eq!(mine(&cookie).send(&server).await.status, StatusCode::OK);
    }
    assert_eq!(mine(&cookie).send(&server).await.header("retry-after"), "1");
    assert_eq!(mine(&guest).send(&server).await.status, StatusCode::OK);

    let guess = || get("/api/v1/mine").token("choir_guess").from("203.0.113.5");
    for _ in 0..600 {
        assert_eq!(guess().send(&server).await.code(), "signed_out");
    }
    assert_eq!(guess().send(&server).await.code(), "too_many", "guesses are limited, too");
}
