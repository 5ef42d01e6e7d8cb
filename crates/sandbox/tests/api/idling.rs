//! An idle computer is closed and reopened transparently.

use std::time::Duration;

use axum::http::Method;
use computer::Computer;
use computer::paths::ComputerPaths;
use serde_json::json;

use crate::socket::tab;
use crate::test_machine::{RequestBody, TestMachine};

const SOON: Duration = Duration::from_millis(100);

async fn machine() -> TestMachine {
    TestMachine::with(|config| config.idle_close = Some(SOON)).await
}

impl TestMachine {
    /// How many computers are open; asking uses none.
    async fn open(&self) -> u64 {
        let metrics = self.get("/metrics").await;
        let text = String::from_utf8(metrics.bytes).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("choir_computers_open "));
        line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
    }

    async fn until_closed(&self) {
        while self.open().await > 0 {
            tokio::time::sleep(SOON).await;
        }
    }

    fn paths(&self) -> ComputerPaths {
        ComputerPaths { workspace: self.workspace(), state: self.data().join("users/ada/.choir") }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_closed_when_idle_and_opened_again_on_a_request() {
    let machine = machine().await;
    machine.write("kept.txt", "x").await;
    let head = machine.head().await;
    machine.until_closed().await;
    // Closed means that another process could open it.
    let other = tokio::task::spawn_blocking({
        let paths = machine.paths();
        move || loop {
            match Computer::open(&paths) {
                Ok(computer) => return computer,
                Err(failure) => assert_eq!(failure.code, computer::error::ErrorCode::Busy, "{failure}"),
            }
        }
    });
    drop(other.await.unwrap());
    std::fs::write(machine.workspace().join("meanwhile.txt"), "y").unwrap();
    assert_eq!(machine.get("/api/v1/content?path=kept.txt").await.bytes, b"x");
    assert!(machine.head().await >= head);
    while machine.get("/api/v1/content?path=meanwhile.txt").await.bytes != b"y" {
        tokio::time::sleep(SOON).await;
    }
    machine.until_closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_or_a_shell_keeps_it_open() {
    let machine = machine().await;
    let mut looking = tab(&machine, "").await;
    looking.until("state").await;
    tokio::time::sleep(SOON * 10).await;
    assert_eq!(machine.open().await, 1, "a tab is connected");
    let started = machine.post("/api/v1/terminals", json!({ "columns": 80, "rows": 24 })).await;
    drop(looking);
    tokio::time::sleep(SOON * 10).await;
    assert_eq!(machine.open().await, 1, "a shell runs");
    let path = format!("/api/v1/terminals/{}", started.json["id"].as_str().unwrap());
    assert_eq!(machine.send(&machine.owners(), Method::DELETE, &path, RequestBody::Empty).await.status, 204);
    machine.until_closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_comes_while_it_is_closing_is_served() {
    let machine = TestMachine::with(|config| config.idle_close = Some(Duration::from_millis(1))).await;
    for round in 0..8 {
        // Pauses that end before, during and after the closing.
        tokio::time::sleep(Duration::from_millis(60 + round * 90)).await;
        let (one, other) = (format!("{round}-one.txt"), format!("{round}-other.txt"));
        tokio::join!(machine.write(&one, "x"), machine.write(&other, "y"));
    }
    let listed = machine.get("/api/v1/files").await;
    let names = listed.json.to_string();
    assert!((0..8).all(|round| names.contains(&format!("{round}-other.txt"))), "{names}");
}
