//! Terminals over the WebSocket: what is typed runs, what is written comes back, and nothing floods.

use serde_json::{Value, json};
use shared_types::TerminalId;
use shared_types::wire::TerminalFrame;
use tokio_tungstenite::tungstenite::Message;

use crate::house::House;
use crate::socket::{Tab, tab};

async fn start(house: &House) -> TerminalId {
    let started = house.post("/api/v1/terminals", json!({ "columns": 80, "rows": 24 })).await;
    started.json["id"].as_str().unwrap_or_else(|| panic!("{started:?}")).parse().unwrap()
}

impl Tab {
    async fn attach(&mut self, terminal: TerminalId, offset: u64) -> u64 {
        let attach = json!({ "attach": { "terminal": terminal, "offset": offset } });
        self.say(Message::text(attach.to_string())).await;
        self.until("attached").await["offset"].as_u64().unwrap()
    }

    async fn type_in(&mut self, terminal: TerminalId, text: &str) {
        let frame = TerminalFrame { terminal, bytes: text.as_bytes() }.encode();
        self.say(Message::binary(frame)).await;
    }

    async fn shown(&mut self, terminal: TerminalId, bytes: usize) {
        let shown = json!({ "shown": { "terminal": terminal, "bytes": bytes } });
        self.say(Message::text(shown.to_string())).await;
    }

    /// Reads output until it holds a text, saying what was shown.
    async fn output_until(&mut self, terminal: TerminalId, text: &str) -> Vec<u8> {
        let mut output = Vec::new();
        while !String::from_utf8_lossy(&output).contains(text) {
            let Message::Binary(frame) = self.hear().await else { continue };
            let bytes = TerminalFrame::parse(&frame).unwrap().bytes.to_vec();
            self.shown(terminal, bytes.len()).await;
            output.extend(bytes);
        }
        output
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_in_the_workspace_and_survives_a_reload() {
    let house = House::new().await;
    let terminal = start(&house).await;
    let mut first = tab(&house, "").await;
    first.attach(terminal, 0).await;
    first.type_in(terminal, "echo bl\u{e4}tter-$((40+2)) > made.txt; cat made.txt\n").await;
    first.output_until(terminal, "bl\u{e4}tter-42").await;
    assert_eq!(std::fs::read_to_string(house.workspace().join("made.txt")).unwrap(), "bl\u{e4}tter-42\n");
    // What it changed becomes an operation of its own.
    let made = loop {
        let event = first.until("event").await["event"].take();
        if event["actor"] == "capture" {
            break event;
        }
    };
    assert_eq!(made["payload"]["path"], "made.txt", "{made}");
    drop(first);
    let mut again = tab(&house, "").await;
    assert_eq!(again.attach(terminal, 0).await, 0);
    again.output_until(terminal, "bl\u{e4}tter-42").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_waits_for_the_screen() {
    let house = House::new().await;
    let terminal = start(&house).await;
    let mut tab = tab(&house, "").await;
    tab.attach(terminal, 0).await;
    tab.type_in(terminal, "yes\n").await;
    // Nothing is ever said to be shown, so the server stops by itself.
    let mut got = 0;
    loop {
        match tokio::time::timeout(std::time::Duration::from_millis(700), tab.hear()).await {
            Ok(Message::Binary(frame)) => got += frame.len() - 16,
            Ok(_) => {}
            Err(_) => break,
        }
        assert!(got < 1 << 20, "the server sends on although nothing was shown");
    }
    assert!(got >= 200 << 10, "about a window's worth came: {got}");
    tab.shown(terminal, got).await;
    assert!(matches!(tab.hear().await, Message::Binary(_)), "then it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_ends_by_itself_or_by_being_closed() {
    let house = House::new().await;
    let mut tab = tab(&house, "").await;
    let terminal = start(&house).await;
    tab.attach(terminal, 0).await;
    tab.type_in(terminal, "exit 3\n").await;
    let ended: Value = tab.until("terminal_ended").await;
    assert_eq!(ended["code"], 3, "{ended}");
    let second = start(&house).await;
    tab.attach(second, 0).await;
    let path = format!("/api/v1/terminals/{second}");
    let sent =
        house.send(&house.owners(), axum::http::Method::DELETE, &path, crate::house::Sent::Nothing).await;
    assert_eq!(sent.status, 204, "{sent:?}");
    tab.until("terminal_ended").await;
    assert_eq!(house.get("/api/v1/terminals").await.json, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_shell_is_off_as_soon_as_somebody_else_has_an_account() {
    let house = House::new().await;
    house.guest();
    let refused = house.post("/api/v1/terminals", json!({ "columns": 80, "rows": 24 })).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (403, "no_shell"));
}
