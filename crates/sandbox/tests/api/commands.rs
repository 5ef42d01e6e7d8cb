//! Commands over HTTP: recorded before the answer, run behind it, followed over the socket, and settled.

use axum::http::Method;
use computer::client;
use computer::protocol::{Answer, Request};
use serde_json::{Value, json};
use shared_types::payload::tool::{StopReason, ToolStatus};
use shared_types::wire::{CellCommand, TokenScope};
use shared_types::{OpId, TerminalId};
use tokio_tungstenite::tungstenite::Message;

use crate::socket::{Tab, tab, tab_of};
use crate::test_machine::{RequestBody, TestMachine, nothing, owner};

async fn start(machine: &TestMachine, line: &str, dry: bool) -> OpId {
    let body = json!({ "run": { "argv": ["sh", "-c", line], "dry": dry } });
    let started = machine.post("/api/v1/commands", body).await;
    assert_eq!(started.status, 202, "{started:?}");
    started.json["op"].as_str().unwrap().parse().unwrap()
}

/// What is known of a command once the lists have it and it is as far as this.
async fn until(machine: &TestMachine, op: OpId, status: &str) -> Value {
    let mut follower = tab(machine, "").await;
    loop {
        let found = machine.get(&format!("/api/v1/commands/{op}")).await;
        if found.json["operation"]["call"]["status"] == status {
            return found.json;
        }
        assert!([200, 404].contains(&found.status.as_u16()), "{found:?}");
        follower.until("projected").await;
    }
}

