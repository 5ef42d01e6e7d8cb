//! Terminals over the WebSocket: input runs, output comes back, and a flood of output is limited.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use shared_types::TerminalId;
use shared_types::wire::TerminalFrame;
use tokio_tungstenite::tungstenite::Message;

use crate::socket::{Tab, tab, tab_of};
use crate::test_machine::{RequestBody, TestCredential, TestMachine};

async fn start(machine: &TestMachine) -> TerminalId {
    start_of_kind(machine, &machine.owners(), "shell").await
}

async fn start_of_kind(machine: &TestMachine, pass: &TestCredential, kind: &str) -> TerminalId {
    let body = RequestBody::Json(json!({ "kind": kind, "columns": 80, "rows": 24 }));
    let started = machine.send(pass, Method::POST, "/api/v1/terminals", body).await;
    assert_eq!(started.json["kind"], kind, "{started:?}");
    started.json["id"].as_str().unwrap_or_else(|| panic!("{started:?}")).parse().unwrap()
}

impl Tab {
    pub(crate) async fn attach(&mut self, terminal: TerminalId, offset: u64) -> u64 {
        let attach = json!({ "attach": { "terminal": terminal, "offset": offset } });
        self.say(Message::text(attach.to_string())).await;
        self.until("attached").await["offset"].as_u64().unwrap()
    }

    async fn type_in(&mut self, terminal: TerminalId, text: &str) {
        let frame = TerminalFrame { terminal, bytes: text.as_bytes() }.encode();
        self.say(Message::binary(frame)).await;
    }

    pub(crate) async fn shown(&mut self, terminal: TerminalId, bytes: usize) {
        let shown = json!({ "shown": { "terminal": terminal, "bytes": bytes } });
        self.say(Message::text(shown.to_string())).await;
    }

