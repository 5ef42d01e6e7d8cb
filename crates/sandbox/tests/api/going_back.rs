//! Undo, redo, restore and the timeline over HTTP.

use axum::http::StatusCode;
use serde_json::json;

use crate::test_machine::{TestMachine, nothing};

#[tokio::test(flavor = "multi_thread")]
async fn an_old_operation_is_previewed_undone_and_redone() {
    let machine = TestMachine::new().await;
    let first = machine.write("a.txt", "one\n").await.json["op"].as_str().unwrap().to_owned();
    machine.write("b.txt", "later\n").await;
    let preview = machine.post(&format!("/api/v1/operations/{first}/undo"), json!({ "preview": true })).await;
    assert_eq!((&preview.json["preview"], &preview.json["total"]), (&true.into(), &1.into()), "{preview:?}");
    assert!(preview.json["changes"][0]["diff"].as_str().unwrap().contains("-one"));
    assert_eq!(
        machine.get("/api/v1/content?path=a.txt").await.status,
        StatusCode::OK,
        "a preview does nothing"
    );
    let undone = machine.post(&format!("/api/v1/operations/{first}/undo"), nothing()).await;
    assert_eq!(undone.json["target"], first.as_str(), "{undone:?}");
    assert_eq!(machine.get("/api/v1/content?path=a.txt").await.status, StatusCode::NOT_FOUND);
    let again = machine.post(&format!("/api/v1/operations/{first}/redo"), nothing()).await;
    assert_eq!(again.status, StatusCode::OK, "{again:?}");
    assert_eq!(machine.get("/api/v1/content?path=a.txt").await.bytes, b"one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_shows_both_sides_and_changes_nothing_until_one_is_chosen() {
    let machine = TestMachine::new().await;
    machine.write("a.txt", "one\n").await;
    let second = machine.write("a.txt", "two\n").await.json["op"].as_str().unwrap().to_owned();
    machine.write("a.txt", "three\n").await;
    let head = machine.head().await;
    let path = format!("/api/v1/operations/{second}/undo");
    let clash = machine.post(&path, nothing()).await;
    assert_eq!((clash.status, clash.code()), (StatusCode::CONFLICT, "conflict"));
    let conflict = &clash.json["conflicts"][0];
    assert_eq!(
        (&conflict["subject"]["file"], &conflict["today"], &conflict["undone"]),
        (&"a.txt".into(), &"three\n".into(), &"one\n".into()),
        "{clash:?}"
    );
    assert_eq!(machine.head().await, head);
    let taken = machine.post(&path, json!({ "each": [[{ "file": "a.txt" }, "take"]] })).await;
    assert_eq!(taken.status, StatusCode::OK, "{taken:?}");
    assert_eq!(machine.get("/api/v1/content?path=a.txt").await.bytes, b"one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_is_shown_and_returned_to() {
    let machine = TestMachine::new().await;
    machine.write("a.txt", "then\n").await;
    let then = machine.head().await;
    machine.write("a.txt", "now\n").await;
    let compared = machine.get(&format!("/api/v1/compare?from={then}")).await;
    assert_eq!(compared.json["total"], 1, "{compared:?}");
    assert_eq!(machine.get(&format!("/api/v1/content?path=a.txt&at={then}")).await.bytes, b"then\n");
    assert_eq!(machine.get(&format!("/api/v1/state?at={then}")).await.json["seq"], then);
    assert_eq!(machine.get("/api/v1/state?at=99999").await.code(), "not_found");
    let preview = machine.post("/api/v1/restore", json!({ "seq": then, "preview": true })).await;
    assert!(preview.json["changes"][0]["diff"].as_str().unwrap().contains("+then"), "{preview:?}");
    let restored = machine.post("/api/v1/restore", json!({ "seq": then })).await;
    assert_eq!(restored.status, StatusCode::OK, "{restored:?}");
    assert_eq!(machine.get("/api/v1/content?path=a.txt").await.bytes, b"then\n");
    assert_eq!(
        machine.get("/api/v1/checkpoints").await.json.as_array().unwrap().len(),
        1,
        "one was made before"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeline_is_paged_and_filtered() {
    let machine = TestMachine::new().await;
    for number in 0..7 {
        machine.write(&format!("file-{number}.txt"), "x").await;
    }
    let page = machine.get("/api/v1/operations?family=file&limit=3&offset=1").await.json;
    let labels: Vec<_> =
        page["rows"].as_array().unwrap().iter().map(|row| row["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["create file-5.txt", "create file-4.txt", "create file-3.txt"]);
    assert_eq!(page["total"], 8, "with the welcome document: {page}");
    let found = machine.get("/api/v1/operations?q=file-6").await.json;
    assert_eq!((found["total"].as_u64(), found["rows"].as_array().unwrap().len()), (Some(1), 1));
    assert_eq!(
        machine.get("/api/v1/operations?q=%25").await.json["total"],
        0,
        "a per cent sign is no pattern"
    );
}
