//! Running other programs, with errors that name the command line so that it can be run again by hand.
//!
//! Output goes straight to the terminal unless it is captured, because a build that takes a minute must not be silent.

use std::{
    ffi::OsStr,
    fmt,
    path::Path,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// A program that ran and did not succeed.
#[derive(Debug)]
pub(crate) struct Failed {
    line: String,
    status: ExitStatus,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed ({})", self.line, self.status)
    }
}

impl std::error::Error for Failed {}

/// The exit code for an error: that of the program that failed, if one did, else 1.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failed>())
        .and_then(|failed| failed.status.code())
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Runs a program to its end, its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    succeeded(command, status)
}

/// Runs a program and returns what it wrote to stdout; stderr stays on the terminal.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| cannot_start(command))?;
    succeeded(command, output.status)?;
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not UTF-8", line(command)))
}

/// Whether a program can be started and succeeds; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a program that may hang, and ends it when the limit has passed.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    let mut child = command.spawn().with_context(|| cannot_start(command))?;
    match wait_until(&mut child, Instant::now() + limit)? {
        Some(status) => succeeded(command, status),
        None => {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("`{}` was still running after {} s and was stopped", line(command), limit.as_secs())
        }
    }
}

/// A program that runs beside this one. It is ended if its end is not waited for.
#[derive(Debug)]
pub(crate) struct Background {
    line: String,
    child: Child,
}

impl Background {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| cannot_start(command))?;
        Ok(Self { line: line(command), child })
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(Failed { line: self.line.clone(), status }.into()) }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Both fail if it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { Err(Failed { line: line(command), status }.into()) }
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start `{}`: is it installed and on PATH?", line(command))
}

/// The command as one would type it: the program by its bare name, arguments quoted where they need it.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words: Vec<String> = std::iter::once(program).chain(command.get_args()).map(quoted).collect();
    words.join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if word.is_empty() || word.contains([' ', '\'', '"', '$', '*']) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        word.into_owned()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failure_names_the_command_and_keeps_its_exit_code() {
        let error = run(&mut shell("exit 7")).unwrap_err().context("while testing");
        assert!(format!("{error:#}").contains("`sh -c 'exit 7'` failed"), "{error:#}");
        assert_eq!(exit_code(&error), ExitCode::from(7));
    }

    #[test]
    fn an_error_of_our_own_exits_with_one() {
        assert_eq!(exit_code(&anyhow::anyhow!("no program involved")), ExitCode::FAILURE);
    }

    #[test]
    fn a_program_that_hangs_is_stopped_at_the_limit() {
        let error = run_within(&mut shell("exec sleep 30"), Duration::from_millis(100)).unwrap_err();
        assert!(error.to_string().contains("was stopped"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_that_says_so() {
        let error = run(&mut Command::new("choir-no-such-program")).unwrap_err();
        assert!(error.to_string().contains("is it installed"), "{error}");
    }
}
