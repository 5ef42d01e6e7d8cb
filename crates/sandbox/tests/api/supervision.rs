//! The supervised parts of a computer: they can be seen, and a computer whose log fails is opened again.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::socket::{tab, tab_of};
use crate::test_machine::{RequestBody, TestMachine};

const PAUSE: Duration = Duration::from_millis(50);

impl TestMachine {
    async fn parts(&self) -> Vec<Value> {
        self.get("/api/v1/parts").await.json["parts"].as_array().unwrap().clone()
    }

    async fn until_part(&self, kind: &str, is_there: bool) -> Value {
        loop {
            let parts = self.parts().await;
            let found = parts.into_iter().find(|part| part["kind"] == kind);
            if found.is_some() == is_there {
                return found.unwrap_or_default();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_part_of_a_computer_is_listed_with_its_rule() {
    let machine = TestMachine::new().await;
    let report = machine.get("/api/v1/parts").await.json;
    let rules: Vec<_> = report["rules"].as_array().unwrap().iter().map(|rule| &rule["kind"]).collect();
    assert_eq!(rules.len(), 11);
    for kind in ["computer", "log", "event_bus", "projector", "watcher", "socket", "agents"] {
        let part = machine.until_part(kind, true).await;
        assert_eq!(part["state"], "running", "{part}");
        assert!(rules.contains(&&part["kind"]));
    }
    let started = machine.post("/api/v1/terminals", json!({ "columns": 80, "rows": 24 })).await;
    let id = started.json["id"].as_str().unwrap();
    assert_eq!(machine.until_part("terminal", true).await["label"], id);
    let path = format!("/api/v1/terminals/{id}");
    machine.send(&machine.owners(), axum::http::Method::DELETE, &path, RequestBody::Empty).await;
    machine.until_part("terminal", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computer_whose_writer_panics_is_opened_again_and_others_notice_nothing() {
    let (machine, open_computer) = TestMachine::with_desk().await;
    let guest = machine.cookie_of(&machine.guest());
    let mut guests_tab = tab_of(&machine, &guest, "").await;
    guests_tab.until("state").await;
    machine.write("kept.txt", "before").await;
    let mut open_tab = tab(&machine, "").await;
    open_tab.until("state").await;

    let failed = open_computer.computer().writer().inspect(|_| panic!("a bug in the writer"));
    assert!(failed.is_err());
    drop(open_computer);
    // The tab is disconnected, and would connect again.
    while let Some(Ok(_)) = open_tab.0.next().await {}
    while machine.put("/api/v1/content?path=new.txt", b"after").await.status != 200 {
        tokio::time::sleep(PAUSE).await;
    }
    assert_eq!(machine.get("/api/v1/content?path=kept.txt").await.bytes, b"before");
    assert_eq!(machine.get("/api/v1/content?path=new.txt").await.bytes, b"after");
    machine.until_part("projector", true).await;

    let path = "/api/v1/content?path=guest.txt";
    let sent = machine
        .send(&guest, axum::http::Method::PUT, path, RequestBody::Bytes("text/plain", b"x".to_vec()))
        .await;
    assert_eq!(sent.status, 200, "{:?}", sent.json);
    guests_tab.until("through").await;
}
