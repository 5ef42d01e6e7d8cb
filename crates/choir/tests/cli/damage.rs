//! Damage: a flipped byte is reported and events before it stay readable; derived data is rebuilt.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use rusqlite::Connection;

use crate::process::BackgroundProcess;
use crate::test_computer::TestComputer;

fn with_log(computer: &TestComputer, work: impl FnOnce(&Connection)) {
    let conn = Connection::open(computer.state("state.sqlite")).unwrap();
    work(&conn);
    conn.close().unwrap();
}

/// Changes one byte of a stored payload.
fn flip(computer: &TestComputer, seq: i64) {
    with_log(computer, |conn| {
        let payload: String =
            conn.query_row("SELECT payload FROM events WHERE seq = ?1", [seq], |row| row.get(0)).unwrap();
        let flipped = payload.replacen("f", "g", 1);
        assert_ne!(flipped, payload);
        conn.execute("UPDATE events SET payload = ?1 WHERE seq = ?2", (flipped, seq)).unwrap();
    });
}

fn ten_writes() -> TestComputer {
    let computer = TestComputer::new();
    for index in 2..=10 {
        computer.write(&format!("f{index}"), &format!("{index}\n"));
    }
    computer
}

#[test]
fn a_flipped_byte_is_named_and_everything_before_it_is_readable() {
    let computer = ten_writes();
    flip(&computer, 7);
    let files = computer.files();
    for args in [&["log"][..], &["log", "--json"], &["log", "--all"], &["log", "--path", "f3"]] {
        let ran = computer.run(args).exits(6).says("event 7");
        let expected = if args.contains(&"--path") { 1 } else { 6 };
        let shown = ran.out.lines().filter(|line| !line.contains("\"error\"")).count();
        assert_eq!(shown, expected, "{ran:?}");
    }
    computer.run(&["verify"]).exits(6).says("event 7");
    assert_eq!(computer.run(&["verify", "--json"]).exits(6).json_lines()[0]["ok"], false);
    computer.ok(&["show", "@3"]).says("f3");
    computer.run(&["show", "@7"]).exits(6).says("event 7");
    for args in
        [&["write", "f3"][..], &["rm", "f2"], &["undo"], &["status"], &["watch"], &["replay"], &["cat", "f9"]]
    {
        computer.feed(args, b"x").exits(6).says("event 7");
    }
    assert_eq!(computer.files(), files);
    with_log(&computer, |conn| {
        let count: i64 = conn.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 10);
    });
}

#[test]
fn a_missing_a_swapped_and_a_broken_last_event_are_named() {
    for (sql, seq) in [
        ("DELETE FROM events WHERE seq = 5", 5),
        ("UPDATE events SET ts = ts + 1 WHERE seq = 4", 4),
        ("UPDATE events SET hash = zeroblob(32) WHERE seq = 10", 10),
        ("UPDATE events SET hash = x'00' WHERE seq = 6", 6),
        ("UPDATE events SET source = 'agent' WHERE seq = 3", 3),
    ] {
        let computer = ten_writes();
        with_log(&computer, |conn| assert_eq!(conn.execute(sql, []).unwrap(), 1));
        let ran = computer.run(&["log", "--json"]).exits(6).says(&format!("event {seq}"));
        assert_eq!(ran.json_lines().len() as u64, seq, "{sql}: all before it, and the error");
        computer.run(&["verify"]).exits(6).says(&format!("event {seq}"));
        computer.feed(&["write", "x"], b"x").exits(6);
        assert!(!computer.has("x"), "{sql}");
    }
}

#[test]
fn a_log_that_is_no_database_is_said_to_be_damaged() {
    let computer = ten_writes();
    let intact = fs::read(computer.state("state.sqlite")).unwrap();
    fs::write(computer.state("state.sqlite"), vec![0x55; intact.len()]).unwrap();
    for args in [&["log"][..], &["status"], &["verify"], &["write", "x"]] {
        computer.feed(args, b"x").exits(6).says("damaged");
    }
    assert_eq!(computer.files().len(), 9, "the files are still the person's");
}

