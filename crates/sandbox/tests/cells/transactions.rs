//! A command is one operation, or nothing.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use computer::error::ErrorCode;
use computer::protocol::{Answer, Envelope, Request};
use shared_types::payload::tool::{StopReason, ToolStatus};
use shared_types::wire::{CellCommand, CommandLimits};

use crate::test_computer::{TestComputer, shell};

#[test]
fn what_a_command_changes_is_one_operation_that_can_be_undone_and_redone() {
    let computer = TestComputer::new();
    computer.write("src/a.rs", "a\n");
    computer.write("src/b.rs", "b\n");
    computer.write("keep.txt", "k\n");
    let before = computer.tree();
    let ran = computer.sh(
        "echo hello; rm -rf src; mkdir -p new/empty; echo n > new/file; echo more >> keep.txt; chmod 755 keep.txt; \
         ln -s keep.txt link",
    );
    assert_eq!(computer.output(&ran), "hello\n");
    assert!(!computer.has("src") && computer.has("new/empty"));
    assert_eq!((computer.read("new/file").as_str(), computer.read("link").as_str()), ("n\n", "k\nmore\n"));
    computer.assert_settled();
    let after = computer.tree();

    computer.undo(ran.op);
    assert_eq!(computer.tree(), before);
    assert_eq!((computer.read("src/a.rs").as_str(), computer.read("keep.txt").as_str()), ("a\n", "k\n"));
    assert!(!computer.has("new") && !computer.has("link"));
    computer.assert_settled();
    computer.redo(ran.op);
    assert_eq!(computer.tree(), after);
    computer.assert_settled();
}

#[test]
fn a_moved_folder_is_recorded_as_moves() {
    let computer = TestComputer::new();
    for name in ["one", "two", "three"] {
        computer.write(&format!("old/{name}.txt"), &format!("the text of {name}\n"));
    }
    let ran = computer.sh("mv old new && sed -i s/two/TWO/ new/two.txt");
    assert_eq!(
        ran.done.changes.iter().filter(|change| change.from.is_some()).count(),
        2,
        "{:?}",
        ran.done.changes
    );
    assert_eq!(computer.read("new/two.txt"), "the text of TWO\n");
    assert!(!computer.has("old"));
    computer.assert_settled();
    computer.undo(ran.op);
    assert_eq!(computer.read("old/two.txt"), "the text of two\n");
    computer.assert_settled();
}

#[test]
fn a_command_that_fails_keeps_what_it_did_and_one_that_is_killed_does_not() {
    let computer = TestComputer::new();
    computer.write("a.txt", "a\n");
    let ran = computer.run(shell("echo b > b.txt; exit 3")).unwrap();
    assert_eq!(ran.status, Some(ToolStatus::Exited { code: 3 }));
    assert_eq!(computer.read("b.txt"), "b\n");

    let before = computer.tree();
    let ran = computer.run(shell("rm -rf *; kill -9 $$")).unwrap();
    assert_eq!(ran.status, Some(ToolStatus::Killed { signal: 9 }));
    assert_eq!(computer.tree(), before);
    assert_eq!(computer.read("a.txt"), "a\n");

    let limits = CommandLimits { seconds: Some(1), ..CommandLimits::default() };
    let ran = computer.run(CellCommand { limits, ..shell("rm -rf *; sleep 60") }).unwrap();
    assert_eq!(ran.status, Some(ToolStatus::Stopped { why: StopReason::Time }));
    assert_eq!(ran.report.limits, [StopReason::Time]);
    assert_eq!(computer.tree(), before);
    computer.assert_settled();
}

#[test]
fn memory_and_processes_have_an_end() {
    let computer = TestComputer::new();
    let limits = CommandLimits { memory: Some(64 << 20), ..CommandLimits::default() };
    let hog = "perl -e '$x = \"x\" x (256 << 20); print length $x'";
    let ran = computer.run(CellCommand { limits, ..shell(&format!("exec {hog}")) }).unwrap();
    // Without control groups the limit is one of single processes, and the program itself gives up.
    let ended = matches!(ran.status, Some(ToolStatus::Stopped { why: StopReason::Memory }));
    assert!(ended || computer.output(&ran).contains("emory"), "{ran:?}");

    let limits = CommandLimits { processes: Some(16), ..CommandLimits::default() };
    let ran = computer
        .run(CellCommand { limits, ..shell("for i in $(seq 100); do sleep 5 & done; echo tried") })
        .unwrap();
    assert!(computer.output(&ran).contains("ork"), "{}", computer.output(&ran));
    computer.assert_settled();
}