impl Tab {
    async fn attach_command(&mut self, op: OpId, offset: u64) -> TerminalId {
        let attach = json!({ "attach_command": { "op": op, "offset": offset } });
        self.say(Message::text(attach.to_string())).await;
        self.until("attached").await["terminal"].as_str().unwrap().parse().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_one_operation_with_its_output_and_undo() {
    let machine = TestMachine::new().await;
    machine.write("src/a.txt", "a\n").await;
    machine.write("src/b.txt", "b\n").await;
    let op = start(&machine, "rm -rf src; echo gone; exit 3", false).await;
    let done = until(&machine, op, "exited").await;
    assert_eq!(done["operation"]["call"]["code"], 3, "{done}");
    assert_eq!(done["total"], 2, "{done}");
    assert_eq!(done["call"]["title"], "rm -rf src; echo gone; exit 3");
    let hash = done["call"]["report"]["output"]["hash"].as_str().unwrap();
    let printed = machine.get(&format!("/api/v1/content?hash={hash}")).await;
    assert_eq!(printed.bytes, b"gone\n");
    assert!(!machine.workspace().join("src").exists());
    let undone = machine.post(&format!("/api/v1/operations/{op}/undo"), nothing()).await;
    assert_eq!(undone.status, 200, "{undone:?}");
    assert_eq!(std::fs::read_to_string(machine.workspace().join("src/a.txt")).unwrap(), "a\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_waits_to_be_accepted_or_discarded() {
    let machine = TestMachine::new().await;
    machine.write("kept.txt", "one\n").await;
    for (verb, expected, status) in [("discard", "one\n", "discarded"), ("accept", "two\n", "exited")] {
        let op = start(&machine, "echo two > kept.txt; exit 3", true).await;
        let held = until(&machine, op, "held").await;
        assert_eq!(held["total"], 1, "{held}");
        assert_eq!(
            (&held["call"]["code"], &held["operation"]["call"]["code"]),
            (&json!(3), &json!(3)),
            "{held}"
        );
        assert!(held["changes"][0]["diff"].as_str().unwrap().contains("+two"), "{held}");
        let open = machine.get("/api/v1/commands").await.json;
        assert_eq!(open[0]["op"], json!(op), "{open}");
        assert_eq!((open.as_array().unwrap().len(), &open[0]["status"]), (1, &json!("held")));
        let read = || std::fs::read_to_string(machine.workspace().join("kept.txt")).unwrap();
        assert_eq!(read(), "one\n", "nothing is kept yet");
        let settled = machine.post(&format!("/api/v1/commands/{op}/{verb}"), nothing()).await;
        assert_eq!(settled.status, 200, "{settled:?}");
        assert_eq!(read(), expected, "{verb}");
        until(&machine, op, status).await;
        assert_eq!(machine.get("/api/v1/commands").await.json, json!([]));
        let again = machine.post(&format!("/api/v1/commands/{op}/{verb}"), nothing()).await;
        assert_eq!((again.status.as_u16(), again.code()), (404, "not_found"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_runs_is_followed_and_stopped() {
    let machine = TestMachine::new().await;
    let op = start(&machine, "echo begun; touch half; read forever < /dev/zero; sleep 1000", false).await;
    let mut screen = tab(&machine, "").await;
    let spoken = screen.attach_command(op, 0).await;
    screen.output_until(spoken, "begun").await;
    // A second tab that comes late is told the same.
    let mut late = tab(&machine, "").await;
    let spoken = late.attach_command(op, 0).await;
    late.output_until(spoken, "begun").await;
    let open = machine.get("/api/v1/commands").await.json;
    assert_eq!((&open[0]["op"], &open[0]["status"]), (&json!(op), &json!("running")), "{open}");
    let stopped = machine.post(&format!("/api/v1/commands/{op}/stop"), nothing()).await;
    assert_eq!(stopped.status, 204, "{stopped:?}");
    screen.until("terminal_ended").await;
    let done = until(&machine, op, "stopped").await;
    assert_eq!(done["call"]["status"]["why"], "cancelled", "{done}");
    assert!(!machine.workspace().join("half").exists(), "it was not complete");
    let again = machine.post(&format!("/api/v1/commands/{op}/stop"), nothing()).await;
    assert_eq!((again.status.as_u16(), again.code()), (404, "not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resend_runs_nothing_twice() {
    let machine = TestMachine::new().await;
    let (command, op) = ("018f3c00-0000-7000-8000-0000000000c1", "018f3c00-0000-7000-8000-0000000000c2");
    let body = json!({ "run": { "argv": ["sh", "-c", "echo x >> once"] }, "command": command, "op": op });
    for _ in 0..2 {
        let started = machine.post("/api/v1/commands", body.clone()).await;
        assert_eq!((started.status.as_u16(), &started.json["op"]), (202, &json!(op)), "{started:?}");
    }
    until(&machine, op.parse().unwrap(), "exited").await;
    let started = machine.post("/api/v1/commands", body).await;
    assert_eq!(started.status, 202, "{started:?}");
    assert_eq!(std::fs::read_to_string(machine.workspace().join("once")).unwrap(), "x\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_run_is_refused_and_leaves_no_trace() {
    let machine = TestMachine::new().await;
    let before = machine.head().await;
    for run in [
        json!({ "argv": [] }),
        json!({ "argv": [""] }),
        json!({ "argv": ["a\0b"] }),
        json!({ "argv": "ls" }),
        json!({ "argv": ["ls"], "folder": "../up" }),
        json!({ "argv": ["ls"], "network": { "hosts": ["http://x/"] } }),
        json!({ "argv": ["ls"], "limits": { "memory": 0 } }),
        json!({ "argv": ["ls"], "limits": { "memory": -1 } }),
        json!({ "argv": ["ls"], "unknown": 1 }),
        json!("ls"),
        Value::Null,
    ] {
        let refused = machine.post("/api/v1/commands", json!({ "run": run })).await;
        assert!([400, 422].contains(&refused.status.as_u16()), "{run}: {refused:?}");
        refused.code();
    }
    let missing = "018f3c00-0000-7000-8000-0000000000aa";
    for path in [format!("{missing}/accept"), format!("{missing}/discard"), format!("{missing}/stop")] {
        let refused = machine.post(&format!("/api/v1/commands/{path}"), nothing()).await;
        assert_eq!((refused.status.as_u16(), refused.code()), (404, "not_found"), "{path}");
    }
    for (path, expected) in [(missing, 404), ("not-an-id", 400)] {
        let refused = machine.get(&format!("/api/v1/commands/{path}")).await;
        assert_eq!(refused.status, expected, "{refused:?}");
    }
    assert_eq!(machine.head().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_no_command_is_not_shown_as_one() {
    let machine = TestMachine::new().await;
    let op = machine.write("plain.txt", "x").await.json["op"].as_str().unwrap().to_owned();
    let refused = machine.get(&format!("/api/v1/commands/{op}")).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (404, "not_found"));
}

/// A token that may only read can look at a command, and at no terminal.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_types_nowhere_without_its_scope() {
    let machine = TestMachine::new().await;
    let body = RequestBody::Json(json!({ "kind": "shell", "columns": 80, "rows": 24 }));
    let shell =
        machine.send(&machine.owners(), Method::POST, "/api/v1/terminals", body).await.json["id"].clone();
    let mut reader = tab_of(&machine, &machine.token_of(&owner(), &[TokenScope::Read]), "").await;
    let attach = json!({ "attach": { "terminal": shell, "offset": 0 } });
    reader.say(Message::text(attach.to_string())).await;
    assert!(reader.until("refused").await["detail"].as_str().unwrap().contains("token"));
    // Even with it, a plain shell is for a person at the machine.
    let token = machine.token_of(&owner(), &[TokenScope::Read, TokenScope::Terminal]);
    let body = RequestBody::Json(json!({ "kind": "shell", "columns": 80, "rows": 24 }));
    let refused = machine.send(&token, Method::POST, "/api/v1/terminals", body).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (403, "no_shell"));
}

/// Where no cell can be built, nothing is run in its place.
#[tokio::test(flavor = "multi_thread")]
async fn without_cells_nothing_runs_and_the_error_says_why() {
    isolation::set_launcher("/nowhere/no-such-launcher");
    let machine = TestMachine::new().await;
    let refused = machine.post("/api/v1/terminals", json!({ "columns": 80, "rows": 24 })).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (422, "refused"));
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(
        detail.contains("launcher") && detail.contains("Commands never run without isolation"),
        "{detail}"
    );
    assert_eq!(machine.get("/api/v1/terminals").await.json, json!([]));
    let op = start(&machine, "touch made", false).await;
    let failed = until(&machine, op, "failed").await;
    assert!(failed["call"]["status"]["reason"].as_str().unwrap().contains("launcher"), "{failed}");
    assert!(!machine.workspace().join("made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_the_command_line_is_followed_live_by_a_tab_and_by_its_caller() {
    let (machine, open_computer) = TestMachine::with_desk().await;
    let paths = open_computer.computer().paths.clone();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let at_the_command_line = std::thread::spawn(move || {
        let argv = ["sh", "-c", "cat; sleep 1000"].map(String::from).to_vec();
        let run = Request::RunCommand(CellCommand { argv, ..CellCommand::default() });
        let tell = &mut |_, bytes: &[u8]| drop(told.send(bytes.to_vec()));
        client::request_with_output(&paths, run, &mut &b"at work\n"[..], &|_, _, _| (), tell)
    });
    assert_eq!(heard.recv().await.unwrap(), b"at work\n", "its caller hears it while it runs");
    let open = machine.get("/api/v1/commands").await.json;
    let op: OpId = open[0]["op"].as_str().unwrap().parse().unwrap();
    let mut screen = tab(&machine, "").await;
    let spoken = screen.attach_command(op, 0).await;
    screen.output_until(spoken, "at work").await;
    let stopped = machine.post(&format!("/api/v1/commands/{op}/stop"), nothing()).await;
    assert_eq!(stopped.status, 204, "{stopped:?}");
    screen.until("terminal_ended").await;
    let ran = tokio::task::spawn_blocking(|| at_the_command_line.join().unwrap()).await.unwrap();
    let Ok(Answer::CommandResult(ran)) = ran else { panic!("{ran:?}") };
    assert_eq!(ran.status, Some(ToolStatus::Stopped { why: StopReason::Cancelled }));
}
