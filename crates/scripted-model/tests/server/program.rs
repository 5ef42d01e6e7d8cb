//! The program: prints one line with its URLs, then serves until it is killed.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use scripted_model::Wire;
use serde_json::{Value, json};

use crate::{
    client::{TestMessage, body, get, has, headers, path, post},
    stream_reader::read_stream,
};

struct Running(Child, Value);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(arguments: &[&str]) -> Running {
    let folder = format!("{}/../../fixtures/scripts", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_scripted-model"));
    let mut child = command.arg(folder).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Running(child, serde_json::from_str(&line).unwrap())
}

#[test]
fn it_prints_its_urls_and_serves_a_folder_of_scripts() {
    let running = run(&["--key", "sk-known"]);
    assert_eq!(running.1["key"], "sk-known");
    for wire in Wire::ALL {
        let url = running.1["urls"][wire.name()].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/v1").parse().unwrap();
        assert_eq!(url.ends_with("/v1"), wire == Wire::OpenAi);
        let body = body(wire, "You are the Conductor.", &[TestMessage::User("make tea")]).to_string();
        let answer = post(address, path(wire), &headers(wire, "sk-known"), &body);
        assert_eq!(read_stream(wire, &answer).text, "Three minutes.");
        assert_eq!(post(address, path(wire), &headers(wire, "sk-wrong"), &body).status / 100, 4);
        let requests = get(address, "/requests");
        assert!(!requests.text().contains("sk-known") && !requests.text().contains("sk-wrong"));
        let requests = requests.json();
        let [.., played, refused] = requests.as_array().unwrap().as_slice() else { panic!("{requests}") };
        let expected = json!({"wire": wire.name(), "outcome": "played", "agent": "conductor", "step": 0});
        assert!(has(played, &expected), "{played}");
        assert!(has(refused, &json!({"outcome": "refused"})) && refused["reason"].is_string(), "{refused}");
    }
}

#[test]
fn the_key_is_random_by_default() {
    let (one, other) = (run(&[]), run(&[]));
    assert!(one.1["key"].as_str().unwrap().starts_with("sk-scripted-"));
    assert_ne!(one.1["key"], other.1["key"]);
}

#[test]
fn an_unreadable_script_is_reported_with_its_path() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scripted-model"));
    let output = command.arg("nowhere.toml").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read nowhere.toml"));
}
