//! Invalid requests get a clear error and change nothing.

use axum::http::Method;
use serde_json::json;

use crate::test_machine::{RequestBody, TestCredential, TestMachine};

#[tokio::test(flavor = "multi_thread")]
async fn hostile_paths_are_refused_everywhere_and_change_nothing() {
    let machine = TestMachine::new().await;
    let head = machine.head().await;
    let hostile = ["../x", "/etc/passwd", "a/../../x", ".choir/state.sqlite", "a//b", ".", "a%00b", ""];
    for path in hostile {
        for answer in [
            machine.get(&format!("/api/v1/content?path={path}")).await,
            machine.put(&format!("/api/v1/content?path={path}"), b"x").await,
            machine.get(&format!("/api/v1/versions?path={path}")).await,
            machine.post("/api/v1/folders", json!({ "path": path.replace("%00", "\0") })).await,
            machine.post("/api/v1/files/delete", json!({ "path": path.replace("%00", "\0") })).await,
            machine
                .post("/api/v1/files/move", json!({ "from": "Welcome.md", "to": path.replace("%00", "\0") }))
                .await,
        ] {
            assert!(answer.status.is_client_error(), "{path:?}: {answer:?}");
            assert!(!answer.code().is_empty());
        }
    }
    assert_eq!(machine.head().await, head);
    assert!(!machine.data().join("x").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_requests_are_named_and_change_nothing() {
    let machine = TestMachine::new().await;
    let head = machine.head().await;
    let pass = machine.owners();
    let post = |path: &'static str, sent: RequestBody| machine.send(&pass, Method::POST, path, sent);
    let cases = [
        ("/api/v1/files/delete", RequestBody::Bytes("application/json", b"{".to_vec()), 400, "bad_request"),
        (
            "/api/v1/files/delete",
            RequestBody::Bytes("application/json", vec![0xff, 0xfe]),
            400,
            "bad_request",
        ),
        ("/api/v1/files/delete", RequestBody::Json(json!([])), 422, "invalid"),
        ("/api/v1/files/delete", RequestBody::Json(json!({ "path": 7 })), 422, "invalid"),
        (
            "/api/v1/files/delete",
            RequestBody::Json(json!({ "path": "Welcome.md", "force": true })),
            422,
            "invalid",
        ),
        (
            "/api/v1/files/delete",
            RequestBody::Bytes("text/plain", b"{\"path\":\"Welcome.md\"}".to_vec()),
            415,
            "not_json",
        ),
        ("/api/v1/restore", RequestBody::Json(json!({ "seq": -1 })), 422, "invalid"),
        ("/api/v1/terminals", RequestBody::Json(json!({ "columns": 0, "rows": 24 })), 400, "bad_request"),
        (
            "/api/v1/terminals",
            RequestBody::Json(json!({ "kind": "root", "columns": 80, "rows": 24 })),
            422,
            "invalid",
        ),
        ("/api/v1/commands", RequestBody::Json(json!({ "argv": ["ls"] })), 422, "invalid"),
        ("/api/v1/commands", RequestBody::Json(json!({ "run": { "argv": [] } })), 400, "bad_request"),
        ("/api/v1/import", RequestBody::Bytes("application/zip", b"no zip".to_vec()), 422, "refused"),
    ];
    for (path, sent, status, code) in cases {
        let answer = post(path, sent).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{path}: {answer:?}");
    }
    let large = RequestBody::Bytes("application/json", vec![b' '; 3 << 20]);
    let answer = post("/api/v1/files/delete", large).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (413, "too_large"), "{answer:?}");
    for query in [
        "/api/v1/operations?limit=many",
        "/api/v1/operations?colour=red",
        "/api/v1/compare",
        "/api/v1/content?hash=xyz",
    ] {
        assert_eq!(machine.get(query).await.code(), "bad_request", "{query}");
    }
    for (path, code) in [("/api/v1/operations/none", "bad_request"), ("/api/v1/nothing", "not_found")] {
        assert_eq!(machine.get(path).await.code(), code, "{path}");
    }
    assert_eq!(machine.head().await, head);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_bytes_than_a_file_may_have_are_refused_before_they_are_sent() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let machine = TestMachine::new().await;
    let TestCredential::Cookie(cookie) = machine.owners() else { panic!("owners come with a browser") };
    let port = machine.port;
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
