//! Background processes of a test, `choir watch` and `choir log --follow`, read line by line.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::machine::Machine;
use crate::test_computer::TestComputer;

/// Longer than anything here takes; only a failing test waits for it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A process whose output is read as it comes. It is killed when the test ends.
pub(crate) struct BackgroundProcess {
    child: Child,
    lines: Receiver<String>,
}

impl BackgroundProcess {
    pub(crate) fn start(computer: &TestComputer, args: &[&str]) -> Self {
        Self::spawn(computer.command(args))
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let lines = read_lines(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// `choir watch`, ready to serve.
    pub(crate) fn watch(computer: &TestComputer) -> Self {
        Self::ready(Self::start(computer, &["watch", "--json"]))
    }

    /// The same on a machine with models.
    pub(crate) fn watch_on(machine: &Machine, computer: &TestComputer) -> Self {
        let mut command = machine.choir(&["watch", "--json"]);
        command.current_dir(&computer.work);
        Self::ready(Self::spawn(command))
    }

    fn ready(watch: Self) -> Self {
        let ready = watch.next();
        assert_eq!(ready["ready"], true, "{ready}");
        assert_eq!(ready["pid"], watch.pid(), "{ready}");
        watch
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line, as an object.
    #[track_caller]
    pub(crate) fn next(&self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("no line came");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// Everything that came so far.
    pub(crate) fn so_far(&self) -> Vec<Value> {
        self.lines.try_iter().map(|line| serde_json::from_str(&line).unwrap()).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for the process to end by itself.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The most memory that the process has used, in kilobytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        peak_memory(self.pid())
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(out: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

pub(crate) fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Polls until a condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < DEADLINE, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A connection to the holder, as any program of the same user can make one.
pub(crate) fn knock(computer: &TestComputer) -> UnixStream {
    let stream = UnixStream::connect(computer.state("choir.sock")).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}
