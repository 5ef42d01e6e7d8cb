//! A disk that is full or read-only: existing files stay, and no draft remains.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use projector::workspace::{DiskError, Expected};

use crate::fixture::Home;

/// A small tmpfs of its own, if this user may mount one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(name: &str) -> Option<Self> {
        let path = std::env::temp_dir().join(format!("choir-small-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&path).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(path)),
            Ok(output) => {
                let reason = String::from_utf8_lossy(&output.stderr).into_owned();
                println!("skipped: a tmpfs cannot be mounted here: {reason}");
                fs::remove_dir(&path).unwrap();
                None
            }
            Err(error) => {
                println!("skipped: there is no mount command: {error}");
                fs::remove_dir(&path).unwrap();
                None
            }
        }
    }

    fn remount(&self, mode: &str) {
        let options = format!("remount,{mode}");
        let remounted =
            || Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success();
        assert!(eventually(remounted), "{options} failed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

/// Another test that starts a process inherits every open file for a moment, which keeps the disk busy.
fn eventually(happens: impl Fn() -> bool) -> bool {
    (0..100).any(|round| {
        thread::sleep(Duration::from_millis(10) * u32::from(round > 0));
        happens()
    })
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_draft() {
    let Some(disk) = SmallDisk::mount("full") else { return };
    let home = Home::at(disk.0.join("home"));
    home.place("x", "old", 0o644).unwrap();
    let error = home.place("x", &"large".repeat(1 << 20), 0o644).unwrap_err();
    assert!(matches!(&error, DiskError::Full { path } if path.as_str() == "x"), "{error:?}");
    assert_eq!(home.read("x"), "old");
    home.assert_clean();
    assert!(eventually(|| home.place("x", "small again", 0o644).is_ok()), "the space did not come back");
    assert_eq!(home.read("x"), "small again");
}

#[test]
fn a_read_only_disk_is_reported_as_such() {
    let Some(disk) = SmallDisk::mount("readonly") else { return };
    let home = Home::at(disk.0.join("home"));
    home.place("x", "old", 0o644).unwrap();
    disk.remount("ro");
    let placed = home.place("x", "new", 0o644).unwrap_err();
    let removed = home.workspace.remove(&crate::fixture::at("x"), Expected::Anything).unwrap_err();
    for error in [placed, removed] {
        assert!(matches!(error, DiskError::ReadOnly { .. }), "{error:?}");
    }
    assert_eq!(home.read("x"), "old");
    disk.remount("rw");
}

#[test]
fn a_mount_inside_the_workspace_is_another_file_system() {
    let home = Home::new();
    let Some(disk) = SmallDisk::mount("inside") else { return };
    home.write("a", "x").folder("mounted");
    let target = home.on_disk("mounted");
    assert!(Command::new("mount").arg("--bind").args([&disk.0, &target]).status().unwrap().success());
    fs::write(target.join("y"), "y").unwrap();
    let found = home.scan();
    let placed = home.place("mounted/z", "z", 0o644);
    assert!(Command::new("umount").arg("-l").arg(&target).status().unwrap().success());
    assert_eq!(crate::fixture::listing(&found), ["a"]);
    assert!(!found.covers(&crate::fixture::at("mounted/y")), "what is behind a mount is unknown, not gone");
    assert!(matches!(placed, Err(DiskError::OtherFileSystem { .. })), "{placed:?}");
    home.assert_clean();
}
