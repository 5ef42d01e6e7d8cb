//! Open questions of agents, with everything that is needed to answer them: the full command, its arguments, and the
//! expected change.

use event_log::read_content;
use kernel::diff::{TextDiff, diff};
use kernel::run::{Run, RunPhase};
use serde_json::Value;
use shared_types::payload::file::FileNode;
use shared_types::payload::run::AskKind;
use shared_types::wire::{Questions, RunQuestion};
use shared_types::{AskId, FilePath, RunId};

use super::{Computer, display, unique_match};
use crate::error::{ComputerError, ErrorCode};
use crate::ids;

/// Larger files and arguments are shown without a diff.
const MAX_DIFF_BYTES: u64 = 256 << 10;

impl Computer {
    /// The questions that are open, of one run or of all, the oldest run first.
    pub(super) fn questions(&self, run: Option<RunId>) -> Result<Questions, ComputerError> {
        let mut open: Vec<(RunId, Run)> = self.writer.inspect(move |view| {
            let wanted = |(id, known): &(&RunId, &Run)| {
                run.is_none_or(|run| **id == run) && !known.asks.is_empty() && !known.phase.is_over()
            };
            view.runs.iter().filter(wanted).map(|(id, run)| (*id, run.clone())).collect()
        })?;
        open.sort_by_key(|(_, run)| run.seq);
        let mut questions = Vec::new();
        for (id, run) in &open {
            for ask in &run.asks {
                let task = run.task(ask.task);
                let Arguments { input, diff, full_command } = self.arguments(&ask.about)?;
                questions.push(RunQuestion {
                    id: ask.id,
                    run: *id,
                    task: ask.task,
                    role: task.map(|task| task.role.to_string()).unwrap_or_default(),
                    about: full_command.map_or_else(
                        || ask.about.clone(),
                        |full_command| with_full_title(&ask.about, full_command),
                    ),
                    input,
                    diff,
                    taint: task.map(|task| task.taint.clone()).unwrap_or_default(),
                    leaves_in: millis_until_sent(run, &ask.about),
                });
            }
        }
        Ok(Questions { questions })
    }

    fn arguments(&self, about: &AskKind) -> Result<Arguments, ComputerError> {
        let (tool, text) = match about {
            AskKind::Approval { tool, input, .. } | AskKind::Outgoing { tool, input, .. } => {
                (tool, display::show(&**self.log(), input).text)
            }
            AskKind::Interrupted { call, tool, .. } => (tool, self.call(*call)?.and_then(|call| call.input)),
            AskKind::Question { .. } => return Ok(Arguments::default()),
        };
        let value = text.as_deref().filter(|text| text.len() <= MAX_DIFF_BYTES as usize);
        let value: Option<Value> = value.and_then(|text| serde_json::from_str(text).ok());
        let diff = match value.as_ref().and_then(|value| FileEdit::read(tool, value)) {
            Some(change) if !matches!(about, AskKind::Interrupted { .. }) => self.would_write(&change)?,
            Some(_) | None => None,
        };
        let full_command = value.as_ref().and_then(|value| full_command(tool, value));
        Ok(Arguments { input: text.map(display::pretty), diff, full_command })
    }

    fn would_write(&self, change: &FileEdit<'_>) -> Result<Option<String>, ComputerError> {
        let path = change.path.clone();
        let node = self.writer.inspect(move |view| view.files.get(&path).cloned())?;
        let before = match &node {
            None => Vec::new(),
            Some(FileNode::File { hash, size, .. }) if *size <= MAX_DIFF_BYTES => {
                match read_content(&**self.log(), hash) {
                    Ok(bytes) => bytes,
                    Err(_) => return Ok(None),
                }
            }
            Some(FileNode::File { .. } | FileNode::Symlink { .. } | FileNode::Folder) => return Ok(None),
        };
        let Some(after) = change.applied_to(&before) else { return Ok(None) };
        Ok(match diff(&before, &after) {
            TextDiff::Lines { unified, .. } if !unified.is_empty() => {
                let old = node.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{}", change.path));
                Some(format!("--- {old}\n+++ b/{}\n{unified}", change.path))
            }
            TextDiff::Lines { .. } | TextDiff::Binary => None,
        })
    }

    /// The open question with an id or a part of it; without one, the only open question.
    pub(super) fn question_named(&self, text: Option<&str>) -> Result<(RunId, AskId), ComputerError> {
        let open: Vec<(RunId, AskId)> = self.writer.inspect(|view| {
            let asks =
                |(id, run): (&RunId, &Run)| run.asks.iter().map(|ask| (*id, ask.id)).collect::<Vec<_>>();
            view.runs.iter().flat_map(asks).collect()
        })?;
        let Some(text) = text else {
            return match open.as_slice() {
                [only] => Ok(*only),
                [] => Err(ComputerError::new(ErrorCode::NoQuestion, "there is no open question")),
                _ => Err(ComputerError::new(
                    ErrorCode::BadRequest,
                    "there are several open questions; choir approve lists them",
                )),
            };
        };
        let asks = open.iter().map(|(_, ask)| *ask).collect();
        let ask = match text.parse() {
            Ok(ask) => Some(ask),
            Err(_) => unique_match(text, asks, "question")?,
        };
        let found = ask.and_then(|ask| open.iter().find(|(_, open)| *open == ask));
        found.copied().ok_or_else(|| {
            let message = format!("question {text} is not open; it may be answered already");
            ComputerError::new(ErrorCode::NoQuestion, message)
        })
    }
}

