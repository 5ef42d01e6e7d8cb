//! Malformed input on the socket: the holder answers clearly or hangs up, changes nothing and keeps working.

use std::io::{Read, Write};
use std::net::Shutdown;

use serde_json::{Value, json};

use crate::process::{BackgroundProcess, eventually, knock};
use crate::test_computer::TestComputer;

const COMMAND: &str = "0193b3c4-0000-7000-8000-000000000001";
const OP: &str = "0193b3c4-0000-7000-8000-000000000002";

fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
    frame.extend(bytes);
    frame
}

/// A well-formed envelope around any request, with no bytes after it.
fn request(request: Value) -> Vec<u8> {
    envelope(json!({ "version": 1, "command": COMMAND, "op": OP, "request": request }))
}

fn envelope(envelope: Value) -> Vec<u8> {
    let mut bytes = frame(envelope.to_string().as_bytes());
    bytes.extend(frame(b""));
    bytes
}

/// Says something, and returns the last answer if there is one.
fn say(computer: &TestComputer, bytes: &[u8]) -> Option<Value> {
    let mut stream = knock(computer);
    // A holder that has heard enough may hang up before all is said.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    let mut last = None;
    let mut rest = heard.as_slice();
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        last = Some(serde_json::from_slice(&more[..length]).unwrap());
        rest = &more[length..];
    }
    last
}

#[track_caller]
fn refused(computer: &TestComputer, bytes: &[u8], words: &str) {
    let answer = say(computer, bytes).unwrap_or_else(|| panic!("no answer, where {words:?} was expected"));
    assert_eq!(answer["failure"]["code"], "bad_request", "{answer}");
    assert!(answer["failure"]["message"].as_str().unwrap().contains(words), "no {words:?} in {answer}");
}

#[test]
fn what_is_not_a_request_is_answered_and_changes_nothing() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let mut watch = BackgroundProcess::watch(&computer);
    let snapshot = computer.snapshot();

    refused(&computer, &u32::MAX.to_le_bytes(), "over the limit");
    refused(&computer, &frame(b"{"), "not a request");
    refused(&computer, &frame(b"\xff\xfe\x00"), "not a request");
    refused(&computer, &frame(b""), "not a request");
    refused(&computer, &frame(b"null"), "not a request");
    refused(&computer, &frame("[".repeat(100_000).as_bytes()), "not a request");
    refused(&computer, &envelope(json!({ "version": "one" })), "invalid type");
    refused(&computer, &envelope(json!({ "version": 1, "request": "status" })), "missing field");
    refused(&computer, &envelope(json!({ "version": 2, "request": { "unheard": "of" } })), "version 2");
    let known = json!({ "version": 1, "command": COMMAND, "op": OP, "request": "status", "more": 1 });
    refused(&computer, &envelope(known), "unknown field");
    let bad_id = json!({ "version": 1, "command": "1", "op": OP, "request": "status" });
    refused(&computer, &envelope(bad_id), "not a request");
    refused(&computer, &request(json!("format_disk")), "unknown variant");
    refused(&computer, &request(json!({ "remove": { "path": 3 } })), "path");
    refused(&computer, &request(json!({ "remove": { "path": "a", "really": true } })), "unknown field");
    refused(&computer, &request(json!({ "restore": { "seq": -1, "preview": false } })), "invalid value");
    refused(&computer, &request(json!({ "write": { "path": "a", "mode": 70_000, "base": "any" } })), "u16");

    assert_eq!(computer.snapshot(), snapshot);
    assert_eq!(watch.so_far(), Vec::<Value>::new());
    watch.signal(rustix::process::Signal::TERM);
    assert!(watch.end().success());
}

#[test]
fn hostile_paths_are_refused_at_the_socket_too() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let _watch = BackgroundProcess::watch(&computer);
    let snapshot = computer.snapshot();
    let long = "x".repeat(300);
    let hostile =
        ["", "/etc/passwd", "../x", "a/../../x", "./x", "a//b", "a/", ".choir/lock", ".CHOIR", "x\0y", &long];
    for path in hostile {
        for asked in [
            json!({ "remove": { "path": path } }),
            json!({ "write": { "path": path, "mode": null, "base": "any" } }),
            json!({ "move": { "from": "a", "to": path } }),
            json!({ "import": { "file": "/dev/null", "into": path } }),
            json!({ "purge": { "hashes": [], "paths": [path], "reason": "" } }),
        ] {
            refused(&computer, &request(asked), "not a request");
        }
    }
    assert_eq!(computer.snapshot(), snapshot);
    assert!(!computer.has("../x"));
}

