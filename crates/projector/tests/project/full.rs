//! A disk that becomes full in the middle of a batch: the log has everything already, and the projector continues when
//! there is room again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use projector::{Extent, ProjectError};

use crate::computer::{Computer, quietly};

/// A small tmpfs of its own, if this user may mount one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(name: &str) -> Option<Self> {
        let path = std::env::temp_dir().join(format!("choir-project-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&path).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(path));
        }
        println!("skipped: a tmpfs cannot be mounted here");
        fs::remove_dir(&path).unwrap();
        None
    }

    /// Leaves only so much room.
    fn fill(&self, room: u64) {
        let free = || {
            let found = rustix::fs::statvfs(&self.0).unwrap();
            found.f_bavail * found.f_bsize
        };
        let mut filler = Vec::new();
        while free() > room {
            filler.resize(usize::try_from((free() - room).min(1 << 20)).unwrap(), 7);
            let name = self.0.join(format!("filler-{}", free()));
            if fs::write(name, &filler).is_err() {
                break;
            }
        }
    }

    fn make_room(&self) {
        for entry in fs::read_dir(&self.0).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

fn computer_on(disk: &Path) -> Computer {
    let computer = Computer::in_folder(disk);
    for number in 0..20 {
        computer.write(&format!("file{number}"), "small\n");
    }
    computer.settle();
    computer
}

#[test]
fn a_full_disk_stops_the_projector_and_loses_nothing() {
    let mut stopped = 0;
    for room in [0, 16, 64, 128, 256, 384, 512] {
        let Some(disk) = SmallDisk::mount("full") else { return };
        let mut computer = computer_on(&disk.0);
        for number in 0..20 {
            computer.write(&format!("file{number}"), format!("{number}\n").repeat(16 * 1024));
        }
        let head = computer.head();
        disk.fill(room * 1024);
        let failed = computer.projector().catch_up(&quietly);
        stopped += usize::from(failed.is_err());
        if failed.is_err() {
            // A capture while the disk is full: the files that were written are the projector's own.
            if let Ok(captured) = computer.projector().capture(&Extent::Everything, &quietly) {
                assert_eq!(captured.op, None, "with {room} KiB: its own writes were taken for edits");
            }
            assert!(computer.projector().catch_up(&quietly).is_err(), "it is still full");
        }
        disk.make_room();
        computer.settle();
        computer.assert_faithful();
        assert_eq!(computer.head(), head);
        computer.restart();
        computer.settle();
        computer.assert_faithful();
        assert_eq!(computer.head(), head);
        drop(computer);
    }
    assert!(stopped >= 4, "the disk was full only {stopped} times");
}

#[test]
fn a_full_disk_is_reported_as_such() {
    let Some(disk) = SmallDisk::mount("said") else { return };
    let computer = computer_on(&disk.0);
    computer.write("large", "x".repeat(2 << 20));
    disk.fill(1 << 20);
    let failed = computer.projector().catch_up(&quietly).unwrap_err();
    let is_full = matches!(
        &failed,
        ProjectError::Disk(projector::workspace::DiskError::Full { path }) if path.as_str() == "large"
    );
    assert!(is_full, "{failed:?}");
    assert_eq!(computer.read("large"), None);
    drop(computer);
}
