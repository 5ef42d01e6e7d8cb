//! Much at once: thousands of files are one event, and a gigantic input passes through in little memory.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use crate::home::{Home, Ran};
use crate::process::{Beside, peak_memory};

const MEGABYTE: usize = 1024 * 1024;
const GIGANTIC: usize = 80 * MEGABYTE;

#[test]
fn five_thousand_files_are_one_event_and_their_deletion_one_undo() {
    let home = Home::bare();
    for folder in 0..50 {
        fs::create_dir_all(home.path(&format!("tree/d{folder}"))).unwrap();
        for file in 0..100 {
            fs::write(home.path(&format!("tree/d{folder}/f{file}")), format!("{folder} {file}\n")).unwrap();
        }
    }
    let home = home.set_up();
    let types = |home: &Home| {
        home.events().iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types(&home), ["user.create", "file.batch"]);
    assert_eq!(home.events()[1]["payload"]["count"], 5000);
    let files = home.files();

    fs::remove_dir_all(home.path("tree")).unwrap();
    let status = home.status();
    assert_eq!((&status["captured"], &status["files"]), (&5000.into(), &0.into()));
    assert_eq!(types(&home)[2..], ["file.batch"]);
    assert_eq!(home.json(&["undo"])["total"], 5000);
    assert_eq!(home.files(), files);

    assert_eq!(home.ok(&["log", "--path", "tree/d7/f7", "--json"]).json_lines().len(), 3);
    home.assert_intact();
}

/// Feeds a gigantic file to `choir write` piece by piece, and says how much memory that took at most, in kilobytes.
fn write_gigantic(home: &Home, path: &str) -> u64 {
    let mut command = home.command(&["write", path]);
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
    let home = Home::new();
    let peak = write_gigantic(&home, "alone");
    assert!(peak < 200_000, "{peak} kB");
    let watch = Beside::watch(&home);
    let peak = write_gigantic(&home, "held");
    assert!(peak < 200_000, "the caller took {peak} kB");
    home.ok(&["mv", "held", "moved"]);
    fs::remove_file(home.path("moved")).unwrap();
    assert_eq!(watch.next()["captured"], 1);
    home.ok(&["undo"]);
    assert!(watch.peak_memory() < 200_000, "the holder took {} kB", watch.peak_memory());
    for path in ["alone", "moved"] {
        assert_eq!(fs::metadata(home.path(path)).unwrap().len(), GIGANTIC as u64);
    }
    home.ok(&["show", "@2"]).says("80.0 MiB");
    let mut cat = home.command(&["cat", "alone"]).stdout(Stdio::piped()).spawn().unwrap();
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
    home.assert_intact();
}

#[test]
fn a_long_message_and_a_long_line_are_bounded() {
    let home = Home::new();
    let standing = home.standing();
    let ran = home.run(&["checkpoint", "-m", &"m".repeat(100_000)]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(home.standing(), standing);
    home.feed(&["write", "line"], &vec![b'x'; 3 * MEGABYTE]).exits(0);
    home.feed(&["write", "line"], &vec![b'y'; 3 * MEGABYTE]).exits(0);
    let shown = home.ok(&["undo", "--preview"]);
    assert!(shown.out.len() < 10_000, "{} bytes of preview", shown.out.len());
    let search = Ran::of(&mut home.command(&["search", &"w".repeat(100_000)]));
    assert_eq!(search.code, 0, "{search:?}");
}