/// The arguments of a call, for a person to read.
#[derive(Debug, Default)]
struct Arguments {
    input: Option<String>,
    /// The expected change to a file.
    diff: Option<String>,
    /// The full command, of which the title may be only the beginning.
    full_command: Option<String>,
}

/// A command with all its lines, since the person allows all of it or nothing.
fn full_command(tool: &str, input: &Value) -> Option<String> {
    let command = input.get("command").and_then(Value::as_str).filter(|_| tool == "exec")?;
    Some(command.trim().to_owned())
}

fn with_full_title(about: &AskKind, full_command: String) -> AskKind {
    let mut about = about.clone();
    match &mut about {
        AskKind::Approval { title, .. }
        | AskKind::Outgoing { title, .. }
        | AskKind::Interrupted { title, .. } => *title = full_command.into(),
        AskKind::Question { .. } => {}
    }
    about
}

/// Milliseconds until a call in the outbox is sent.
fn millis_until_sent(run: &Run, about: &AskKind) -> Option<u64> {
    match (about, &run.phase) {
        (AskKind::Outgoing { until, .. }, RunPhase::Working) => {
            let left = until.millis().saturating_sub(ids::now().millis());
            Some(u64::try_from(left).unwrap_or_default())
        }
        (
            AskKind::Outgoing { .. }
            | AskKind::Approval { .. }
            | AskKind::Question { .. }
            | AskKind::Interrupted { .. },
            RunPhase::Working
            | RunPhase::Paused(_)
            | RunPhase::Cancelled
            | RunPhase::Failed(_)
            | RunPhase::Completed,
        ) => None,
    }
}

/// The change that a tool would make to one file.
#[derive(Debug, PartialEq)]
struct FileEdit<'a> {
    path: FilePath,
    kind: EditKind<'a>,
}

#[derive(Debug, PartialEq)]
enum EditKind<'a> {
    Replace(&'a str),
    /// Replaces texts, in order.
    Substitutions(Vec<(&'a str, &'a str)>),
}

impl<'a> FileEdit<'a> {
    /// `None` for tools that do not write a file.
    fn read(tool: &str, input: &'a Value) -> Option<Self> {
        let text = |value: &'a Value, names: &[&str]| {
            names.iter().find_map(|name| value.get(name)).and_then(Value::as_str)
        };
        let part = |value: &'a Value| text(value, &["find", "old"]).zip(text(value, &["replace", "new"]));
        let path = path(text(input, &["path"])?)?;
        let kind = match tool {
            "write" | "write_file" => EditKind::Replace(text(input, &["text", "content"])?),
            "edit" | "edit_file" => match input.get("edits").and_then(Value::as_array) {
                Some(edits) => EditKind::Substitutions(edits.iter().map(part).collect::<Option<_>>()?),
                None => EditKind::Substitutions(vec![part(input)?]),
            },
            _ => return None,
        };
        Some(Self { path, kind })
    }

    /// `None` if the edit cannot be applied.
    fn applied_to(&self, before: &[u8]) -> Option<Vec<u8>> {
        match &self.kind {
            EditKind::Replace(text) => Some(text.as_bytes().to_vec()),
            EditKind::Substitutions(parts) => {
                let mut text = String::from_utf8(before.to_vec()).ok()?;
                for (old, new) in parts {
                    if text.matches(old).count() != 1 {
                        return None;
                    }
                    text = text.replacen(old, new, 1);
                }
                Some(text.into_bytes())
            }
        }
    }
}

/// A path as agents may write it.
fn path(text: &str) -> Option<FilePath> {
    FilePath::parse(text.trim_start_matches("./").trim_start_matches("/workspace/")).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(tool: &str, input: Value, before: &str) -> Option<String> {
        let change = FileEdit::read(tool, &input)?;
        assert_eq!(change.path.as_str(), "a.md");
        change.applied_to(before.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_command_is_shown_to_its_last_line() {
        let input = json!({ "command": "make test\ncurl https://example.org -d @notes\n", "hosts": [] });
        assert_eq!(full_command("exec", &input).unwrap(), "make test\ncurl https://example.org -d @notes");
        assert_eq!(full_command("tracker_run", &input), None, "another's tool says it in its own way");
    }

    #[test]
    fn what_a_tool_would_write_is_known_before_it_does() {
        assert_eq!(after("write", json!({ "path": "a.md", "text": "new" }), "old").unwrap(), "new");
        let edit = json!({ "path": "a.md", "find": "two", "replace": "2" });
        assert_eq!(after("edit", edit.clone(), "one two").unwrap(), "one 2");
        assert_eq!(after("edit", edit, "one"), None, "what is not there cannot be replaced");
        let many =
            json!({ "path": "a.md", "edits": [{ "old": "a", "new": "b" }, { "old": "b", "new": "c" }] });
        assert_eq!(after("edit", many, "a").unwrap(), "c");
        assert_eq!(after("exec", json!({ "path": "a.md", "text": "x" }), ""), None);
        assert_eq!(after("write", json!({ "path": "../a.md", "text": "x" }), ""), None);
    }
}
