//! A request that is sent again under its id is answered as the first time, and changes nothing again.

use axum::http::Method;
use serde_json::{Value, json};

use crate::test_machine::{RequestBody, TestMachine};

const FIRST: &str = "018f3c00-0000-7000-8000-0000000000";

fn bytes(text: &str) -> RequestBody {
    RequestBody::Bytes("application/octet-stream", text.as_bytes().to_vec())
}

/// What an answer says happened, without whether it is a repetition.
fn done(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().remove("resent");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_files_can_be_sent_again() {
    let machine = TestMachine::new().await;
    let empty = || json!({});
    machine.write("base.txt", "one").await;
    let requests = [
        (Method::PUT, "/api/v1/content?path=a.txt&base=absent", bytes("one")),
        (Method::POST, "/api/v1/folders", RequestBody::Json(json!({ "path": "d" }))),
        (Method::POST, "/api/v1/files/move", RequestBody::Json(json!({ "from": "a.txt", "to": "d/a.txt" }))),
        (Method::POST, "/api/v1/files/copy", RequestBody::Json(json!({ "from": "d/a.txt", "to": "b.txt" }))),
        (Method::POST, "/api/v1/files/delete", RequestBody::Json(json!({ "path": "d/a.txt" }))),
        (Method::POST, "/api/v1/undo", RequestBody::Json(empty())),
        (Method::POST, "/api/v1/redo", RequestBody::Json(empty())),
        (Method::POST, "/api/v1/restore", RequestBody::Json(json!({ "seq": 3 }))),
        (Method::POST, "/api/v1/checkpoints", RequestBody::Json(json!({ "message": "now" }))),
    ];
    let mut answers = Vec::new();
    for (number, (method, path, body)) in requests.into_iter().enumerate() {
        let id = format!("{FIRST}{number:02x}");
        let owner = machine.owners();
        let send = || machine.send_under(Some(&id), &owner, method.clone(), path, body.clone());
        let first = send().await;
        assert_eq!(first.status, 200, "{path}: {first:?}");
        assert_eq!(first.json["op"], id.as_str(), "{path}: the operation has the id of the request");
        let head = machine.head().await;
        let second = send().await;
        assert_eq!(second.json["resent"], true, "{path}: {:?}", second.json);
        assert_eq!(machine.head().await, head, "{path}: nothing was recorded again");
        answers.push((id, method, path, body, first));
    }
    let machine = machine.restarted().await;
    let (head, owner) = (machine.head().await, machine.owners());
    for (id, method, path, body, first) in answers {
        let second = machine.send_under(Some(&id), &owner, method, path, body).await;
        assert_eq!(second.status, 200, "{path}: {second:?}");
        assert_eq!(second.json["resent"], true, "{path}: {:?}", second.json);
        let (mut first, mut second) = (done(first.json), done(second.json));
        if path == "/api/v1/checkpoints" {
            // Notes describe the newest checkpoint, and are not part of what was recorded.
            for answer in [&mut first, &mut second] {
                answer.as_object_mut().unwrap().remove("notes");
            }
        }
        assert_eq!(first, second, "{path}");
        assert_eq!(machine.head().await, head, "{path}: nothing was recorded again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_no_log_can_be_sent_again_as_well() {
    let machine = TestMachine::new().await;
    let owner = machine.owners();
    let token = json!({ "name": "script", "scopes": ["read"], "days": 3 });
    let requests = [
        ("01", Method::POST, "/api/v1/terminals", json!({ "rows": 24, "columns": 80 })),
        ("02", Method::POST, "/api/v1/auth/tokens", token),
        ("03", Method::POST, "/api/v1/auth/invitations", json!({ "name": "Grace" })),
    ];
    for (id, method, path, body) in requests {
        let id = format!("{FIRST}{id}");
        let send =
            || machine.send_under(Some(&id), &owner, method.clone(), path, RequestBody::Json(body.clone()));
        let (first, second) = tokio::join!(send(), send());
        assert!(first.status.is_success(), "{path}: {first:?}");
        assert_eq!((second.status, &second.json), (first.status, &first.json), "{path}: sent twice at once");
        assert_eq!(send().await.json, first.json, "{path}");
    }
    let terminals = machine.get("/api/v1/terminals").await.json;
    assert_eq!(terminals.as_array().unwrap().len(), 1, "{terminals}");
    let ended = format!("/api/v1/terminals/{}", terminals[0]["id"].as_str().unwrap());
    let id = format!("{FIRST}04");
    let end = || machine.send_under(Some(&id), &owner, Method::DELETE, &ended, RequestBody::Empty);
    let first = end().await;
    assert!(first.status.is_success(), "{first:?}");
    assert_eq!(end().await.status, first.status, "the terminal is gone, and the answer stays");
    let id = format!("{FIRST}05");
    let guest = machine.cookie_of(&machine.guest());
    let send = |pass| {
        machine.send_under(
            Some(&id),
            pass,
            Method::POST,
            "/api/v1/auth/tokens",
            RequestBody::Json(json!({ "name": "s", "scopes": ["read"], "days": 3 })),
        )
    };
    let (mine, theirs) = (send(&owner).await, send(&guest).await);
    assert_ne!(mine.json, theirs.json, "an id is the caller's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_none_is_refused_and_changes_nothing() {
    let machine = TestMachine::new().await;
    let head = machine.head().await;
    let path = "/api/v1/content?path=a.txt";
    let answer = machine.send_under(Some("mine"), &machine.owners(), Method::PUT, path, bytes("x")).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, "bad_request"));
    assert_eq!(machine.head().await, head);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_in_the_lists_that_are_read_next() {
    let machine = TestMachine::new().await;
    for number in 0..20 {
        machine.write(&format!("many/{number}.txt"), "x").await;
        let listed = machine.get("/api/v1/files?path=many").await.json;
        assert_eq!(listed["entries"].as_array().unwrap().len(), number + 1, "{listed}");
    }
}
