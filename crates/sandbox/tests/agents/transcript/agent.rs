//! One agent of a run, as the log tells it.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use agents::history::{History, HistoryEntry, TaskHistory};
use agents::transcript;
use event_log::{EventLog, read_content};
use shared_types::payload::run::{ApprovalScope, AskKind, Reply, RunEvent};
use shared_types::payload::task::TaskOutcome;
use shared_types::{Event, OpId, Payload};

use super::{Line, lines, row};

pub(super) struct Agent {
    pub(super) role: String,
    pub(super) lines: Vec<Line>,
    /// The agent that it works for; `None` if it works for the person.
    pub(super) requester: Option<String>,
    /// Its calls, in the order of the lines that tell of them.
    calls: Vec<OpId>,
    /// What the person was asked about each call, and answered.
    questions: BTreeMap<OpId, String>,
    outcome: Option<TaskOutcome>,
}

impl Agent {
    pub(super) fn new(log: &dyn EventLog, history: &History, events: &[Event], task: &TaskHistory) -> Self {
        let text = |hash| String::from_utf8(read_content(log, &hash).unwrap()).unwrap().into();
        let texts = transcript::needed_contents(task).into_iter().map(|hash| (hash, text(hash))).collect();
        let calls = task.entries.iter().flat_map(|entry| match entry {
            HistoryEntry::ModelReply { calls, .. } => calls.iter().map(|wanted| wanted.call).collect(),
            HistoryEntry::ToolResult { .. } | HistoryEntry::Message { .. } => Vec::new(),
        });
        Self {
            role: task.role.to_string(),
            lines: lines(&transcript::conversation(history, task, &texts).messages),
            requester: task.parent.map(|parent| history.tasks[&parent].role.to_string()),
            calls: calls.collect(),
            questions: questions(history, events),
            outcome: task.outcome.clone(),
        }
    }
}

/// All questions of a run with their answers, by the call that they are about.
fn questions(history: &History, events: &[Event]) -> BTreeMap<OpId, String> {
    let mut questions = BTreeMap::<OpId, String>::new();
    for event in events {
        let Payload::Run(RunEvent::Ask(asked)) = &event.payload else { continue };
        let (call, question) = question(&asked.about);
        let rows = questions.entry(call).or_default();
        rows.push_str(&row("asks", &question));
        rows.push_str(
            &history.answers.get(&asked.ask).map(|reply| row("hears", &answer(reply))).unwrap_or_default(),
        );
    }
    questions
}

fn question(about: &AskKind) -> (OpId, String) {
    match about {
        AskKind::Approval { call, title, why, pattern, is_final, .. } => {
            let end = if *is_final { "\nIt cannot be taken back." } else { "" };
            (*call, format!("{title}?\n{why}\nFor more than once: {pattern}{end}"))
        }
        AskKind::Question { call, text, choices } => {
            let choices: String = choices.iter().map(|choice| format!("\n- {choice}")).collect();
            (*call, format!("{text}{choices}"))
        }
        AskKind::Interrupted { call, title, .. } => (*call, format!("{title}, again?")),
        AskKind::Outgoing { call, title, .. } => (*call, format!("{title} goes out soon.")),
    }
}

fn answer(reply: &Reply) -> String {
    match reply {
        Reply::Allow(ApprovalScope::Once) => "yes, once".into(),
        Reply::Allow(ApprovalScope::Run) => "yes, in this run".into(),
        Reply::Allow(ApprovalScope::Always) => "yes, always".into(),
        Reply::Deny(why) => format!("no: {why}"),
        Reply::Words(words) => words.to_string(),
        Reply::Silence => "nothing".into(),
    }
}

impl Display for Agent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let requester = self.requester.as_ref().map(|role| format!(", for the {role}"));
        writeln!(f, "{}{}", self.role, requester.unwrap_or_default())?;
        let mut calls = self.calls.iter();
        for line in &self.lines {
            f.write_str(&line.row())?;
            if let Line::Calls { .. } = line {
                let questions = calls.next().and_then(|call| self.questions.get(call));
                f.write_str(questions.map_or("", String::as_str))?;
            }
        }
        f.write_str(&match &self.outcome {
            None => String::new(),
            Some(TaskOutcome::Done) => row("ends", "done"),
            Some(TaskOutcome::Failed(why)) => row("ends", &format!("failed: {why}")),
            Some(TaskOutcome::Cancelled) => row("ends", "cancelled"),
        })
    }
}