#[test]
fn a_dry_run_shows_its_diff_and_keeps_nothing_until_it_is_accepted() {
    let mut computer = TestComputer::new();
    computer.write("a.txt", "one\ntwo\n");
    let before = computer.tree();
    let dry = CellCommand { dry: true, ..shell("echo three >> a.txt; echo new > b.txt; exit 2") };
    let held = computer.run(dry.clone()).unwrap();
    assert_eq!((held.status, held.code), (None, Some(2)));
    assert_eq!(held.done.total, 2);
    assert!(held.done.changes[0].diff.as_ref().unwrap().contains("+three"), "{:?}", held.done.changes);
    assert_eq!((computer.tree(), computer.has("b.txt")), (before.clone(), false));

    // It waits through a restart, and spares what was changed meanwhile.
    computer.reopen();
    computer.write("a.txt", "zero\none\ntwo\n");
    let Answer::CommandResult(ran) = computer.ask(Request::Accept { call: held.op.to_string() }, &[]) else {
        panic!()
    };
    assert_eq!(ran.status, Some(ToolStatus::Exited { code: 2 }));
    assert_eq!(computer.read("a.txt"), "zero\none\ntwo\nthree\n");
    assert_eq!(computer.read("b.txt"), "new\n");
    computer.assert_settled();
    let Answer::Failure(again) = computer.ask(Request::Accept { call: held.op.to_string() }, &[]) else {
        panic!()
    };
    assert_eq!(again.code, ErrorCode::NotFound);

    let held = computer.run(dry).unwrap();
    let Answer::CommandResult(ran) = computer.ask(Request::Discard { call: held.op.to_string() }, &[]) else {
        panic!()
    };
    assert_eq!(ran.status, Some(ToolStatus::Discarded));
    assert_eq!(computer.read("a.txt"), "zero\none\ntwo\nthree\n");
    computer.assert_settled();
}

#[test]
fn an_edit_made_meanwhile_is_merged_or_kept_beside() {
    let computer = TestComputer::new();
    computer.write("text.md", "one\ntwo\nthree\n");
    computer.write("clash.md", "old\n");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            computer.sh("sed -i s/three/THREE/ text.md; echo command > clash.md; touch started; \
                 i=0; while [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done")
        });
        // The command's own file says when it has read the others; its layer can be looked at.
        let cells = computer.path(".choir/cells");
        let has_started = || {
            let mut layers = std::fs::read_dir(&cells).into_iter().flatten().flatten();
            layers.any(|layer| layer.path().join("upper/started").exists())
        };
        while !has_started() && !running.is_finished() {
            std::thread::yield_now();
        }
        computer.write("text.md", "ONE\ntwo\nthree\n");
        computer.write("clash.md", "person\n");
        let ran = running.join().unwrap();
        assert!(ran.report.notes.iter().any(|note| note.contains("clash")), "{:?}", ran.report.notes);
    });
    assert_eq!(computer.read("text.md"), "ONE\ntwo\nTHREE\n");
    assert_eq!(computer.read("clash.md"), "person\n");
    let beside: Vec<_> = std::fs::read_dir(computer.folder.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.starts_with("clash.conflict"))
        .collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
    assert_eq!(computer.read(&beside[0]), "command\n");
    computer.assert_settled();
}

#[test]
fn an_outside_edit_before_the_command_is_no_conflict_with_it() {
    let computer = TestComputer::new();
    computer.write("data.bin", "\0old");
    std::fs::write(computer.path("data.bin"), "\0outside").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    let ran = computer.sh("printf '%s' more >> data.bin");
    assert_eq!(ran.report.notes, Vec::<Box<str>>::new());
    assert_eq!(computer.read("data.bin"), "\0outsidemore");
    computer.assert_settled();
    computer.undo(ran.op);
    assert_eq!(computer.read("data.bin"), "\0outside");
}

