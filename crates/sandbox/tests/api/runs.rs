//! Runs over HTTP: started once even if the request is resent, controlled, and hidden from other users.

use axum::http::Method;
use serde_json::{Value, json};
use shared_types::{RunId, TaskId};

use crate::socket::tab;
use crate::test_machine::{RequestBody, TestCredential, TestMachine, TestResponse, nothing};

const RUN: &str = "018f3c00-0000-7000-8000-0000000000a1";
const OTHER: &str = "018f3c00-0000-7000-8000-0000000000a2";

fn command(number: u8) -> String {
    format!("018f3c00-0000-7000-8000-0000000001{number:02}")
}

fn start(number: u8, run: &str, objective: &str) -> Value {
    json!({ "command": command(number), "run": run, "objective": objective })
}

async fn gesture(machine: &TestMachine, number: u8, run: &str, gesture: Value) -> TestResponse {
    let body = json!({ "command": command(number), "gesture": gesture });
    machine.post(&format!("/api/v1/runs/{run}/gestures"), body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_once_and_listed_at_once() {
    let machine = TestMachine::new().await;
    let started = machine.post("/api/v1/runs", start(1, RUN, "Write a report\nabout bees")).await;
    assert_eq!(started.status, 200, "{started:?}");
    assert_eq!((&started.json["run"], &started.json["title"]), (&json!(RUN), &json!("Write a report")));
    let listed = machine.get("/api/v1/runs").await.json;
    assert_eq!((listed["runs"].as_array().unwrap().len(), &listed["runs"][0]["run"]), (1, &json!(RUN)));

    let again = machine.post("/api/v1/runs", start(1, RUN, "Write a report\nabout bees")).await;
    assert_eq!((again.status.as_u16(), &again.json["seq"]), (200, &started.json["seq"]));
    let taken = machine.post("/api/v1/runs", start(2, RUN, "Something else")).await;
    assert_eq!((taken.status.as_u16(), taken.code()), (409, "run_taken"));
    assert_eq!(machine.get("/api/v1/runs").await.json["runs"].as_array().unwrap().len(), 1);

    let shown = machine.get(&format!("/api/v1/runs/{RUN}")).await.json;
    assert_eq!(shown["objective"], "Write a report\nabout bees");
    let first = &machine.get(&format!("/api/v1/runs/{RUN}/steps")).await.json[0];
    assert_eq!((&first["kind"], &first["label"]), (&json!("turn"), &json!("Write a report")));
    let parts = machine.get(&format!("/api/v1/runs/{RUN}/steps/{}", first["seq"])).await.json;
    assert_eq!(parts["input"], "Write a report\nabout bees", "{parts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_is_refused_and_leaves_nothing() {
    let machine = TestMachine::new().await;
    let head = machine.head().await;
    let empty = machine.post("/api/v1/runs", start(1, RUN, " \n ")).await;
    assert_eq!((empty.status.as_u16(), empty.code()), (422, "refused"));
    let mut attached = start(2, RUN, "look at this");
    attached["attached"] = json!(["no/such/file.txt"]);
    let absent = machine.post("/api/v1/runs", attached.clone()).await;
    assert_eq!((absent.status.as_u16(), absent.code()), (404, "not_found"));
    let outside = machine
        .post(
            "/api/v1/runs",
            json!({ "command": command(3), "run": RUN, "objective": "x",
        "attached": ["../secret"] }),
        )
        .await;
    assert_eq!(outside.status, 422, "{outside:?}");
    assert_eq!(machine.head().await, head);
    // A file that another program made a moment ago will do.
    std::fs::create_dir_all(machine.workspace().join("no/such")).unwrap();
    std::fs::write(machine.workspace().join("no/such/file.txt"), "here").unwrap();
    let started = machine.post("/api/v1/runs", attached).await;
    assert_eq!(started.status, 200, "{started:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gestures_are_recorded_and_those_on_what_is_over_refused() {
    let machine = TestMachine::new().await;
    machine.post("/api/v1/runs", start(1, RUN, "work")).await;
    let told =
        gesture(&machine, 2, RUN, json!({ "steer": { "task": null, "words": "Shorter, please" } })).await;
    assert_eq!(told.status, 200, "{told:?}");
    let paused = gesture(&machine, 3, RUN, json!("take_over")).await;
    assert_eq!((paused.status.as_u16(), &paused.json["state"]), (200, &json!("paused")), "{paused:?}");
    let unknown = gesture(&machine, 4, RUN, json!({ "trust": { "task": OTHER } })).await;
    assert_eq!((unknown.status.as_u16(), unknown.code()), (404, "no_task"));
    let answer = json!({ "answer": { "ask": OTHER, "reply": { "allow": "once" } } });
    let unasked = gesture(&machine, 5, RUN, answer).await;
    assert_eq!((unasked.status.as_u16(), unasked.code()), (404, "no_question"));

    let stopped = gesture(&machine, 6, RUN, json!("stop")).await;
    assert_eq!((stopped.status.as_u16(), &stopped.json["state"]), (200, &json!("cancelled")), "{stopped:?}");
    assert!(stopped.json["ended"].is_number(), "{stopped:?}");
    let again = gesture(&machine, 6, RUN, json!("stop")).await;
    assert_eq!((again.status.as_u16(), &again.json["state"]), (200, &json!("cancelled")), "a resend");
    let late = gesture(&machine, 7, RUN, json!("pause")).await;
    assert_eq!((late.status.as_u16(), late.code()), (409, "run_is_over"));
    let unknown_run = gesture(&machine, 8, OTHER, json!("pause")).await;
    assert_eq!((unknown_run.status.as_u16(), unknown_run.code()), (404, "no_run"));

    let steps = machine.get(&format!("/api/v1/runs/{RUN}/steps")).await.json;
    let labels: Vec<&str> =
        steps.as_array().unwrap().iter().filter_map(|step| step["label"].as_str()).collect();
    for expected in ["you: Shorter, please", "stop the run"] {
        assert!(labels.contains(&expected), "{expected} in {labels:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said_not_to_be() {
    let machine = TestMachine::new().await;
    machine.post("/api/v1/runs", start(1, RUN, "work")).await;
    gesture(&machine, 2, RUN, json!("stop")).await;
    for (path, code) in [
        (format!("/api/v1/runs/{OTHER}"), "no_run"),
        (format!("/api/v1/runs/{OTHER}/steps"), "no_run"),
        (format!("/api/v1/runs/{RUN}/steps/999999"), "not_found"),
        ("/api/v1/runs/nonsense".into(), "bad_request"),
    ] {
        let answer = machine.get(&path).await;
        assert_eq!(answer.code(), code, "{path}: {answer:?}");
    }
    let undone = machine.post(&format!("/api/v1/runs/{OTHER}/undo"), nothing()).await;
    assert_eq!((undone.status.as_u16(), undone.code()), (404, "no_run"));
    let nothing_done = machine.post(&format!("/api/v1/runs/{RUN}/undo"), nothing()).await;
    assert_eq!((nothing_done.status.as_u16(), nothing_done.code()), (422, "refused"));
    let redone = machine.post(&format!("/api/v1/runs/{RUN}/redo"), nothing()).await;
    assert_eq!((redone.status.as_u16(), redone.code()), (422, "refused"));
    assert_eq!(machine.get("/api/v1/questions").await.json, json!({ "questions": [] }));
    assert_eq!(machine.get("/api/v1/grants").await.json, json!({ "grants": [] }));
    let path = format!("/api/v1/grants/{OTHER}");
    let revoked = machine.send(&machine.owners(), Method::DELETE, &path, RequestBody::Empty).await;
    assert_eq!((revoked.status.as_u16(), revoked.code()), (404, "no_grant"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_users_run_cannot_be_reached_by_its_id() {
    let machine = TestMachine::new().await;
    machine.post("/api/v1/runs", start(1, RUN, "secret work")).await;
    let guest: TestCredential = machine.cookie_of(&machine.guest());
    for (method, path, body) in [
        (Method::GET, format!("/api/v1/runs/{RUN}"), RequestBody::Empty),
        (Method::GET, format!("/api/v1/runs/{RUN}/steps"), RequestBody::Empty),
        (Method::GET, format!("/api/v1/runs/{RUN}/steps/1"), RequestBody::Empty),
        (
            Method::POST,
            format!("/api/v1/runs/{RUN}/gestures"),
            RequestBody::Json(json!({ "command": command(2), "gesture": "stop" })),
        ),
        (Method::POST, format!("/api/v1/runs/{RUN}/undo"), RequestBody::Json(nothing())),
    ] {
        let answer = machine.send(&guest, method, &path, body).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (404, "no_run"), "{path}");
    }
    let listed = machine.send(&guest, Method::GET, "/api/v1/runs", RequestBody::Empty).await;
    assert_eq!(listed.json, json!({ "runs": [] }));
    assert_ne!(machine.get(&format!("/api/v1/runs/{RUN}")).await.json["line"]["state"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_reaches_every_tab_and_slows_none() {
    let (machine, open_computer) = TestMachine::with_desk().await;
    let mut tab = tab(&machine, "").await;
    tab.until("state").await;
    tab.until("projected").await;
    let (run, task) = (RunId::from_bytes([7; 16]), TaskId::from_bytes([8; 16]));
    // Far more than any buffer could keep, while no tab reads.
    let began = std::time::Instant::now();
    for number in 0..20_000 {
        open_computer.stream_speech(run, task, format!("{number}"));
    }
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    open_computer.stream_speech(run, task, "the last word");
    loop {
        let said = tab.until("said").await;
        assert_eq!((&said["run"], &said["task"]), (&json!(run), &json!(task)));
        if said["text"] == "the last word" {
            break;
        }
    }
}
