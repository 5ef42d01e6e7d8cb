//! The memory that opening a log takes, measured in a separate process.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::Context;
use event_log::SqliteLog;
use event_log::writer::{Options, Writer};

use super::history::now;
use super::reference::{bare_scan, open_reader};

/// What the memory probe measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A computer opened and ready for commands.
    Ours,
    /// A bare scan of the table of events.
    Reference,
}

impl Subject {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Reference => "reference",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ours, Self::Reference].into_iter().find(|subject| subject.as_str() == text)
    }
}

/// Runs the probe in this process and prints its peak resident memory, in megabytes. This is what
/// the hidden `choir bench --probe-memory DIR --probe-subject SUBJECT` runs.
pub fn probe_memory(folder: &Path, subject: Subject) -> anyhow::Result<()> {
    match subject {
        Subject::Ours => {
            let log = Arc::new(SqliteLog::open(folder)?);
            let (writer, _) = Writer::start(log, Options::new(now))?;
            writer.inspect(|view| view.seq())?;
        }
        Subject::Reference => {
            bare_scan(&open_reader(folder)?)?;
        }
    }
    writeln!(std::io::stdout(), "{}", most_resident_mb()?)?;
    Ok(())
}

fn most_resident_mb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: f64 = line
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .context("this system does not tell how much memory a process had")?
        .trim()
        .parse()?;
    Ok(kilobytes / 1024.0)
}

/// Runs the probe in a child of the same program.
pub(super) fn measure(folder: &Path, subject: Subject) -> anyhow::Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .args(["bench", "--probe-memory"])
        .arg(folder)
        .args(["--probe-subject", subject.as_str()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "the memory probe failed: {said}");
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
