//! Whatever is sent, the answer is clear and nothing has changed.

use axum::http::Method;
use serde_json::json;

use crate::house::{House, Pass, Sent};

#[tokio::test(flavor = "multi_thread")]
async fn hostile_paths_are_refused_everywhere_and_change_nothing() {
    let house = House::new().await;
    let head = house.head().await;
    let hostile = ["../x", "/etc/passwd", "a/../../x", ".choir/state.sqlite", "a//b", ".", "a%00b", ""];
    for path in hostile {
        for answer in [
            house.get(&format!("/api/v1/content?path={path}")).await,
            house.put(&format!("/api/v1/content?path={path}"), b"x").await,
            house.get(&format!("/api/v1/versions?path={path}")).await,
            house.post("/api/v1/folders", json!({ "path": path.replace("%00", "\0") })).await,
            house.post("/api/v1/files/delete", json!({ "path": path.replace("%00", "\0") })).await,
            house
                .post("/api/v1/files/move", json!({ "from": "Welcome.md", "to": path.replace("%00", "\0") }))
                .await,
        ] {
            assert!(answer.status.is_client_error(), "{path:?}: {answer:?}");
            assert!(!answer.code().is_empty());
        }
    }
    assert_eq!(house.head().await, head);
    assert!(!house.data().join("x").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_requests_are_named_and_change_nothing() {
    let house = House::new().await;
    let head = house.head().await;
    let pass = house.owners();
    let post = |path: &'static str, sent: Sent| house.send(&pass, Method::POST, path, sent);
    let cases = [
        ("/api/v1/files/delete", Sent::Bytes("application/json", b"{".to_vec()), 400, "bad_request"),
        ("/api/v1/files/delete", Sent::Bytes("application/json", vec![0xff, 0xfe]), 400, "bad_request"),
        ("/api/v1/files/delete", Sent::Json(json!([])), 422, "invalid"),
        ("/api/v1/files/delete", Sent::Json(json!({ "path": 7 })), 422, "invalid"),
        ("/api/v1/files/delete", Sent::Json(json!({ "path": "Welcome.md", "force": true })), 422, "invalid"),
        (
            "/api/v1/files/delete",
            Sent::Bytes("text/plain", b"{\"path\":\"Welcome.md\"}".to_vec()),
            415,
            "not_json",
        ),
        ("/api/v1/restore", Sent::Json(json!({ "seq": -1 })), 422, "invalid"),
        ("/api/v1/terminals", Sent::Json(json!({ "columns": 0, "rows": 24 })), 400, "bad_request"),
        (
            "/api/v1/terminals",
            Sent::Json(json!({ "kind": "root", "columns": 80, "rows": 24 })),
            422,
            "invalid",
        ),
        ("/api/v1/commands", Sent::Json(json!({ "argv": ["ls"] })), 422, "invalid"),
        ("/api/v1/commands", Sent::Json(json!({ "run": { "argv": [] } })), 400, "bad_request"),
        ("/api/v1/import", Sent::Bytes("application/zip", b"no zip".to_vec()), 422, "refused"),
    ];
    for (path, sent, status, code) in cases {
        let answer = post(path, sent).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{path}: {answer:?}");
    }
    let large = Sent::Bytes("application/json", vec![b' '; 3 << 20]);
    let answer = post("/api/v1/files/delete", large).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (413, "too_large"), "{answer:?}");
    for query in [
        "/api/v1/operations?limit=many",
        "/api/v1/operations?colour=red",
        "/api/v1/compare",
        "/api/v1/content?hash=xyz",
    ] {
        assert_eq!(house.get(query).await.code(), "bad_request", "{query}");
    }
    for (path, code) in [("/api/v1/operations/none", "bad_request"), ("/api/v1/nothing", "not_found")] {
        assert_eq!(house.get(path).await.code(), code, "{path}");
    }
    assert_eq!(house.head().await, head);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_bytes_than_a_file_may_have_are_refused_before_they_are_sent() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let house = House::new().await;
    let Pass::Cookie(cookie) = house.owners() else { panic!("owners come with a browser") };
    let port = house.port;
    for (method, path) in [("POST", "/api/v1/import"), ("PUT", "/api/v1/content?path=large")] {
        let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost:{port}\r\norigin: http://localhost:{port}\r\n\
             cookie: {cookie}\r\ncontent-length: 5000000000\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("\"too_large\""), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
    }
}