#[test]
fn a_file_made_since_a_dry_run_is_not_taken_away_with_its_folder() {
    let computer = TestComputer::new();
    computer.write(".gitignore", "*.log\n");
    computer.write("src/a.rs", "a\n");
    std::fs::write(computer.path("src/run.log"), "l\n").unwrap();
    let held = computer.run(CellCommand { dry: true, ..shell("rm -rf src") }).unwrap();
    computer.write("src/new.rs", "new\n");
    std::fs::write(computer.path("src/unheard.rs"), "u\n").unwrap();
    computer.ask(Request::Accept { call: held.op.to_string() }, &[]).into_done().unwrap();
    assert!(!computer.has("src/a.rs") && !computer.has("src/run.log"));
    assert_eq!(
        (computer.read("src/new.rs").as_str(), computer.read("src/unheard.rs").as_str()),
        ("new\n", "u\n")
    );
}

#[test]
fn what_goes_on_writing_after_a_command_does_not_hold_it_up() {
    let computer = TestComputer::new();
    let ran = computer.sh("echo kept > kept.txt; yes & exit 0");
    assert_eq!(ran.status, Some(ToolStatus::Exited { code: 0 }));
    assert!(computer.has("kept.txt"));
    computer.assert_settled();
}

#[test]
fn the_newest_operation_is_the_command_even_after_outside_edits() {
    let computer = TestComputer::new();
    std::fs::write(computer.path("outside.txt"), "outside\n").unwrap();
    computer.sh("echo command > command.txt");
    let undo = Request::Undo { target: None, choices: Default::default(), preview: false };
    computer.ask(undo, &[]).into_done().unwrap();
    assert!(computer.has("outside.txt") && !computer.has("command.txt"));
}

#[test]
fn two_commands_at_once_do_not_see_each_other() {
    let computer = TestComputer::new();
    computer.write("shared.txt", "s\n");
    // Each waits for the other to start, so neither can end before both run.
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
        let answer = computer.inner().handle_with_output(
            &command,
            &mut std::io::empty(),
            &|_, _, _| (),
            &mut listener,
        );
        let Answer::CommandResult(ran) = answer else { panic!("{answer:?}") };
        computer.output(&ran)
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(|| run("echo one > one.txt; echo begun; ls"));
        let two = scope.spawn(|| run("echo two > two.txt; echo begun; ls"));
        assert_eq!(one.join().unwrap(), "begun\none.txt\nshared.txt\n");
        assert_eq!(two.join().unwrap(), "begun\nshared.txt\ntwo.txt\n");
    });
    assert!(computer.has("one.txt") && computer.has("two.txt"));
    computer.assert_settled();
}

#[test]
fn the_computers_own_folder_is_not_there_and_cannot_be_made() {
    let computer = TestComputer::new();
    let ran = computer.sh("ls -A; mkdir .choir && echo mine > .choir/state.sqlite; true");
    assert_eq!(computer.output(&ran), "");
    assert!(ran.report.notes.iter().any(|note| note.contains("reserved")), "{:?}", ran.report.notes);
    computer.assert_settled();
}

#[test]
fn what_the_log_cannot_hold_is_left_out_and_said() {
    let computer = TestComputer::new();
    let ran = computer
        .sh("mkfifo pipe; ln -s /etc/passwd out; printf x > \"$(printf 'bad\\377')\"; echo fine > fine");
    let notes = ran.report.notes.join("\n");
    assert!(notes.contains("pipe") && notes.contains("out") && notes.contains("bad"), "{notes}");
    assert!(computer.has("fine") && !computer.has("pipe") && !computer.has("out"));
    computer.assert_settled();
}

#[test]
fn a_program_that_is_not_there_is_a_recorded_failure() {
    let computer = TestComputer::new();
    let failure =
        computer.run(CellCommand { argv: vec!["no-such".into()], ..CellCommand::default() }).unwrap_err();
    assert!(failure.message.contains("no-such"), "{failure}");
    computer.assert_settled();
    let failure = computer.run(CellCommand::default()).unwrap_err();
    assert_eq!(failure.code, ErrorCode::BadRequest);
}

#[test]
fn a_resent_command_is_not_run_again() {
    let computer = TestComputer::new();
    let envelope = computer::protocol::Envelope::new(Request::RunCommand(shell("echo x >> file")));
    for _ in 0..2 {
        let answer = computer.inner().handle(&envelope, &mut std::io::empty(), &|_, _, _| ());
        let Answer::CommandResult(ran) = answer else { panic!("{answer:?}") };
        assert_eq!(ran.status, Some(ToolStatus::Exited { code: 0 }));
    }
    assert_eq!(computer.read("file"), "x\n");
}
