//! A command is one operation, or nothing.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use computer::error::ErrorCode;
use computer::protocol::{Answer, Envelope, Request};
use shared_types::payload::tool::{StopReason, ToolStatus};
use shared_types::wire::{CellCommand, CommandLimits};

use crate::house::{House, shell};

#[test]
fn what_a_command_changes_is_one_operation_that_can_be_undone_and_redone() {
    let house = House::new();
    house.write("src/a.rs", "a\n");
    house.write("src/b.rs", "b\n");
    house.write("keep.txt", "k\n");
    let before = house.tree();
    let ran = house.sh(
        "echo hello; rm -rf src; mkdir -p new/empty; echo n > new/file; echo more >> keep.txt; chmod 755 keep.txt; \
         ln -s keep.txt link",
    );
    assert_eq!(house.output(&ran), "hello\n");
    assert!(!house.has("src") && house.has("new/empty"));
    assert_eq!((house.read("new/file").as_str(), house.read("link").as_str()), ("n\n", "k\nmore\n"));
    house.assert_settled();
    let after = house.tree();

    house.undo(ran.op);
    assert_eq!(house.tree(), before);
    assert_eq!((house.read("src/a.rs").as_str(), house.read("keep.txt").as_str()), ("a\n", "k\n"));
    assert!(!house.has("new") && !house.has("link"));
    house.assert_settled();
    house.redo(ran.op);
    assert_eq!(house.tree(), after);
    house.assert_settled();
}

#[test]
fn a_moved_folder_is_recorded_as_moves() {
    let house = House::new();
    for name in ["one", "two", "three"] {
        house.write(&format!("old/{name}.txt"), &format!("the text of {name}\n"));
    }
    let ran = house.sh("mv old new && sed -i s/two/TWO/ new/two.txt");
    assert_eq!(
        ran.done.changes.iter().filter(|change| change.from.is_some()).count(),
        2,
        "{:?}",
        ran.done.changes
    );
    assert_eq!(house.read("new/two.txt"), "the text of TWO\n");
    assert!(!house.has("old"));
    house.assert_settled();
    house.undo(ran.op);
    assert_eq!(house.read("old/two.txt"), "the text of two\n");
    house.assert_settled();
}

#[test]
fn a_command_that_fails_keeps_what_it_did_and_one_that_is_killed_does_not() {
    let house = House::new();
    house.write("a.txt", "a\n");
    let ran = house.run(shell("echo b > b.txt; exit 3")).unwrap();
    assert_eq!(ran.status, Some(ToolStatus::Exited { code: 3 }));
    assert_eq!(house.read("b.txt"), "b\n");

    let before = house.tree();
    let ran = house.run(shell("rm -rf *; kill -9 $$")).unwrap();
    assert_eq!(ran.status, Some(ToolStatus::Killed { signal: 9 }));
    assert_eq!(house.tree(), before);
    assert_eq!(house.read("a.txt"), "a\n");

    let limits = CommandLimits { seconds: Some(1), ..CommandLimits::default() };
    let ran = house.run(CellCommand { limits, ..shell("rm -rf *; sleep 60") }).unwrap();
    assert_eq!(ran.status, Some(ToolStatus::Stopped { why: StopReason::Time }));
    assert_eq!(ran.report.limits, [StopReason::Time]);
    assert_eq!(house.tree(), before);
    house.assert_settled();
}

#[test]
fn memory_and_processes_have_an_end() {
    let house = House::new();
    let limits = CommandLimits { memory: Some(64 << 20), ..CommandLimits::default() };
    let hog = "perl -e '$x = \"x\" x (256 << 20); print length $x'";
    let ran = house.run(CellCommand { limits, ..shell(&format!("exec {hog}")) }).unwrap();
    // Without control groups the limit is one of single processes, and the program itself gives up.
    let ended = matches!(ran.status, Some(ToolStatus::Stopped { why: StopReason::Memory }));
    assert!(ended || house.output(&ran).contains("emory"), "{ran:?}");

    let limits = CommandLimits { processes: Some(16), ..CommandLimits::default() };
    let ran = house
        .run(CellCommand { limits, ..shell("for i in $(seq 100); do sleep 5 & done; echo tried") })
        .unwrap();
    assert!(house.output(&ran).contains("ork"), "{}", house.output(&ran));
    house.assert_settled();
}

