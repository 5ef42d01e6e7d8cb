//! Damage: a flipped byte is named and refused with everything before it readable; what is disposable is made anew.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use rusqlite::Connection;

use crate::home::Home;
use crate::process::Beside;

fn with_log(home: &Home, work: impl FnOnce(&Connection)) {
    let conn = Connection::open(home.state("state.sqlite")).unwrap();
    work(&conn);
    conn.close().unwrap();
}

/// Changes one byte of a stored payload.
fn flip(home: &Home, seq: i64) {
    with_log(home, |conn| {
        let payload: String =
            conn.query_row("SELECT payload FROM events WHERE seq = ?1", [seq], |row| row.get(0)).unwrap();
        let flipped = payload.replacen("f", "g", 1);
        assert_ne!(flipped, payload);
        conn.execute("UPDATE events SET payload = ?1 WHERE seq = ?2", (flipped, seq)).unwrap();
    });
}

fn ten_writes() -> Home {
    let home = Home::new();
    for index in 2..=10 {
        home.write(&format!("f{index}"), &format!("{index}\n"));
    }
    home
}

#[test]
fn a_flipped_byte_is_named_and_everything_before_it_is_readable() {
    let home = ten_writes();
    flip(&home, 7);
    let files = home.files();
    for args in [&["log"][..], &["log", "--json"], &["log", "--all"], &["log", "--path", "f3"]] {
        let ran = home.run(args).exits(6).says("event 7");
        let expected = if args.contains(&"--path") { 1 } else { 6 };
        let shown = ran.out.lines().filter(|line| !line.contains("\"error\"")).count();
        assert_eq!(shown, expected, "{ran:?}");
    }
    home.run(&["verify"]).exits(6).says("event 7");
    assert_eq!(home.run(&["verify", "--json"]).exits(6).json_lines()[0]["ok"], false);
    home.ok(&["show", "@3"]).says("f3");
    home.run(&["show", "@7"]).exits(6).says("event 7");
    for args in
        [&["write", "f3"][..], &["rm", "f2"], &["undo"], &["status"], &["watch"], &["replay"], &["cat", "f9"]]
    {
        home.feed(args, b"x").exits(6).says("event 7");
    }
    assert_eq!(home.files(), files);
    with_log(&home, |conn| {
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
        let home = ten_writes();
        with_log(&home, |conn| assert_eq!(conn.execute(sql, []).unwrap(), 1));
        let ran = home.run(&["log", "--json"]).exits(6).says(&format!("event {seq}"));
        assert_eq!(ran.json_lines().len() as u64, seq, "{sql}: all before it, and the error");
        home.run(&["verify"]).exits(6).says(&format!("event {seq}"));
        home.feed(&["write", "x"], b"x").exits(6);
        assert!(!home.has("x"), "{sql}");
    }
}

#[test]
fn a_log_that_is_no_database_is_said_to_be_damaged() {
    let home = ten_writes();
    let intact = fs::read(home.state("state.sqlite")).unwrap();
    fs::write(home.state("state.sqlite"), vec![0x55; intact.len()]).unwrap();
    for args in [&["log"][..], &["status"], &["verify"], &["write", "x"]] {
        home.feed(args, b"x").exits(6).says("damaged");
    }
    assert_eq!(home.files().len(), 9, "the files are still the person's");
}

#[test]
fn damaged_contents_are_named_and_not_handed_out() {
    let home = Home::new();
    home.write("small", "small\n");
    home.write("large", &"large\n".repeat(20_000));
    with_log(&home, |conn| {
        conn.execute("UPDATE contents SET bytes = CAST(replace(bytes, 's', 'S') AS BLOB)", []).unwrap();
    });
    home.run(&["cat", "small"]).exits(6).says("damaged");
    home.run(&["verify"]).exits(6).says("small");
    let blobs: Vec<_> = fs::read_dir(home.state("blobs"))
        .unwrap()
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(blobs.len(), 1);
    OpenOptions::new().write(true).open(&blobs[0]).unwrap().write_all_at(b"X", 60_000).unwrap();
    home.run(&["cat", "large"]).exits(6).says("damaged");
    assert_eq!(home.read("large").len(), 120_000, "the file itself is untouched");
}

#[test]
fn read_models_are_made_anew_whatever_happens_to_them() {
    let home = ten_writes();
    let files = home.files();
    let views = home.state("views.sqlite");
    let remove = || {
        for name in ["views.sqlite", "views.sqlite-wal", "views.sqlite-shm"] {
            let _ = fs::remove_file(home.state(name));
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
        home.edit("while it was gone", what);
        assert_eq!(home.status()["captured"], 1, "{what}");
        assert_eq!(home.files().len(), files.len() + 1, "{what}");
        home.ok(&["search", "gone"]).says("while it was gone");
        home.ok(&["undo"]);
        assert_eq!(home.files(), files, "{what}");
        home.assert_intact();
    }
}

#[test]
fn damage_inside_the_read_models_heals_or_is_rebuilt() {
    let home = ten_writes();
    let files = home.files();
    let size = fs::metadata(home.state("views.sqlite")).unwrap().len();
    for page in 1..size / 4096 {
        let views = OpenOptions::new().write(true).open(home.state("views.sqlite")).unwrap();
        views.write_all_at(&[0xcc; 4096], page * 4096).unwrap();
        drop(views);
        // Where a command meets the damage it heals it; where nothing reads it, verify finds it.
        home.ok(&["status"]);
        if home.run(&["verify"]).code != 0 {
            home.ok(&["doctor", "--rebuild"]);
        }
        assert_eq!(home.files(), files, "page {page}");
        home.ok(&["verify"]);
    }
    home.assert_intact();
}

#[test]
fn a_write_ahead_log_that_was_cut_opens_to_a_consistent_prefix() {
    for cut in [1, 1000, 4096 + 24, 30_000, 60_000] {
        let home = Home::new();
        let mut watch = Beside::watch(&home);
        for index in 2..=10 {
            home.write(&format!("f{index}"), &format!("{index}\n"));
        }
        let files = home.files();
        watch.kill();
        let wal = OpenOptions::new().write(true).open(home.state("state.sqlite-wal")).unwrap();
        let length = wal.metadata().unwrap().len();
        assert!(length > cut, "{length}");
        wal.set_len(length - cut).unwrap();
        drop(wal);
        // What the log lost is still on disk, and comes back as edits.
        let status = home.status();
        assert_eq!(status["files"], 9, "{status}");
        assert_eq!(home.files(), files, "cut by {cut}");
        home.assert_intact();
        home.write("after", "x");
        home.assert_intact();
    }
}

#[test]
fn a_file_deleted_while_nobody_looked_is_a_deletion() {
    let home = ten_writes();
    fs::remove_file(home.path("f5")).unwrap();
    home.assert_intact();
    let last = home.events().pop().unwrap();
    assert_eq!((&last["type"], &last["payload"]["path"]), (&"file.delete".into(), &"f5".into()));
    home.ok(&["undo"]);
    assert_eq!(home.read("f5"), "5\n");
}
