//! Where a request comes from and whom it is meant for: hosts, origins, proxies, floods.

use axum::http::{Method, StatusCode};
use serde_json::json;
use shared_types::wire::Scope;

use crate::house::{HERE, House, ask, get, link, owner, post};

#[tokio::test]
async fn another_host_is_refused_and_numbers_lead_to_the_name() {
    let house = House::new();
    let token = house.token_of(&owner(), &[Scope::Read]);
    for host in ["evil.example", "localhost:9", "localhost.evil.example:8080", "192.0.2.1:8080", ""] {
        let answer = get("/").with("host", host).send(&house).await;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::MISDIRECTED_REQUEST, "unknown_host"),
            "{host}"
        );
    }
    for host in ["127.0.0.1:8080", "[::1]:8080"] {
        let page = get("/files?path=a%20b").with("host", host).send(&house).await;
        assert_eq!(page.status, StatusCode::PERMANENT_REDIRECT);
        assert_eq!(page.header("location"), "http://localhost:8080/files?path=a%20b");
        for path in ["/health", "/ready", "/metrics"] {
            assert_eq!(get(path).with("host", host).send(&house).await.status, StatusCode::OK, "{path}");
        }
        let script = get("/api/v1/mine").with("host", host).token(&token).send(&house).await;
        assert_eq!(script.status, StatusCode::OK);
        let tricked = get("//evil.example/").with("host", host).send(&house).await;
        assert!(tricked.header("location").starts_with("http://localhost:8080/"));
    }
}

#[tokio::test]
async fn a_cookie_counts_only_from_our_own_pages() {
    let house = House::new();
    let cookie = house.cookie_of(&owner());
    for (origin, fetched, right) in [
        (Some(HERE), None, true),
        (Some(HERE), Some("same-origin"), true),
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
        let mut asked = ask(Method::POST, "/api/v1/mine").cookie(&cookie);
        asked = if let Some(origin) = origin { asked.with("origin", origin) } else { asked };
        asked = if let Some(site) = fetched { asked.with("sec-fetch-site", site) } else { asked };
        let answer = asked.send(&house).await;
        assert_eq!(answer.status == 200, right, "{origin:?} {fetched:?}: {}", answer.status);
        assert!(right || answer.code() == "wrong_origin");
    }
    let token = house.token_of(&owner(), &[Scope::Write]);
    let script = ask(Method::POST, "/api/v1/mine").token(&token).send(&house).await;
    assert_eq!(script.status, StatusCode::OK);
}

#[tokio::test]
async fn no_other_page_signs_anyone_in() {
    let house = House::new();
    let secret = house.identity.make_link(&owner()).unwrap().reveal();
    let foreign = post("/api/v1/auth/link", &link(&secret)).with("origin", "http://evil.example");
    assert_eq!(foreign.send(&house).await.code(), "wrong_origin");
    let script = post("/api/v1/auth/link", &link(&secret)).without("origin");
    assert_eq!(script.send(&house).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_websocket_is_opened_by_our_pages_or_by_a_token() {
    let house = House::new();
    let cookie = house.cookie_of(&owner());
    let upgrade = || get("/api/v1/mine").with("connection", "upgrade").with("upgrade", "WebSocket");
    let ours = upgrade().cookie(&cookie).with("origin", HERE).send(&house).await;
    assert_eq!(ours.status, StatusCode::OK);
    for origin in [None, Some("http://evil.example"), Some("null")] {
        let asked = upgrade().cookie(&cookie);
        let asked = if let Some(origin) = origin { asked.with("origin", origin) } else { asked };
        assert_eq!(asked.send(&house).await.code(), "wrong_origin", "{origin:?}");
    }
    let token = house.token_of(&owner(), &[Scope::Read]);
    assert_eq!(upgrade().token(&token).send(&house).await.status, StatusCode::OK);
}

#[tokio::test]
async fn only_origins_of_the_list_may_read_answers() {
    let house = House::at(None, &["https://app.example.org"], &[]);
    let token = house.token_of(&owner(), &[Scope::Read]);
    let preflight = |origin: &str| {
        let asked = ask(Method::OPTIONS, "/api/v1/mine").with("origin", origin);
        asked.with("access-control-request-method", "GET")
    };
    let welcome = preflight("https://app.example.org").send(&house).await;
    assert_eq!(welcome.status, StatusCode::NO_CONTENT);
    assert_eq!(welcome.header("access-control-allow-origin"), "https://app.example.org");
    assert!(welcome.headers.get("access-control-allow-credentials").is_none());
    let stranger = preflight("https://evil.example").send(&house).await;
    assert_eq!(stranger.header("access-control-allow-origin"), "");
    let read = get("/api/v1/mine").token(&token).with("origin", "https://app.example.org").send(&house).await;
    assert_eq!(
        (read.status, read.header("access-control-allow-origin")),
        (StatusCode::OK, "https://app.example.org")
    );
    let cookie = house.cookie_of(&owner());
    let write = ask(Method::POST, "/api/v1/mine").cookie(&cookie).with("origin", "https://app.example.org");
    assert_eq!(write.send(&house).await.code(), "wrong_origin", "a cookie is not for them");
}

#[tokio::test]
async fn a_flood_of_attempts_is_told_when_to_come_back() {
    let house = House::at(None, &[], &["10.0.0.0/8"]);
    let attempt = |from: &str| post("/api/v1/auth/link", &json!({ "secret": "guess" })).from(from);
    for _ in 0..10 {
        assert_eq!(attempt("203.0.113.5").send(&house).await.code(), "refused");
    }
    let flooded = attempt("203.0.113.5").send(&house).await;
    assert_eq!((flooded.status, flooded.code()), (StatusCode::TOO_MANY_REQUESTS, "too_many"));
    assert_eq!(flooded.header("retry-after"), "6");
    let others = attempt("10.0.0.1").with("x-forwarded-for", "198.51.100.2").send(&house).await;
    assert_eq!(others.code(), "refused", "others are not kept out");
    let behind = attempt("10.0.0.1").with("x-forwarded-for", "203.0.113.5").send(&house).await;
    assert_eq!(behind.code(), "too_many", "a proxy hides nobody");
    house.wait(6_000);
    assert_eq!(attempt("203.0.113.5").send(&house).await.code(), "refused");

    let secret = house.identity.make_link(&owner()).unwrap().reveal();
    let right = post("/api/v1/auth/link", &link(&secret)).from("203.0.113.5").send(&house).await;
    assert_eq!(right.code(), "too_many", "even the right one has to wait");
    assert_eq!(house.front.metrics.too_many.get(), 3);
}

#[tokio::test]
async fn one_user_cannot_flood_for_another() {
    let house = House::new();
    let (cookie, guest) = (house.cookie_of(&owner()), house.cookie_of(&house.guest()));
    let mine = |cookie: &str| get("/api/v1/mine").cookie(cookie);
    for _ in 0..600 {
        assert_eq!(mine(&cookie).send(&house).await.status, StatusCode::OK);
    }
    assert_eq!(mine(&cookie).send(&house).await.header("retry-after"), "1");
    assert_eq!(mine(&guest).send(&house).await.status, StatusCode::OK);

    let guess = || get("/api/v1/mine").token("choir_guess").from("203.0.113.5");
    for _ in 0..600 {
        assert_eq!(guess().send(&house).await.code(), "signed_out");
    }
    assert_eq!(guess().send(&house).await.code(), "too_many", "nor can those who guess");
}