#[test]
fn a_dry_run_shows_its_diff_and_keeps_nothing_until_it_is_accepted() {
    let mut house = House::new();
    house.write("a.txt", "one\ntwo\n");
    let before = house.tree();
    let dry = CellCommand { dry: true, ..shell("echo three >> a.txt; echo new > b.txt; exit 2") };
    let held = house.run(dry.clone()).unwrap();
    assert_eq!((held.status, held.code), (None, Some(2)));
    assert_eq!(held.done.total, 2);
    assert!(held.done.changes[0].diff.as_ref().unwrap().contains("+three"), "{:?}", held.done.changes);
    assert_eq!((house.tree(), house.has("b.txt")), (before.clone(), false));

    // It waits through a restart, and spares what was changed meanwhile.
    house.reopen();
    house.write("a.txt", "zero\none\ntwo\n");
    let Answer::CommandResult(ran) = house.ask(Request::Accept { call: held.op.to_string() }, &[]) else {
        panic!()
    };
    assert_eq!(ran.status, Some(ToolStatus::Exited { code: 2 }));
    assert_eq!(house.read("a.txt"), "zero\none\ntwo\nthree\n");
    assert_eq!(house.read("b.txt"), "new\n");
    house.assert_settled();
    let Answer::Failure(again) = house.ask(Request::Accept { call: held.op.to_string() }, &[]) else {
        panic!()
    };
    assert_eq!(again.code, ErrorCode::NotFound);

    let held = house.run(dry).unwrap();
    let Answer::CommandResult(ran) = house.ask(Request::Discard { call: held.op.to_string() }, &[]) else {
        panic!()
    };
    assert_eq!(ran.status, Some(ToolStatus::Discarded));
    assert_eq!(house.read("a.txt"), "zero\none\ntwo\nthree\n");
    house.assert_settled();
}

#[test]
fn an_edit_made_meanwhile_is_merged_or_kept_beside() {
    let house = House::new();
    house.write("text.md", "one\ntwo\nthree\n");
    house.write("clash.md", "old\n");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            house.sh("sed -i s/three/THREE/ text.md; echo command > clash.md; touch started; \
                 i=0; while [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done")
        });
        // The command's own file says when it has read the others; its layer can be looked at.
        let cells = house.path(".choir/cells");
        let has_started = || {
            let mut layers = std::fs::read_dir(&cells).into_iter().flatten().flatten();
            layers.any(|layer| layer.path().join("upper/started").exists())
        };
        while !has_started() && !running.is_finished() {
            std::thread::yield_now();
        }
        house.write("text.md", "ONE\ntwo\nthree\n");
        house.write("clash.md", "person\n");
        let ran = running.join().unwrap();
        assert!(ran.report.notes.iter().any(|note| note.contains("clash")), "{:?}", ran.report.notes);
    });
    assert_eq!(house.read("text.md"), "ONE\ntwo\nTHREE\n");
    assert_eq!(house.read("clash.md"), "person\n");
    let beside: Vec<_> = std::fs::read_dir(house.folder.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.starts_with("clash.conflict"))
        .collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
    assert_eq!(house.read(&beside[0]), "command\n");
    house.assert_settled();
}

#[test]
fn an_outside_edit_before_the_command_is_no_conflict_with_it() {
    let house = House::new();
    house.write("data.bin", "\0old");
    std::fs::write(house.path("data.bin"), "\0outside").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    let ran = house.sh("printf '%s' more >> data.bin");
    assert_eq!(ran.report.notes, Vec::<Box<str>>::new());
    assert_eq!(house.read("data.bin"), "\0outsidemore");
    house.assert_settled();
    house.undo(ran.op);
    assert_eq!(house.read("data.bin"), "\0outside");
}

#[test]
fn a_file_made_since_a_dry_run_is_not_taken_away_with_its_folder() {
    let house = House::new();
    house.write(".gitignore", "*.log\n");
    house.write("src/a.rs", "a\n");
    std::fs::write(house.path("src/run.log"), "l\n").unwrap();
    let held = house.run(CellCommand { dry: true, ..shell("rm -rf src") }).unwrap();
    house.write("src/new.rs", "new\n");
    std::fs::write(house.path("src/unheard.rs"), "u\n").unwrap();
    house.ask(Request::Accept { call: held.op.to_string() }, &[]).into_done().unwrap();
    assert!(!house.has("src/a.rs") && !house.has("src/run.log"));
    assert_eq!((house.read("src/new.rs").as_str(), house.read("src/unheard.rs").as_str()), ("new\n", "u\n"));
}