#[test]
fn odd_but_well_formed_requests_get_a_reason() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let _watch = BackgroundProcess::watch(&computer);
    let snapshot = computer.snapshot();
    let choices = json!({ "each": [], "others": null });
    for asked in [
        json!({ "undo": { "target": "x".repeat(100_000), "choices": choices, "preview": false } }),
        json!({ "undo": { "target": "@18446744073709551615", "choices": choices, "preview": false } }),
        json!({ "restore": { "seq": u64::MAX, "preview": false } }),
        json!({ "import": { "file": "/no/such/file", "into": null } }),
        json!({ "import": { "file": "/dev/null", "into": null } }),
        json!({ "purge": { "hashes": ["0".repeat(64)], "paths": [], "reason": "" } }),
        json!({ "checkpoint": { "message": "m".repeat(1_000_000) } }),
    ] {
        let answer = say(&computer, &request(asked.clone())).unwrap();
        let asked: String = asked.to_string().chars().take(80).collect();
        assert!(answer["failure"]["message"].is_string(), "{asked}: {answer}");
    }
    assert_eq!(computer.snapshot(), snapshot);
}

#[test]
fn random_bytes_and_callers_that_vanish_do_no_harm() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let watch = BackgroundProcess::watch(&computer);
    let snapshot = computer.snapshot();
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    for length in 0..200 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 56) as u8
            })
            .collect();
        if let Some(answer) = say(&computer, &bytes) {
            assert_eq!(answer["failure"]["code"], "bad_request", "{answer}");
        }
    }
    // A length that promises more than comes.
    assert_eq!(say(&computer, &frame(b"{\"version\":1}")[..7]), None);
    assert_eq!(say(&computer, &1_000_000u32.to_le_bytes()), None);
    for _ in 0..50 {
        drop(knock(&computer));
    }
    assert_eq!(computer.snapshot(), snapshot);
    assert!(watch.peak_memory() < 200_000, "{} kB", watch.peak_memory());
}

#[test]
fn a_body_that_ends_too_soon_writes_nothing() {
    let computer = TestComputer::over(&[("a", "1\n")]);
    let _watch = BackgroundProcess::watch(&computer);
    let snapshot = computer.snapshot();
    let asked = json!({ "write": { "path": "a", "mode": null, "base": "any" } });
    let whole = envelope(json!({ "version": 1, "command": COMMAND, "op": OP, "request": asked }));
    let head = &whole[..whole.len() - 4];
    let chunk = frame(b"half of it");
    for body in [&chunk[..], &chunk[..8], &chunk[..2], &[], &u32::MAX.to_le_bytes()] {
        let answer = say(&computer, &[head, body].concat()).unwrap();
        assert!(answer["failure"]["message"].is_string(), "{answer}");
        assert_eq!(computer.snapshot(), snapshot);
    }
    let large = frame(&vec![b'x'; 1024 * 1024]);
    let answer = say(&computer, &[head, &large, &large, &chunk[..9]].concat()).unwrap();
    assert!(answer["failure"].is_object(), "{answer}");
    assert_eq!(computer.snapshot(), snapshot);
    eventually("no draft is left behind", || {
        std::fs::read_dir(computer.state("tmp")).unwrap().next().is_none()
    });
}

#[test]
fn a_resend_is_answered_and_not_done_twice() {
    let computer = TestComputer::new();
    let watch = BackgroundProcess::watch(&computer);
    let asked = json!({ "write": { "path": "a", "mode": null, "base": "any" } });
    let whole = envelope(json!({ "version": 1, "command": COMMAND, "op": OP, "request": asked }));
    let sent = [&whole[..whole.len() - 4], &frame(b"once\n"), &frame(b"")].concat();
    let first = say(&computer, &sent).unwrap();
    assert_eq!((&first["done"]["resent"], &first["done"]["first"]), (&false.into(), &2.into()), "{first}");
    computer.write("a", "since then\n");
    let again = say(&computer, &sent).unwrap();
    assert_eq!((&again["done"]["resent"], &again["done"]["first"]), (&true.into(), &2.into()), "{again}");
    assert_eq!(computer.read("a"), "since then\n");
    assert_eq!(computer.head(), 3);
    // Even a holder that started since then remembers.
    drop(watch);
    let _watch = BackgroundProcess::watch(&computer);
    assert_eq!(say(&computer, &sent).unwrap()["done"]["resent"], true);
    assert_eq!(computer.head(), 3);
}

/// What is newest to undo or redo is something else by then, and may be nothing.
#[test]
fn a_resend_of_a_bare_undo_or_redo_is_the_same_one() {
    let computer = TestComputer::new();
    let _watch = BackgroundProcess::watch(&computer);
    computer.write("a", "1\n");
    for (kind, command) in [("undo", COMMAND), ("redo", "0193b3c4-0000-7000-8000-000000000003")] {
        let op = command.replace("8000", "9000");
        let request = json!({ kind: { "target": null, "choices": {}, "preview": false } });
        let sent = envelope(json!({ "version": 1, "command": command, "op": op, "request": request }));
        let first = say(&computer, &sent).unwrap();
        assert_eq!(first["done"]["resent"], false, "{first}");
        let head = computer.head();
        let again = say(&computer, &sent).unwrap();
        assert_eq!(again["done"]["resent"], true, "{again}");
        assert_eq!(again["done"]["target"], first["done"]["target"]);
        assert_eq!(computer.head(), head);
    }
    assert_eq!(computer.read("a"), "1\n");
}
