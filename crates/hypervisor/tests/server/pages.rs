//! The page, its files, health and metrics; the security headers; the listening addresses.

use axum::http::{Method, StatusCode};
use hypervisor::server::{Server, ServerConfig, ServerError, Tls, clock};

use crate::test_server::{TestServer, get, owner, request};

#[tokio::test]
async fn the_page_has_a_nonce_that_is_used_once() {
    let server = TestServer::new();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let page = get("/").send(&server).await;
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
async fn files_are_sent_compressed_and_cached_forever() {
    let server = TestServer::new();
    let file = || get("/assets/desk-1a2b.js");
    let plain = file().send(&server).await;
    assert_eq!((plain.bytes.as_slice(), plain.header("content-encoding")), (&b"let desk"[..], ""));
    for (encodings, expected) in
        [("gzip, deflate, br", "br"), ("br;q=0.5", "br"), ("gzip, br;q=0", ""), ("", "")]
    {
        let answer = file().with("accept-encoding", encodings).send(&server).await;
        assert_eq!(answer.header("content-encoding"), expected, "{encodings}");
        assert_eq!(answer.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(answer.header("content-type"), "text/javascript");
        let again = file().with("accept-encoding", encodings).with("if-none-match", answer.header("etag"));
        let again = again.send(&server).await;
        assert_eq!((again.status, again.bytes.len()), (StatusCode::NOT_MODIFIED, 0));
    }
    assert_eq!(get("/assets/../../etc/passwd").send(&server).await.code(), "not_found");
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let server = TestServer::new();
    for request in
        [get("/"), get("/health"), get("/nothing"), get("/api/v1/mine"), get("/").with("host", "evil")]
    {
        let answer = request.send(&server).await;
        assert!(answer.header("content-security-policy").contains("frame-ancestors 'none'"));
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
        assert!(answer.header("permissions-policy").contains("camera=()"));
    }
}

#[tokio::test]
async fn health_needs_no_account_but_metrics_are_for_this_machine_and_its_owner() {
    let server = TestServer::new();
    let health = get("/health").send(&server).await;
    assert_eq!(
        (health.json["status"].as_str(), health.json["version"].as_str()),
        (Some("ok"), Some("1.2.3"))
    );
    assert_eq!(get("/ready").send(&server).await.json["status"], "ready");
    let metrics = String::from_utf8(get("/metrics").send(&server).await.bytes).unwrap();
    assert!(metrics.contains("choir_http_responses_total{class=\"2xx\"} 2\n"), "{metrics}");
    assert!(metrics.contains("choir_users 1\n") && metrics.contains("choir_more 1\n"));
    assert_eq!(get("/metrics").from("203.0.113.5").send(&server).await.code(), "forbidden");
    let cookie = server.cookie_of(&owner());
    assert_eq!(get("/metrics").from("203.0.113.5").cookie(&cookie).send(&server).await.status, 200);
    assert_eq!(request(Method::HEAD, "/health").send(&server).await.status, 200);
}

#[tokio::test]
async fn it_listens_on_loopback_only_unless_tls_is_configured() {
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
    assert!(matches!(nameless.check(), Err(ServerError::NoPublicName(_))));
    let named =
        ServerConfig { public_url: Some("https://choir.example.org:8443".parse().unwrap()), ..nameless };
    named.check().unwrap();
}

#[tokio::test]
async fn a_server_answers_on_ipv4_and_ipv6_and_stops_on_request() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let folder = tempfile::tempdir().unwrap();
    let server = Server::bind(&ServerConfig::local(0, folder.path().to_owned()), clock()).await.unwrap();
    let port = server.state().site.port();
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