#[test]
fn what_goes_on_writing_after_a_command_does_not_hold_it_up() {
    let house = House::new();
    let ran = house.sh("echo kept > kept.txt; yes & exit 0");
    assert_eq!(ran.status, Some(ToolStatus::Exited { code: 0 }));
    assert!(house.has("kept.txt"));
    house.assert_settled();
}

#[test]
fn the_newest_operation_is_the_command_whatever_was_edited_before_it() {
    let house = House::new();
    std::fs::write(house.path("outside.txt"), "outside\n").unwrap();
    house.sh("echo command > command.txt");
    let undo = Request::Undo { target: None, choices: Default::default(), preview: false };
    house.ask(undo, &[]).into_done().unwrap();
    assert!(house.has("outside.txt") && !house.has("command.txt"));
}

#[test]
fn two_commands_at_once_do_not_see_each_other() {
    let house = House::new();
    house.write("shared.txt", "s\n");
    // Neither is over before both have begun: nobody listens on to one that has said the first word alone.
    let begun = (Mutex::new(0), Condvar::new());
    let run = |script| {
        let (mut is_first, patience) = (true, Duration::from_secs(60));
        let mut listener = |_, _: &[u8]| {
            if std::mem::take(&mut is_first) {
                *begun.0.lock().unwrap() += 1;
                begun.1.notify_all();
                drop(
                    begun
                        .1
                        .wait_timeout_while(begun.0.lock().unwrap(), patience, |count| *count < 2)
                        .unwrap(),
                );
            }
        };
        let command = Envelope::new(Request::RunCommand(shell(script)));
        let answer = house.computer().handle_with_output(
            &command,
            &mut std::io::empty(),
            &|_, _, _| (),
            &mut listener,
        );
        let Answer::CommandResult(ran) = answer else { panic!("{answer:?}") };
        house.output(&ran)
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(|| run("echo one > one.txt; echo begun; ls"));
        let two = scope.spawn(|| run("echo two > two.txt; echo begun; ls"));
        assert_eq!(one.join().unwrap(), "begun\none.txt\nshared.txt\n");
        assert_eq!(two.join().unwrap(), "begun\nshared.txt\ntwo.txt\n");
    });
    assert!(house.has("one.txt") && house.has("two.txt"));
    house.assert_settled();
}

#[test]
fn the_computers_own_folder_is_not_there_and_cannot_be_made() {
    let house = House::new();
    let ran = house.sh("ls -A; mkdir .choir && echo mine > .choir/state.sqlite; true");
    assert_eq!(house.output(&ran), "");
    assert!(ran.report.notes.iter().any(|note| note.contains("reserved")), "{:?}", ran.report.notes);
    house.assert_settled();
}

#[test]
fn what_the_log_cannot_hold_is_left_out_and_said() {
    let house = House::new();
    let ran =
        house.sh("mkfifo pipe; ln -s /etc/passwd out; printf x > \"$(printf 'bad\\377')\"; echo fine > fine");
    let notes = ran.report.notes.join("\n");
    assert!(notes.contains("pipe") && notes.contains("out") && notes.contains("bad"), "{notes}");
    assert!(house.has("fine") && !house.has("pipe") && !house.has("out"));
    house.assert_settled();
}

#[test]
fn a_program_that_is_not_there_is_a_recorded_failure() {
    let house = House::new();
    let failure =
        house.run(CellCommand { argv: vec!["no-such".into()], ..CellCommand::default() }).unwrap_err();
    assert!(failure.message.contains("no-such"), "{failure}");
    house.assert_settled();
    let failure = house.run(CellCommand::default()).unwrap_err();
    assert_eq!(failure.code, ErrorCode::BadRequest);
}

#[test]
fn a_resent_command_is_not_run_again() {
    let house = House::new();
    let envelope = computer::protocol::Envelope::new(Request::RunCommand(shell("echo x >> file")));
    for _ in 0..2 {
        let answer = house.computer().handle(&envelope, &mut std::io::empty(), &|_, _, _| ());
        let Answer::CommandResult(ran) = answer else { panic!("{answer:?}") };
        assert_eq!(ran.status, Some(ToolStatus::Exited { code: 0 }));
    }
    assert_eq!(house.read("file"), "x\n");
}
