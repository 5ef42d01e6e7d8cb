//! A disk that is full or read-only: commands report the error, existing data stays, and work continues afterwards.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{BackgroundProcess, eventually};
use crate::test_computer::TestComputer;

/// A small tmpfs of its own, if this user may mount one.
struct SmallDisk {
    at: PathBuf,
    _folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap().join("disk");
        fs::create_dir(&at).unwrap();
        let options = format!("size={size},mode=755");
        match Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).output() {
            Ok(output) if output.status.success() => Some(Self { at, _folder: folder }),
            Ok(output) => {
                println!(
                    "skipped: no tmpfs can be mounted here: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                None
            }
            Err(error) => {
                println!("skipped: there is no mount command: {error}");
                None
            }
        }
    }

    fn computer(&self) -> TestComputer {
        TestComputer::at(self.at.join("work")).set_up()
    }

    /// Another test that starts a process right now holds every open file for a moment, and with it the disk.
    fn remount(&self, mode: &str) {
        let options = format!("remount,{mode}");
        eventually(&options, || {
            Command::new("mount").args(["-o", &options]).arg(&self.at).status().unwrap().success()
        });
    }

    /// Takes all the space that is left, outside of the workspace, and says where.
    fn fill(&self) -> PathBuf {
        let path = self.at.join("filler");
        let mut filler = fs::File::create(&path).unwrap();
        for chunk in [64 * 1024, 4096, 1] {
            while filler.write_all(&vec![b'x'; chunk]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

fn noise(length: usize) -> Vec<u8> {
    let mut seed: u64 = 42;
    let next = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    };
    (0..length).map(next).collect()
}

#[test]
fn a_write_that_does_not_fit_fails_clearly_and_changes_nothing() {
    let Some(disk) = SmallDisk::mount("4m") else { return };
    let computer = disk.computer();
    computer.write("a", "one\n");
    let snapshot = computer.snapshot();
    for _ in 0..2 {
        computer.feed(&["write", "big"], &noise(8 * 1024 * 1024)).exits(1).says("the disk is full");
        assert_eq!(computer.snapshot(), snapshot);
        computer.assert_intact();
    }
    computer.write("a", "two\n");
    let watch = BackgroundProcess::watch(&computer);
    computer.feed(&["write", "big"], &noise(8 * 1024 * 1024)).exits(1).says("the disk is full");
    computer.write("a", "three\n");
    drop(watch);
    computer.assert_intact();
}

#[test]
fn a_disk_without_any_space_works_again_when_there_is_some() {
    let Some(disk) = SmallDisk::mount("4m") else { return };
    let computer = disk.computer();
    computer.write("a", "one\n");
    let filler = disk.fill();
    let failed = computer.feed(&["write", "b"], &noise(50_000));
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("disk is full"), "{failed:?}");
    fs::remove_file(filler).unwrap();
    assert!(!computer.has("b"));
    computer.assert_intact();
    computer.write("b", "fits\n");
    computer.ok(&["undo"]);
    computer.assert_intact();
}

#[test]
fn a_disk_that_fills_up_under_a_holder_works_again_too() {
    let Some(disk) = SmallDisk::mount("4m") else { return };
    let computer = disk.computer();
    let _watch = BackgroundProcess::watch(&computer);
    computer.write("a", "one\n");
    let filler = disk.fill();
    let mut acknowledged = Vec::new();
    for index in 0..5 {
        let name = format!("f{index}");
        let ran = computer.feed(&["write", &name], &noise(60_000 + index));
        match ran.code {
            // Durably recorded, and reported as not yet written to files.
            0 => acknowledged.push(name),
            1 => assert!(ran.err.contains("disk is full"), "{ran:?}"),
            _ => panic!("{ran:?}"),
        }
    }
    fs::remove_file(filler).unwrap();
    computer.write("after", "there is space\n");
    computer.status();
    for name in acknowledged {
        assert!(computer.has(&name), "{name} was acknowledged");
    }
    computer.assert_intact();
}

#[test]
fn a_read_only_disk_can_be_read_and_says_that_it_cannot_be_written() {
    let Some(disk) = SmallDisk::mount("8m") else { return };
    let computer = disk.computer();
    computer.write("a", "one\n");
    computer.write("a", "two\n");
    let root = computer.status()["root"].clone();
    let files = computer.files();
    // Once as a command left it, once as a killed holder left it.
    for round in 0..2 {
        if round == 1 {
            let mut watch = BackgroundProcess::watch(&computer);
            computer.write("b", "held\n");
            watch.kill();
        }
        disk.remount("ro");
        assert_eq!(computer.ok(&["cat", "a"]).out, "two\n");
        assert_eq!(computer.ok(&["cat", "a", "--at", "2"]).out, "one\n");
        computer.ok(&["log"]).says("create a");
        computer.ok(&["show", "@3"]).says("+two");
        computer.ok(&["diff", "2..3"]).says("+two");
        if round == 0 {
            assert_eq!(computer.json(&["replay"])["root"], root);
        }
        let away = tempfile::tempdir().unwrap();
        computer.ok(&["export", away.path().join("out.zip").to_str().unwrap()]);
        computer.ok(&["verify"]).says("read-only");
        for args in [&["write", "c"][..], &["rm", "a"], &["undo"], &["status"], &["watch"], &["checkpoint"]] {
            computer.feed(args, b"x").exits(5).says("the disk is read-only");
        }
        computer.run(&["init", "../other"]).exits(5).says("Read-only");
        disk.remount("rw");
        assert!(files.iter().all(|(path, found)| computer.files().get(path) == Some(found)));
        computer.assert_intact();
    }
    computer.write("c", "writable again\n");
    computer.assert_intact();
}
