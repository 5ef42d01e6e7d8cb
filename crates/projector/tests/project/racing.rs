//! Outside edits while the projector writes: between its check of a path and its rename, all the time, and without end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use projector::scan::SkipReason;

use crate::computer::Computer;

/// Ends the other side also when this one fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Ten files that the log changed, and the disk does not know it yet.
fn behind() -> Computer {
    let computer = Computer::new();
    for number in 0..10 {
        computer.write(&format!("f{number}"), "first\nsecond\nthird\nfourth\n");
    }
    computer.settle();
    for number in 0..10 {
        computer.write(&format!("f{number}"), "FIRST\nsecond\nthird\nfourth\n");
    }
    computer
}

#[test]
fn an_edit_between_the_look_and_the_write_is_merged() {
    let computer = behind();
    let edit = || computer.edit("f7", "first\nsecond\nthird\nFOURTH\n");
    let done = computer.while_writing(3, &edit);
    assert_eq!(done.captured, 1);
    assert_eq!(computer.read("f7").as_deref(), Some("FIRST\nsecond\nthird\nFOURTH\n"));
    assert_eq!(computer.read("f8").as_deref(), Some("FIRST\nsecond\nthird\nfourth\n"));
    computer.settle();
    computer.assert_faithful();
}

#[test]
fn a_file_that_appears_where_one_is_about_to_be_made_is_kept() {
    let computer = behind();
    computer.write("new", "from the log\n");
    computer.while_writing(3, &|| computer.edit("new", "from the disk\n"));
    assert_eq!(computer.read("new").as_deref(), Some("from the disk\n"));
    computer.settle();
    computer.assert_faithful();
    assert!(
        computer
            .disk()
            .into_keys()
            .any(|path| computer.read(path.as_str()).as_deref() == Some("from the log\n"))
    );
}

#[test]
fn an_edit_of_what_is_about_to_be_deleted_is_kept() {
    let computer = behind();
    computer.delete("f0");
    computer.delete("f1");
    computer.while_writing(1, &|| computer.edit("f0", "not so fast\n"));
    assert_eq!(computer.read("f0").as_deref(), Some("not so fast\n"));
    assert_eq!(computer.read("f1"), None);
    computer.settle();
    computer.assert_faithful();
}

#[test]
fn a_file_that_vanishes_before_it_is_replaced_is_written_all_the_same() {
    let computer = behind();
    computer.while_writing(2, &|| fs::remove_file(computer.on_disk("f6")).unwrap());
    assert_eq!(computer.read("f6").as_deref(), Some("FIRST\nsecond\nthird\nfourth\n"));
    computer.settle();
    computer.assert_faithful();
}

#[test]
fn a_folder_that_becomes_a_link_in_the_middle_is_not_followed() {
    let computer = behind();
    computer.write("zzz/a", "inside\n");
    computer.settle();
    computer.write("zzz/a", "inside, newer\n");
    computer.write("f1", "something to begin with\n");
    let elsewhere = computer.state().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    computer.while_writing(1, &|| {
        fs::remove_dir_all(computer.on_disk("zzz")).unwrap();
        symlink(&elsewhere, computer.on_disk("zzz")).unwrap();
    });
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "something was written through the link");
    assert_eq!(computer.read("f1").as_deref(), Some("something to begin with\n"));
}

#[test]
fn a_file_that_never_rests_holds_up_nothing_else() {
    let computer = behind();
    computer.catch_up();
    // So large that it is never read as a whole between two changes.
    let busy = computer.on_disk("busy");
    fs::write(&busy, vec![b'x'; 16 << 20]).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let file = fs::File::options().write(true).open(&busy).unwrap();
            for count in 0_u64.. {
                file.write_all_at(&count.to_le_bytes(), 0).unwrap();
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let _stop = Stop(&stop);
        computer.edit("quiet", "captured all the same\n");
        computer.write("f3", "projected all the same\n");
        let mut passed_over = 0;
        for _ in 0..2 {
            let skipped = computer.capture().skipped;
            passed_over += skipped.iter().filter(|(_, why)| *why == SkipReason::Unreadable).count();
            computer.catch_up();
        }
        let found = (computer.logged("quiet"), computer.read("f3"));
        assert_eq!(found, (Some("captured all the same\n".into()), Some("projected all the same\n".into())));
        assert!(passed_over > 0, "the busy file was never seen changing");
    });
    computer.settle();
    computer.assert_faithful();
}

/// An editor that saves by renaming, again and again, and what it saved last at every path.
fn save_for_ever(folder: &Path, stop: &AtomicBool, saves: &AtomicUsize) -> BTreeMap<String, String> {
    let mut last = BTreeMap::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let path = format!("f{}", number % 10);
        let text = format!("first\nsecond\nthird\nsave number {number}\n");
        let draft = folder.with_file_name("their-draft");
        fs::write(&draft, &text).unwrap();
        fs::rename(&draft, folder.join(&path)).unwrap();
        last.insert(path, text);
        number += 1;
        saves.fetch_add(1, Ordering::Relaxed);
    }
    last
}

#[test]
fn no_save_is_lost_to_a_projector_that_writes_the_same_files() {
    let computer = behind();
    let (folder, stop, saves) = (computer.workspace(), AtomicBool::new(false), AtomicUsize::new(0));
    let last = thread::scope(|scope| {
        let editor = scope.spawn(|| save_for_ever(&folder, &stop, &saves));
        let ending = Stop(&stop);
        for round in 0..60 {
            for number in 0..10 {
                computer.write(&format!("f{number}"), format!("round {round}\nsecond\nthird\nfourth\n"));
            }
            computer.catch_up();
        }
        drop(ending);
        editor.join().unwrap()
    });
    computer.settle();
    computer.settle();
    computer.assert_faithful();
    for (path, text) in last {
        let kept = computer.holds(text.as_bytes()) || computer.read(&path).as_ref() == Some(&text);
        assert!(kept, "{path}: the last of {} saves is gone", saves.load(Ordering::Relaxed));
    }
}
