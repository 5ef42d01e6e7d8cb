//! A stop between any two steps of a batch (after the intents, after each rename, after the sync, before the position
//! advances), with or without a power cut: the next opening reaches the same state.

use std::fs;

use rusqlite::Connection;
use shared_types::payload::file::FileNode;

use crate::computer::Computer;

/// A computer whose disk is one batch behind, with every kind of change in it.
fn behind() -> Computer {
    let computer = Computer::new();
    for path in
        ["kept", "edited", "deleted", "moved", "was_file", "was_folder/x", "was_folder/y/z", "deep/er/x"]
    {
        computer.write(path, format!("the old text of {path}\n"));
    }
    computer.place("was_link", FileNode::Symlink { target: "kept".into() });
    computer.settle();
    computer.write("edited", "the new text of a file that was edited\n".repeat(40));
    computer.delete("deleted");
    computer.rename("moved", "to/another/place");
    computer.delete("was_file");
    computer.write("was_file/is/a/folder", "below what was a file\n");
    computer.delete("was_folder");
    computer.write("was_folder", "a file where a folder was\n");
    computer.delete("deep");
    computer.delete("was_link");
    computer.write("was_link", "a file where a link was\n");
    computer.place("empty", FileNode::Folder);
    computer.write("large", "more than the log keeps in its own file\n".repeat(3000));
    computer
}

/// Paths with an open intent, as they are stored.
fn open_intents(computer: &Computer) -> Vec<String> {
    let conn = Connection::open(computer.state().join(projector::Views::FILE)).unwrap();
    let mut statement = conn.prepare("SELECT path FROM intents ORDER BY path").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Stops at every step in turn, does something, and starts again. Returns how many steps there were.
fn at_every_step(meanwhile: &dyn Fn(&mut Computer), check: &dyn Fn(&mut Computer)) -> usize {
    for step in 0.. {
        let mut computer = behind();
        if !computer.catch_up_until(step) {
            return step;
        }
        meanwhile(&mut computer);
        check(&mut computer);
    }
    unreachable!()
}

fn converges(computer: &mut Computer) {
    let (head, nodes) = (computer.head(), computer.nodes());
    computer.restart();
    computer.settle();
    computer.assert_faithful();
    assert_eq!(computer.head(), head, "its own writes were taken for edits");
    assert_eq!(computer.nodes(), nodes);
    assert_eq!(open_intents(computer), Vec::<String>::new());
    assert_eq!(fs::read_dir(computer.state().join("tmp")).unwrap().count(), 0, "drafts were left behind");
}

#[test]
fn any_step_may_be_the_last() {
    let steps = at_every_step(&|_| (), &converges);
    assert!(steps >= 14, "only {steps} steps");
}

#[test]
fn the_intents_are_there_before_the_first_write_and_gone_after_the_last() {
    let computer = behind();
    let before = computer.disk();
    assert!(computer.catch_up_until(0));
    assert_eq!(computer.disk(), before, "something was written before the first step");
    let intents = open_intents(&computer);
    assert!(intents.len() >= 12 && intents.contains(&"edited".into()), "{intents:?}");
    assert!(!intents.contains(&"kept".into()));
    assert!(computer.projector().lag().unwrap().events() > 0);
}

#[test]
fn the_catching_up_may_be_stopped_again_and_again() {
    let mut computer = behind();
    for step in 0..40 {
        if !computer.catch_up_until(step % 5) {
            break;
        }
        computer.restart();
    }
    converges(&mut computer);
}

#[test]
fn a_failed_batch_is_settled_in_the_same_process() {
    at_every_step(&|_| (), &|computer| {
        let head = computer.head();
        assert_eq!(computer.capture().op, None, "its own writes were taken for edits");
        // The log continues before the batch is retried.
        computer.write("edited", "another text since\n");
        computer.settle();
        computer.assert_faithful();
        assert_eq!(computer.head().0, head.0 + 1);
    });
}

#[test]
fn torn_files_are_projected_again() {
    let tears: [&dyn Fn(Vec<u8>) -> Vec<u8>; 4] = [
        &|bytes| bytes[..bytes.len() / 2].to_vec(),
        &|_| Vec::new(),
        &|bytes| vec![0; bytes.len()],
        &|mut bytes| {
            let half = bytes.len() / 2;
            bytes[..half].fill(0);
            bytes
        },
    ];
    for tear in tears {
        let meanwhile = |computer: &mut Computer| {
            let nodes = computer.nodes();
            for path in open_intents(computer) {
                let on_disk = computer.on_disk(&path);
                let is_new = computer.disk().get(&crate::computer::at(&path)).is_some_and(|node| {
                    node.content().is_some() && nodes.get(&crate::computer::at(&path)) == Some(node)
                });
                if is_new {
                    fs::write(&on_disk, tear(fs::read(&on_disk).unwrap())).unwrap();
                }
            }
        };
        at_every_step(&meanwhile, &converges);
    }
}

#[test]
fn a_whole_edit_at_the_place_of_an_intent_is_kept() {
    let edit = "another program wrote this after the stop\n";
    let meanwhile = |computer: &mut Computer| computer.edit("edited", edit);
    at_every_step(&meanwhile, &|computer| {
        computer.restart();
        computer.settle();
        computer.assert_faithful();
        assert_eq!(computer.read("edited").as_deref(), Some(edit), "the person's text keeps its path");
        let ours = "the new text of a file that was edited\n".repeat(40);
        let kept =
            computer.nodes().into_keys().any(|path| computer.logged(path.as_str()).as_ref() == Some(&ours));
        assert!(kept, "the log's text went beside it");
    });
}

#[test]
fn the_log_may_go_on_between_the_stop_and_the_start() {
    at_every_step(&|_| (), &|computer| {
        computer.write("edited", "a third text\n");
        computer.delete("was_file");
        computer.write("was_file", "a file once more\n");
        converges(computer);
    });
}

#[test]
fn an_older_ledger_with_open_intents_converges() {
    for step in 0.. {
        let mut computer = behind();
        if !computer.catch_up_until(step) {
            break;
        }
        let copy = computer.copy_views();
        computer.restart();
        computer.settle();
        computer.write("edited", "newer than the copy\n");
        computer.settle();
        computer.stop();
        computer.put_back_views(&copy);
        computer.start();
        converges(&mut computer);
    }
}
