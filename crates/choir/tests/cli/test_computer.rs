//! A computer in a temporary folder for each test, and the command line on it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with a computer in it.
pub(crate) struct TestComputer {
    pub(crate) work: PathBuf,
    _folder: Option<TempDir>,
}

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Everything that a refused command must not change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ComputerSnapshot {
    root: Value,
    head: Value,
    files: BTreeMap<String, DiskEntry>,
}

/// A file, folder or link on disk.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) enum DiskEntry {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
    EmptyFolder,
}

impl TestComputer {
    /// A folder that is no computer yet.
    pub(crate) fn bare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap().join("work");
        fs::create_dir(&work).unwrap();
        Self { work, _folder: Some(folder) }
    }

    /// A folder that the caller created and removes.
    pub(crate) fn at(work: PathBuf) -> Self {
        fs::create_dir_all(&work).unwrap();
        Self { work, _folder: None }
    }

    /// A new computer with nothing in it.
    pub(crate) fn new() -> Self {
        Self::bare().set_up()
    }

    /// A new computer over a folder that has these files.
    pub(crate) fn over(files: &[(&str, &str)]) -> Self {
        let computer = Self::bare();
        files.iter().for_each(|(path, text)| computer.edit(path, text));
        computer.set_up()
    }

    pub(crate) fn set_up(self) -> Self {
        self.ok(&["init", ".", "--name", "Ada"]);
        self
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.work.join(path)
    }

    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.work.join(".choir").join(name)
    }

    /// The binary in this folder, in an environment of its own.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = choir();
        command.args(args).current_dir(&self.work).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(&mut self.command(args))
    }

    /// Runs a command that must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> CommandOutput {
        self.run(args).exits(0)
    }

    /// Runs a command that must succeed, and returns the one JSON object that it prints.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let mut lines = self.ok(&[args, &["--json"]].concat()).json_lines();
        assert_eq!(lines.len(), 1, "{args:?} printed {lines:?}");
        lines.remove(0)
    }

    pub(crate) fn feed(&self, args: &[&str], bytes: &[u8]) -> CommandOutput {
        CommandOutput::fed(&mut self.command(args), bytes)
    }

    /// Writes a file through the log and returns the operation.
    pub(crate) fn write(&self, path: &str, text: &str) -> String {
        let ran = self.feed(&["write", path, "--json"], text.as_bytes()).exits(0);
        ran.json_lines()[0]["op"].as_str().unwrap().to_owned()
    }

    /// Changes a file outside the log.
    pub(crate) fn edit(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    pub(crate) fn status(&self) -> Value {
        self.json(&["status"])
    }

    /// Records outside edits and returns their operation.
    pub(crate) fn captured(&self) -> String {
        let status = self.status();
        status["captured_op"].as_str().unwrap_or_else(|| panic!("nothing was captured: {status}")).to_owned()
    }

    pub(crate) fn head(&self) -> u64 {
        self.status()["head"].as_u64().unwrap()
    }

    pub(crate) fn snapshot(&self) -> ComputerSnapshot {
        let status = self.status();
        ComputerSnapshot { root: status["root"].clone(), head: status["head"].clone(), files: self.files() }
    }

    /// All files in the workspace, without the computer's own folder.
    pub(crate) fn files(&self) -> BTreeMap<String, DiskEntry> {
        let mut found = BTreeMap::new();
        walk(&self.work, &self.work, &mut found);
        found
    }

    /// All events, oldest first.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.ok(&["log", "--all", "--json"]).json_lines()
    }

    /// Checks that the log is gapless and that everything computed from it is right.
    pub(crate) fn assert_intact(&self) {
        let seqs: Vec<u64> = self.events().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
        let verified = self.run(&["verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }
}

/// The binary, with an environment independent of the user who runs the tests.
pub(crate) fn choir() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_choir"));
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"CHOIR_") {
            command.env_remove(name);
        }
    }
    // No keys and models of the user.
    command.env("XDG_DATA_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/nothing"));
    command.env("USER", "ada").env("TZ", "UTC").env_remove("NO_COLOR").env_remove("LOGNAME");
    command
}

impl CommandOutput {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub(crate) fn fed(command: &mut Command, bytes: &[u8]) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that refuses need not read its input.
        let _ = child.stdin.take().unwrap().write_all(bytes);
        let output = child.wait_with_output().unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Checks that either output stream contains a text.
    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.out.contains(words) || self.err.contains(words), "no {words:?} in {self:?}");
        self
    }

    /// Every output line as a JSON object.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert!(value.is_object(), "{line}");
            value
        };
        self.out.lines().map(parse).collect()
    }
}

fn walk(top: &Path, folder: &Path, found: &mut BTreeMap<String, DiskEntry>) {
    let entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    if entries.is_empty() && folder != top {
        found.insert(below(top, folder), DiskEntry::EmptyFolder);
    }
    for path in entries {
        if path == top.join(".choir") {
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            walk(top, &path, found);
        } else if meta.is_symlink() {
            found.insert(below(top, &path), DiskEntry::Link(fs::read_link(&path).unwrap()));
        } else if meta.is_file() {
            let mode = meta.permissions().mode() & 0o777;
            found.insert(below(top, &path), DiskEntry::File { bytes: fs::read(&path).unwrap(), mode });
        }
    }
}

fn below(top: &Path, path: &Path) -> String {
    path.strip_prefix(top).unwrap().to_string_lossy().into_owned()
}
