//! Large input: thousands of files are one event, and a huge file is written with little memory.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use crate::process::{BackgroundProcess, peak_memory};
use crate::test_computer::{CommandOutput, TestComputer};

const MEGABYTE: usize = 1024 * 1024;
const GIGANTIC: usize = 80 * MEGABYTE;

#[test]
fn five_thousand_files_are_one_event_and_their_deletion_one_undo() {
    let computer = TestComputer::bare();
    for folder in 0..50 {
        fs::create_dir_all(computer.path(&format!("tree/d{folder}"))).unwrap();
        for file in 0..100 {
            fs::write(computer.path(&format!("tree/d{folder}/f{file}")), format!("{folder} {file}\n"))
                .unwrap();
        }
    }
    let computer = computer.set_up();
    let types = |computer: &TestComputer| {
        computer.events().iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types(&computer), ["user.create", "file.batch"]);
    assert_eq!(computer.events()[1]["payload"]["count"], 5000);
    let files = computer.files();

    fs::remove_dir_all(computer.path("tree")).unwrap();
    let status = computer.status();
    assert_eq!((&status["captured"], &status["files"]), (&5000.into(), &0.into()));
    assert_eq!(types(&computer)[2..], ["file.batch"]);
    assert_eq!(computer.json(&["undo"])["total"], 5000);
    assert_eq!(computer.files(), files);

    assert_eq!(computer.ok(&["log", "--path", "tree/d7/f7", "--json"]).json_lines().len(), 3);
    computer.assert_intact();
}

/// Feeds a huge file to `choir write` in pieces, and returns the peak memory in kilobytes.
fn write_gigantic(computer: &TestComputer, path: &str) -> u64 {
    let mut command = computer.command(&["write", path]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut chunk = vec![b'x'; MEGABYTE];
    for index in 0..GIGANTIC / MEGABYTE {
        chunk[0] = u8::try_from(index).unwrap();
        input.write_all(&chunk).unwrap();
    }
    let peak = peak_memory(child.id());
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    peak
}

#[test]
fn a_gigantic_input_passes_through_in_little_memory() {
    let computer = TestComputer::new();
    let peak = write_gigantic(&computer, "alone");
    assert!(peak < 200_000, "{peak} kB");
    let watch = BackgroundProcess::watch(&computer);
    let peak = write_gigantic(&computer, "held");
    assert!(peak < 200_000, "the caller took {peak} kB");
    computer.ok(&["mv", "held", "moved"]);
    fs::remove_file(computer.path("moved")).unwrap();
    assert_eq!(watch.next()["captured"], 1);
    computer.ok(&["undo"]);
    assert!(watch.peak_memory() < 200_000, "the holder took {} kB", watch.peak_memory());
    for path in ["alone", "moved"] {
        assert_eq!(fs::metadata(computer.path(path)).unwrap().len(), GIGANTIC as u64);
    }
    computer.ok(&["show", "@2"]).says("80.0 MiB");
    let mut cat = computer.command(&["cat", "alone"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut bytes = 0;
    let mut out = cat.stdout.take().unwrap();
    let mut buffer = vec![0; MEGABYTE];
    loop {
        match out.read(&mut buffer).unwrap() {
            0 => break,
            count => bytes += count,
        }
    }
    assert!(cat.wait().unwrap().success());
    assert_eq!(bytes, GIGANTIC);
    computer.assert_intact();
}

#[test]
fn a_long_message_and_a_long_line_are_bounded() {
    let computer = TestComputer::new();
    let snapshot = computer.snapshot();
    let ran = computer.run(&["checkpoint", "-m", &"m".repeat(100_000)]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(computer.snapshot(), snapshot);
    computer.feed(&["write", "line"], &vec![b'x'; 3 * MEGABYTE]).exits(0);
    computer.feed(&["write", "line"], &vec![b'y'; 3 * MEGABYTE]).exits(0);
    let shown = computer.ok(&["undo", "--preview"]);
    assert!(shown.out.len() < 10_000, "{} bytes of preview", shown.out.len());
    let search = CommandOutput::of(&mut computer.command(&["search", &"w".repeat(100_000)]));
    assert_eq!(search.code, 0, "{search:?}");
}
