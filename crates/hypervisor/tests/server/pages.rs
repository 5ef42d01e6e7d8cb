//! The page, its files, and what monitors ask; the headers that every answer carries; the port.

use axum::http::{Method, StatusCode};
use hypervisor::server::{Server, ServerConfig, ServerError, Tls, clock};

use crate::house::{House, ask, get, owner};

#[tokio::test]
async fn the_page_has_a_nonce_that_is_used_once() {
    let house = House::new();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let page = get("/").send(&house).await;
        let text = String::from_utf8(page.bytes.clone()).unwrap();
        let nonce = text.split('"').nth(1).unwrap().to_owned();
        assert_eq!(nonce.len(), 64);
        let policy = page.header("content-security-policy");
        assert!(policy.contains(&format!("style-src 'self' 'nonce-{nonce}';")), "{policy}");
        assert!(policy.contains("script-src 'self' 'wasm-unsafe-eval';"));
        assert!(policy.contains("connect-src 'self' ws://localhost:8080;"));
        assert_eq!(page.header("cache-control"), "no-cache");
        seen.push(nonce);
    }
    assert_ne!(seen[0], seen[1]);
}

#[tokio::test]
async fn files_are_sent_compressed_and_kept_for_ever() {
    let house = House::new();
    let file = || get("/assets/desk-1a2b.js");
    let plain = file().send(&house).await;
    assert_eq!((plain.bytes.as_slice(), plain.header("content-encoding")), (&b"let desk"[..], ""));
    for (encodings, expected) in
        [("gzip, deflate, br", "br"), ("br;q=0.5", "br"), ("gzip, br;q=0", ""), ("", "")]
    {
        let answer = file().with("accept-encoding", encodings).send(&house).await;
        assert_eq!(answer.header("content-encoding"), expected, "{encodings}");
        assert_eq!(answer.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(answer.header("content-type"), "text/javascript");
        let again = file().with("accept-encoding", encodings).with("if-none-match", answer.header("etag"));
        let again = again.send(&house).await;
        assert_eq!((again.status, again.bytes.len()), (StatusCode::NOT_MODIFIED, 0));
    }
    assert_eq!(get("/assets/../../etc/passwd").send(&house).await.code(), "not_found");
}

#[tokio::test]
async fn every_answer_is_protected() {
    let house = House::new();
    for asked in
        [get("/"), get("/health"), get("/nothing"), get("/api/v1/mine"), get("/").with("host", "evil")]
    {
        let answer = asked.send(&house).await;
        assert!(answer.header("content-security-policy").contains("frame-ancestors 'none'"));
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
        assert!(answer.header("permissions-policy").contains("camera=()"));
    }
}

#[tokio::test]
async fn monitors_need_no_account_but_strangers_see_no_numbers() {
    let house = House::new();
    let health = get("/health").send(&house).await;
    assert_eq!(
        (health.json["status"].as_str(), health.json["version"].as_str()),
        (Some("ok"), Some("1.2.3"))
    );
    assert_eq!(get("/ready").send(&house).await.json["status"], "ready");
    let metrics = String::from_utf8(get("/metrics").send(&house).await.bytes).unwrap();
    assert!(metrics.contains("choir_http_responses_total{class=\"2xx\"} 2\n"), "{metrics}");
    assert!(metrics.contains("choir_users 1\n") && metrics.contains("choir_more 1\n"));
    assert_eq!(get("/metrics").from("203.0.113.5").send(&house).await.code(), "forbidden");
    let cookie = house.cookie_of(&owner());
    assert_eq!(get("/metrics").from("203.0.113.5").cookie(&cookie).send(&house).await.status, 200);
    assert_eq!(ask(Method::HEAD, "/health").send(&house).await.status, 200);
}

#[tokio::test]
async fn it_listens_on_the_loopback_only_unless_people_come_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let local = ServerConfig::local(0, folder.path().to_owned());
    let exposed = ServerConfig { listen: "0.0.0.0:0".parse().unwrap(), ..local.clone() };
    assert!(matches!(exposed.check(), Err(ServerError::Exposed(_))));
    let behind = ServerConfig { public_url: Some("https://choir.example.org".parse().unwrap()), ..exposed };
    behind.check().unwrap();
    let plain = ServerConfig { public_url: Some("http://choir.example.org".parse().unwrap()), ..behind };
    assert!(matches!(plain.check(), Err(ServerError::Site(_))));
    let tls = Some(Tls { certificate: "a".into(), key: "b".into() });
    ServerConfig { tls: tls.clone(), ..local.clone() }.check().unwrap();
    let nameless = ServerConfig { tls, listen: "0.0.0.0:0".parse().unwrap(), ..local };
    assert!(matches!(nameless.check(), Err(ServerError::Nameless(_))));
    let named =
        ServerConfig { public_url: Some("https://choir.example.org:8443".parse().unwrap()), ..nameless };
    named.check().unwrap();
}

#[tokio::test]
async fn a_server_answers_under_both_numbers_and_stops_when_told() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let folder = tempfile::tempdir().unwrap();
    let server = Server::bind(&ServerConfig::local(0, folder.path().to_owned()), clock()).await.unwrap();
    let port = server.front().site.port();
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "here" }));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(router, async { stopped.await.unwrap() }));
    for host in ["127.0.0.1", "::1"] {
        let Ok(mut socket) = tokio::net::TcpStream::connect((host, port)).await else {
            assert_eq!(host, "::1", "a machine without IPv6 still has the other");
            continue;
        };
        socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
    }
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
}