#[test]
fn damaged_contents_are_named_and_not_handed_out() {
    let computer = TestComputer::new();
    computer.write("small", "small\n");
    computer.write("large", &"large\n".repeat(20_000));
    with_log(&computer, |conn| {
        conn.execute("UPDATE contents SET bytes = CAST(replace(bytes, 's', 'S') AS BLOB)", []).unwrap();
    });
    computer.run(&["cat", "small"]).exits(6).says("damaged");
    computer.run(&["verify"]).exits(6).says("small");
    let blobs: Vec<_> = fs::read_dir(computer.state("blobs"))
        .unwrap()
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(blobs.len(), 1);
    OpenOptions::new().write(true).open(&blobs[0]).unwrap().write_all_at(b"X", 60_000).unwrap();
    computer.run(&["cat", "large"]).exits(6).says("damaged");
    assert_eq!(computer.read("large").len(), 120_000, "the file itself is untouched");
}

#[test]
fn read_models_are_rebuilt_after_any_damage() {
    let computer = ten_writes();
    let files = computer.files();
    let views = computer.state("views.sqlite");
    let remove = || {
        for name in ["views.sqlite", "views.sqlite-wal", "views.sqlite-shm"] {
            let _ = fs::remove_file(computer.state(name));
        }
    };
    let harm: [(&str, &dyn Fn()); 5] = [
        ("deleted", &remove),
        ("emptied", &|| fs::write(&views, "").unwrap()),
        ("overwritten", &|| fs::write(&views, vec![0xaa; 50_000]).unwrap()),
        ("cut short", &|| OpenOptions::new().write(true).open(&views).unwrap().set_len(9000).unwrap()),
        ("of another format", &|| {
            Connection::open(&views).unwrap().execute_batch("PRAGMA user_version = 77").unwrap();
        }),
    ];
    for (what, act) in harm {
        act();
        computer.edit("while it was gone", what);
        assert_eq!(computer.status()["captured"], 1, "{what}");
        assert_eq!(computer.files().len(), files.len() + 1, "{what}");
        computer.ok(&["search", "gone"]).says("while it was gone");
        computer.ok(&["undo"]);
        assert_eq!(computer.files(), files, "{what}");
        computer.assert_intact();
    }
}

#[test]
fn damage_inside_the_read_models_heals_or_is_rebuilt() {
    let computer = ten_writes();
    let files = computer.files();
    let size = fs::metadata(computer.state("views.sqlite")).unwrap().len();
    for page in 1..size / 4096 {
        let views = OpenOptions::new().write(true).open(computer.state("views.sqlite")).unwrap();
        views.write_all_at(&[0xcc; 4096], page * 4096).unwrap();
        drop(views);
        // A command that reads damaged derived data rebuilds it; verify finds the rest.
        computer.ok(&["status"]);
        if computer.run(&["verify"]).code != 0 {
            computer.ok(&["doctor", "--rebuild"]);
        }
        assert_eq!(computer.files(), files, "page {page}");
        computer.ok(&["verify"]);
    }
    computer.assert_intact();
}

#[test]
fn a_write_ahead_log_that_was_cut_opens_to_a_consistent_prefix() {
    for cut in [1, 1000, 4096 + 24, 30_000, 60_000] {
        let computer = TestComputer::new();
        let mut watch = BackgroundProcess::watch(&computer);
        for index in 2..=10 {
            computer.write(&format!("f{index}"), &format!("{index}\n"));
        }
        let files = computer.files();
        watch.kill();
        let wal = OpenOptions::new().write(true).open(computer.state("state.sqlite-wal")).unwrap();
        let length = wal.metadata().unwrap().len();
        assert!(length > cut, "{length}");
        wal.set_len(length - cut).unwrap();
        drop(wal);
        // What the log lost is still on disk, and comes back as edits.
        let status = computer.status();
        assert_eq!(status["files"], 9, "{status}");
        assert_eq!(computer.files(), files, "cut by {cut}");
        computer.assert_intact();
        computer.write("after", "x");
        computer.assert_intact();
    }
}

#[test]
fn a_file_deleted_while_no_process_watched_is_recorded_as_deleted() {
    let computer = ten_writes();
    fs::remove_file(computer.path("f5")).unwrap();
    computer.assert_intact();
    let last = computer.events().pop().unwrap();
    assert_eq!((&last["type"], &last["payload"]["path"]), (&"file.delete".into(), &"f5".into()));
    computer.ok(&["undo"]);
    assert_eq!(computer.read("f5"), "5\n");
}