    /// Reads output until it holds a text, saying what was shown.
    pub(crate) async fn output_until(&mut self, terminal: TerminalId, text: &str) -> Vec<u8> {
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
    let machine = TestMachine::new().await;
    let terminal = start(&machine).await;
    let mut first = tab(&machine, "").await;
    first.attach(terminal, 0).await;
    first.type_in(terminal, "echo bl\u{e4}tter-$((40+2)) > made.txt; cat made.txt\n").await;
    first.output_until(terminal, "bl\u{e4}tter-42").await;
    assert_eq!(std::fs::read_to_string(machine.workspace().join("made.txt")).unwrap(), "bl\u{e4}tter-42\n");
    // What it changed becomes an operation of its own.
    let made = loop {
        let event = first.until("event").await["event"].take();
        if event["actor"] == "capture" {
            break event;
        }
    };
    assert_eq!(made["payload"]["path"], "made.txt", "{made}");
    drop(first);
    let mut again = tab(&machine, "").await;
    assert_eq!(again.attach(terminal, 0).await, 0);
    again.output_until(terminal, "bl\u{e4}tter-42").await;
}

/// Events of one operation that a terminal made.
async fn captured(tab: &mut Tab, last: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while found.last().is_none_or(|(_, path)| path != last) {
        let event = tab.until("event").await["event"].take();
        if event["actor"] == "capture" {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            found.push((text(&event["op"]), text(&event["payload"]["path"])));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_changes_is_one_operation_and_the_next_command_another() {
    let machine = TestMachine::new().await;
    let terminal = start(&machine).await;
    let mut watcher = tab(&machine, "").await;
    let mut screen = tab(&machine, "").await;
    screen.attach(terminal, 0).await;
    // The pauses are longer than what makes two operations of what other programs do.
    screen.type_in(terminal, "for i in 1 2 3; do echo $i > part-$i; sleep 0.4; done; touch part-4\n").await;
    screen.output_until(terminal, "\u{1b}]133;C").await;
    screen.output_until(terminal, "\u{1b}]133;D;0").await;
    let first = captured(&mut watcher, "part-4").await;
    assert_eq!(first.len(), 4, "{first:?}");
    assert!(first.iter().all(|(op, _)| *op == first[0].0), "{first:?}");
    screen.type_in(terminal, "echo x > after\n").await;
    let second = captured(&mut watcher, "after").await;
    assert_eq!(second.len(), 1, "{second:?}");
    assert_ne!(second[0].0, first[0].0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_goes_on_is_recorded_when_it_rests() {
    let machine = TestMachine::new().await;
    let terminal = start(&machine).await;
    let mut watcher = tab(&machine, "").await;
    let mut screen = tab(&machine, "").await;
    screen.attach(terminal, 0).await;
    screen.type_in(terminal, "touch saved; read answer; echo $answer > answered\n").await;
    assert_eq!(captured(&mut watcher, "saved").await.len(), 1, "it waits for us, as an editor would");
    screen.type_in(terminal, "yes\n").await;
    assert_eq!(captured(&mut watcher, "answered").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_waits_for_the_screen() {
    let machine = TestMachine::new().await;
    let terminal = start(&machine).await;
    let mut tab = tab(&machine, "").await;
    tab.attach(terminal, 0).await;
    tab.type_in(terminal, "yes\n").await;
    // Nothing is ever said to be shown, so the server stops by itself.
    let mut got = 0;
    loop {
        match tokio::time::timeout(Duration::from_millis(700), tab.hear()).await {
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
    let machine = TestMachine::new().await;
    let mut tab = tab(&machine, "").await;
    let terminal = start(&machine).await;
    tab.attach(terminal, 0).await;
    tab.type_in(terminal, "exit 3\n").await;
    let ended: Value = tab.until("terminal_ended").await;
    assert_eq!(ended["code"], 3, "{ended}");
    let second = start(&machine).await;
    tab.attach(second, 0).await;
    let path = format!("/api/v1/terminals/{second}");
    let sent = machine
        .send(&machine.owners(), axum::http::Method::DELETE, &path, crate::test_machine::RequestBody::Empty)
        .await;
    assert_eq!(sent.status, 204, "{sent:?}");
    tab.until("terminal_ended").await;
    assert_eq!(machine.get("/api/v1/terminals").await.json, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_shell_is_refused_as_soon_as_a_second_account_exists() {
    let machine = TestMachine::new().await;
    let shell = start(&machine).await;
    let mut early = tab(&machine, "").await;
    early.attach(shell, 0).await;
    let guest = machine.guest();
    let wanted = json!({ "kind": "shell", "columns": 80, "rows": 24 });
    let refused = machine.post("/api/v1/terminals", wanted.clone()).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (403, "no_shell"));
    let refused = machine
        .send(&machine.cookie_of(&guest), Method::POST, "/api/v1/terminals", RequestBody::Json(wanted))
        .await;
    assert_eq!((refused.status.as_u16(), refused.code()), (403, "no_shell"));
    // The one that ran already ends too.
    early.until("terminal_ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_to_an_old_shell_is_refused_once_a_second_account_exists() {
    let machine = TestMachine::new().await;
    let shell = start(&machine).await;
    let mut early = tab(&machine, "").await;
    early.attach(shell, 0).await;
    machine.guest();
    early.type_in(shell, "touch typed\n").await;
    let refused = early.until("refused").await;
    assert!(refused["detail"].as_str().unwrap().contains("plain shell"), "{refused}");
    early.until("terminal_ended").await;
    assert!(!machine.workspace().join("typed").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_in_a_cell_sees_the_workspace_and_nothing_else_and_is_captured() {
    let machine = TestMachine::new().await;
    machine.write("there.txt", "hello").await;
    let terminal = start_of_kind(&machine, &machine.owners(), "cell").await;
    let mut watcher = tab(&machine, "").await;
    let mut screen = tab(&machine, "").await;
    screen.attach(terminal, 0).await;
    let secret = machine.data().join("hypervisor.sqlite");
    screen
        .type_in(terminal, &format!("id -un; cat there.txt; ls {} && echo seen-$((1))\n", secret.display()))
        .await;
    screen.type_in(terminal, "echo one > made; echo two > also; pwd; echo over-$((6*7))\n").await;
    let text = String::from_utf8_lossy(&screen.output_until(terminal, "over-42").await).into_owned();
    for expected in ["choir\r\n", "hello", "/workspace\r\n", "\u{1b}]133;C"] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    assert!(!text.contains("seen-1"), "{text}");
    let made = captured(&mut watcher, "made").await;
    assert!(made.iter().all(|(op, _)| *op == made[0].0), "one prompt, one operation: {made:?}");
    assert_eq!(std::fs::read_to_string(machine.workspace().join("made")).unwrap(), "one\n");
    screen.type_in(terminal, "exit 4\n").await;
    assert_eq!(screen.until("terminal_ended").await["code"], 4);
    assert_eq!(machine.get("/api/v1/terminals").await.json, json!([]));
    assert_eq!(left_over(&machine, "ada"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_gets_a_cell_over_their_own_files() {
    let machine = TestMachine::new().await;
    machine.write("secret.txt", "mine").await;
    let guest = machine.guest();
    let pass = machine.cookie_of(&guest);
    let terminal = start_of_kind(&machine, &pass, "cell").await;
    let mut screen = tab_of(&machine, &pass, "").await;
    screen.attach(terminal, 0).await;
    screen.type_in(terminal, "ls; cat secret.txt; echo over-$((6*7))\n").await;
    let text = String::from_utf8_lossy(&screen.output_until(terminal, "over-42").await).into_owned();
    assert!(text.contains("Welcome.md") && !text.contains("mine"), "{text}");
    // The owner does not reach it.
    assert_eq!(machine.get("/api/v1/terminals").await.json, json!([]));
    let mut owner = tab(&machine, "").await;
    owner.type_in(terminal, "touch by-the-owner\n").await;
    owner.until("refused").await;
    let path = format!("/api/v1/terminals/{terminal}");
    assert_eq!(machine.send(&pass, Method::DELETE, &path, RequestBody::Empty).await.status, 204);
    screen.until("terminal_ended").await;
}

/// What cells left on the disk.
fn left_over(machine: &TestMachine, user: &str) -> Vec<String> {
    let folder = machine.data().join("users").join(user).join(".choir/cells");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_does_not_read_delays_no_other() {
    let machine = TestMachine::new().await;
    let mut screen = tab(&machine, "").await;
    let terminal = deaf_terminal(&machine, &mut screen).await;
    // More than there are threads that serve.
    let mut tabs = Vec::new();
    for _ in 0..32 {
        let mut tab = tab(&machine, "").await;
        let size = json!({ "resize": { "terminal": terminal, "columns": 90, "rows": 30 } });
        tab.say(Message::text(size.to_string())).await;
        tabs.push(tab);
    }
    let other = start_of_kind(&machine, &machine.owners(), "cell").await;
    let mut second = tab(&machine, "").await;
    second.attach(other, 0).await;
    second.type_in(other, "echo alive-$((6*7))\n").await;
    second.output_until(other, "alive-42").await;
    // It can still be ended.
    let path = format!("/api/v1/terminals/{terminal}");
    assert_eq!(machine.send(&machine.owners(), Method::DELETE, &path, RequestBody::Empty).await.status, 204);
    screen.until("terminal_ended").await;
    // The server stops in order beside one that does not read.
    deaf_terminal(&machine, &mut screen).await;
    drop((screen, second, tabs));
    machine.restarted().await;
}

/// A terminal whose program never reads, with more typed into it than its buffers hold.
async fn deaf_terminal(machine: &TestMachine, screen: &mut Tab) -> TerminalId {
    let terminal = start_of_kind(machine, &machine.owners(), "cell").await;
    screen.attach(terminal, 0).await;
    screen.type_in(terminal, "stty raw -echo; echo deaf-$((6*7)); sleep 99999\n").await;
    screen.output_until(terminal, "deaf-42").await;
    let flood = "x".repeat(200 << 10);
    // How much its buffers hold depends on how far the cell had read when the first piece came.
    let refused = loop {
        for _ in 0..6 {
            screen.type_in(terminal, &flood).await;
        }
        if let Ok(refused) = tokio::time::timeout(Duration::from_secs(4), screen.until("refused")).await {
            break refused;
        }
    };
    assert!(refused["detail"].as_str().unwrap().contains("does not read"), "{refused}");
    terminal
}
