//! Output: text with colours for people, JSON lines for scripts. Colours only on a terminal.

use std::cell::RefCell;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernel::{Conflict, ConflictSide};
pub(crate) use projector::short;
use serde::Serialize;
use shared_types::payload::file::FileNode;
use shared_types::{Seq, Subject, Timestamp};

use computer::error::ComputerError;
use computer::protocol::{Change, ChangeResult};

/// How output is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Json,
    Colour,
    Plain,
}

impl Style {
    pub(crate) fn choose(json: bool) -> Self {
        let colour = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        match (json, colour) {
            (true, _) => Self::Json,
            (false, true) => Self::Colour,
            (false, false) => Self::Plain,
        }
    }

    pub(crate) fn is_json(self) -> bool {
        self == Self::Json
    }

    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        if self == Self::Colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

/// Writes a line; a reader that went away ends the process quietly, as it does for `cat`.
pub(crate) fn line(text: &str) {
    match writeln!(stdout().lock(), "{text}") {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => {
            eprintln!("error: cannot write the output: {e}");
            std::process::exit(1);
        }
    }
}

pub(crate) fn json(value: &impl Serialize) {
    line(&serde_json::to_string(value).unwrap_or_else(|e| format!("{{\"error\":\"{e}\"}}")));
}

/// Control characters in names must not reach the terminal.
pub(crate) fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

pub(crate) fn time(ts: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(ts.millis()) {
        Ok(at) => at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => ts.millis().to_string(),
    }
}

pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

pub(crate) fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Prints the result of a change.
pub(crate) fn done(style: Style, verb: &str, done: &ChangeResult) {
    if style.is_json() {
        return json(done);
    }
    match (done.preview, done.op) {
        (_, None) if done.notes.is_empty() => line("nothing to do"),
        (_, None) => {}
        (true, Some(_)) => line(&style.bold(&format!("would {verb} {}", count(done.total, "file change")))),
        (false, Some(op)) => {
            let events = done.first.zip(done.last).map(|(first, last)| format!(", {}", span(first, last)));
            let events = events.unwrap_or_default();
            let again = if done.resent { ", already done" } else { "" };
            let detail = format!("(operation {}{events}{again})", short(&op));
            line(&format!("{} {}", style.bold(verb), style.dim(&detail)));
        }
    }
    changes(style, &done.changes, done.total);
    let indent = if done.op.is_some() { "  " } else { "" };
    for note in &done.notes {
        line(&format!("{indent}{}", safe(note)));
    }
}

/// A range of events as text.
pub(crate) fn span(first: Seq, last: Seq) -> String {
    if first == last { format!("event {first}") } else { format!("events {first}..{last}") }
}

/// Changed files, with their diffs where there are some.
pub(crate) fn changes(style: Style, changes: &[Change], total: u64) {
    const UNSHOWN: usize = 20;
    let with_diffs = changes.iter().any(|change| change.diff.is_some());
    let listed = if with_diffs { changes.len() } else { changes.len().min(UNSHOWN) };
    for change in &changes[..listed] {
        line(&format!("  {}", headline(style, change)));
        if let Some(diff) = &change.diff {
            for text in diff.lines() {
                let code = match text.as_bytes().first() {
                    Some(b'+') => "32",
                    Some(b'-') => "31",
                    Some(b'@') => "36",
                    _ => "",
                };
                let text = safe(&text.replace('\t', "    "));
                line(&format!("    {}", if code.is_empty() { text } else { style.paint(code, &text) }));
            }
        }
    }
    if total > listed as u64 {
        line(&format!("  … and {} more", total - listed as u64));
    }
}

fn headline(style: Style, change: &Change) -> String {
    let path = safe(change.path.as_str());
    let (sign, code, text) = match (&change.from, &change.before, &change.after) {
        (Some(from), _, _) => ("→", "36", format!("{} → {path}", safe(from.as_str()))),
        (None, None, Some(node)) => ("+", "32", format!("{path}{}", kind(node))),
        (None, Some(node), None) => ("-", "31", format!("{path}{}", kind(node))),
        (None, Some(before), Some(after)) => ("~", "33", format!("{path}{}", difference(before, after))),
        (None, None, None) => (" ", "0", path),
    };
    format!("{} {text}", style.paint(code, sign))
}

fn kind(node: &FileNode) -> String {
    match node {
        FileNode::File { size: bytes, .. } => format!("  {}", size(*bytes)),
        FileNode::Symlink { target } => format!(" → {}", safe(target)),
        FileNode::Folder => "/".into(),
    }
}

fn difference(before: &FileNode, after: &FileNode) -> String {
    match (before, after) {
        (FileNode::File { mode: a, hash: x, .. }, FileNode::File { mode: b, hash: y, .. }) if x == y => {
            format!("  mode {a:o} → {b:o}")
        }
        (FileNode::File { size: a, .. }, FileNode::File { size: b, .. }) if a == b => {
            format!("  {}", size(*b))
        }
        (FileNode::File { size: a, .. }, FileNode::File { size: b, .. }) => {
            format!("  {} → {}", size(*a), size(*b))
        }
        (_, after) => kind(after),
    }
}

/// Prints a failure to standard error, with the choices for each conflict.
pub(crate) fn failure(style: Style, failure: &ComputerError) {
    if style.is_json() {
        return json(&serde_json::json!({ "error": failure }));
    }
    let red = stderr().is_terminal() && style == Style::Colour;
    let word = if red { "\x1b[31merror:\x1b[0m" } else { "error:" };
    let message: Vec<_> = failure.message.lines().map(safe).collect();
    eprintln!("{word} {}", message.join("\n"));
    for conflict in &failure.conflicts {
        eprintln!("  {}: {}", safe(&conflict.subject.to_string()), conflict.reason);
        eprintln!("    current:      {}", side(&conflict.today));
        eprintln!("    the undo has: {}", side(&conflict.undone));
    }
    if let Some(Conflict { subject, .. }) = failure.conflicts.first() {
        let name = match subject {
            Subject::File(path) | Subject::Repository(path) => safe(path.as_str()),
            Subject::Setting(key) => format!("setting:{key}"),
            Subject::Window(id) => format!("window:{id}"),
            Subject::Note(id) => format!("note:{id}"),
        };
        eprintln!(
            "  choose with --keep {name} (the current version) or --take {name} (the version of the undo),"
        );
        eprintln!("  or for all of them with --keep-all or --take-all");
    }
}

fn side(state: &ConflictSide) -> String {
    match state {
        ConflictSide::Absent => "nothing".into(),
        ConflictSide::File(FileNode::File { size: bytes, hash, .. }) => {
            format!("{} ({})", size(*bytes), hash.short())
        }
        ConflictSide::File(node) => kind(node).trim().to_owned(),
        ConflictSide::Several(files) => count(*files, "file"),
        ConflictSide::Setting(value) => value.to_string(),
        ConflictSide::Window(window) => format!("window {}", safe(&window.title)),
        ConflictSide::Note(note) => format!("note {}", safe(&note.title)),
    }
}

/// A progress bar that appears after one second.
#[derive(Debug)]
pub(crate) struct ProgressReport {
    started: Instant,
    bar: RefCell<Option<ProgressBar>>,
    wanted: bool,
}

impl ProgressReport {
    const DELAY: Duration = Duration::from_secs(1);

    pub(crate) fn new(style: Style) -> Self {
        let wanted = !style.is_json() && stderr().is_terminal();
        Self { started: Instant::now(), bar: RefCell::new(None), wanted }
    }

    pub(crate) fn update(&self, phase: &str, done: u64, total: u64) {
        if !self.wanted || self.started.elapsed() < Self::DELAY {
            return;
        }
        let mut slot = self.bar.borrow_mut();
        let bar = slot.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            if let Ok(look) = ProgressStyle::with_template("{msg:>14} {bar:30} {pos}/{len}") {
                bar.set_style(look);
            }
            bar
        });
        bar.set_length(total);
        bar.set_message(phase.to_owned());
        bar.set_position(done);
    }
}

impl Drop for ProgressReport {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.borrow().as_ref() {
            bar.finish_and_clear();
        }
    }
}
