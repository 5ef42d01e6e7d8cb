//! Limits hold even if the output is not read, and even without a layer to measure.

use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use isolation::{Access, Command, Limit, Pty, Size, Status};

use crate::cleanup::sleepers;
use crate::fixture::{Fixture, with_every_backend};

with_every_backend!(
    blocking_on_output_does_not_extend_the_time_limit,
    an_unread_terminal_cannot_fill_its_layer,
    a_terminal_with_direct_access_cannot_fill_the_disk,
    a_command_can_clean_up_a_full_disk,
);

/// Longer than any cleanup takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn blocking_on_output_does_not_extend_the_time_limit(mut fixture: Fixture) {
    fixture.policy.limits.time = Duration::from_millis(700);
    let (heard, hearing) = channel();
    let (listen, listening) = channel::<()>();
    let cell = fixture.start();
    std::thread::scope(|scope| {
        let command = Command::new(["/bin/sh", "-c", "echo said; exec sleep 600"]);
        let running = scope.spawn(move || {
            let mut deaf = |_, _: &[u8]| {
                let _ = heard.send(());
                let _ = listening.recv();
            };
            cell.exec(&command, &mut deaf).unwrap()
        });
        hearing.recv().unwrap();
        let is_over = wait(|| sleepers(fixture.folder.path()).is_empty());
        drop(listen);
        let exit = running.join().unwrap();
        assert!(is_over, "its processes were still there");
        assert_eq!(exit.status, Status::Limited(Limit::Time));
    });
}

fn an_unread_terminal_cannot_fill_its_layer(mut fixture: Fixture) {
    fixture.policy.limits.disk = 4 << 20;
    let cell = fixture.start();
    let script = "yes & i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done";
    assert_eq!(terminal(&*cell, script).control.wait(), Status::Limited(Limit::Disk));
}

fn a_terminal_with_direct_access_cannot_fill_the_disk(mut fixture: Fixture) {
    let Some(_disk) = Disk::mount(&fixture.workspace(), 400) else { return };
    fixture.policy.mounts[0].access = Access::Direct;
    let cell = fixture.start();
    let pty = terminal(&*cell, "head -c 200000000 /dev/zero > filler; sleep 60");
    assert_eq!(pty.control.wait(), Status::Limited(Limit::Disk));
    cell.stop();
}

fn a_command_can_clean_up_a_full_disk(mut fixture: Fixture) {
    let Some(_disk) = Disk::mount(&fixture.workspace(), 100) else { return };
    fixture.write("filler", &"x".repeat(1 << 20));
    fixture.policy.mounts[0].access = Access::Direct;
    let cell = fixture.start();
    let mut pty = terminal(&*cell, "echo note > note; sleep 1; rm filler");
    std::io::copy(&mut pty.output, &mut std::io::sink()).unwrap();
    assert_eq!(pty.control.wait(), Status::Exited(0));
    assert!(!fixture.workspace().join("filler").exists());
    cell.stop();
}

fn terminal(cell: &dyn isolation::Cell, script: &str) -> Pty {
    cell.pty(&Command::new(["/bin/sh", "-c", script]), Size { columns: 80, rows: 24 }).unwrap()
}

fn wait(done: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !done() && started.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(20));
    }
    done()
}

/// A small in-memory disk mounted at a folder.
struct Disk(PathBuf);

impl Disk {
    /// `None`, with a notice, where mounting is not permitted.
    fn mount(at: &Path, mebibytes: u32) -> Option<Self> {
        let size = format!("size={mebibytes}m,mode=755");
        let mounted = Program::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(at.to_owned()));
        }
        eprintln!("skipped: no disk can be mounted");
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Program::new("umount").arg(&self.0).status();
    }
}
