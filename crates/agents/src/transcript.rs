//! What a model is told: an agent's history in the words of a conversation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use models::chat::{Message, Reply, ToolCall, ToolResult};
use shared_types::ContentHash;
use shared_types::payload::llm::ReplyEnd;
use shared_types::payload::run::Reply as PersonSaid;
use shared_types::payload::task::MessageKind;
use shared_types::payload::tool::{StopReason, ToolReport, ToolStatus};

use crate::fit::shortened;
use crate::history::{HistoryEntry, History, Speaker, TaskHistory};
use crate::plan::{ROUNDS_BEFORE_WARNING, repeat_ask_id};
use crate::loop_detection::repeated_rounds;
use crate::tools::ToolKind;

/// Texts by their hash.
pub type Texts = BTreeMap<ContentHash, Arc<str>>;

/// What a model is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    pub messages: Vec<Message>,
    /// What the person said in answer to a call, by the place of its message and its own place among the results. Nothing
    /// in the text of a result tells that: a page may say of itself that it is the person.
    pub(crate) answers: BTreeMap<Place, String>,
}

/// Where a result stands: in which message, and there.
pub(crate) type Place = (usize, usize);

/// Before words of the person.
const PERSON: &str = "The person says: ";
const IN_CIRCLES: &str = "You made the same calls again and again, and their results stay the same. Do something \
    else, or end your work with what you know and say what is missing.";
/// Of what a call printed, a model reads this many bytes, from the beginning and from the end.
const PRINTED: usize = 10_000;

/// The contents that a conversation is made of.
pub fn needed(task: &TaskHistory) -> BTreeSet<ContentHash> {
    let mut hashes = BTreeSet::from([task.instruction.hash]);
    for entry in &task.entries {
        match entry {
            HistoryEntry::ModelReply { reply, .. } => drop(hashes.insert(reply.hash)),
            HistoryEntry::ToolResult { report, .. } => hashes.extend(report.output.map(|output| output.hash)),
            HistoryEntry::Message { words, .. } => drop(hashes.insert(words.hash)),
        }
    }
    hashes
}

/// Where an address can stand so that nobody made it up after having read untrusted words: in what the person said, in
/// what the web itself answered anywhere in the run, and in what the agent was told before anybody who told it had read
/// such words. What a labelled agent says, writes or prints may hold anything that it knows.
pub(crate) fn sources(history: &History, task: &TaskHistory, from_web: &[ToolKind]) -> BTreeSet<ContentHash> {
    let is_one_of = |tool: &str, kinds: &[ToolKind]| kinds.iter().any(|kind| kind.name() == tool);
    let in_run = history.tasks.values().flat_map(|task| &task.entries).filter_map(|entry| match entry {
        HistoryEntry::Message { from: Speaker::Person, words, .. } => Some(words.hash),
        HistoryEntry::ToolResult { tool, report, .. } if is_one_of(tool, from_web) || is_one_of(tool, &[ToolKind::Ask]) => {
            report.output.map(|output| output.hash)
        }
        HistoryEntry::Message { .. } | HistoryEntry::ToolResult { .. } | HistoryEntry::ModelReply { .. } => None,
    });
    let to_it = task.entries.iter().filter_map(|entry| match entry {
        HistoryEntry::Message { words, is_untainted: true, .. } => Some(words.hash),
        HistoryEntry::ToolResult { report, is_untainted: true, .. } => report.output.map(|output| output.hash),
        HistoryEntry::Message { .. } | HistoryEntry::ToolResult { .. } | HistoryEntry::ModelReply { .. } => None,
    });
    let begun = task.is_untainted.then_some(task.instruction.hash);
    let objective = history.start.as_ref().map(|start| start.objective.hash);
    in_run.chain(to_it).chain(begun).chain(objective).collect()
}

/// The conversation so far.
pub fn told(history: &History, task: &TaskHistory, texts: &Texts) -> Conversation {
    let text = |hash: &ContentHash| texts.get(hash).map_or("(these words were purged)", |text| text);
    let mut messages = vec![Message::User { text: text(&task.instruction.hash).to_owned() }];
    let mut answers = BTreeMap::new();
    let mut heard = task.entries.iter().filter_map(|entry| match entry {
        HistoryEntry::Message { seq, from, words, .. } => Some((*seq, said_by(history, *from, text(&words.hash)))),
        HistoryEntry::ModelReply { .. } | HistoryEntry::ToolResult { .. } => None,
    });
    let mut next = heard.next();
    for (at, entry) in task.entries.iter().enumerate() {
        let HistoryEntry::ModelReply { seen, reply, ended, .. } = entry else { continue };
        warn_of_loop(&mut messages, &task.entries[..at]);
        while let Some((_, words)) = next.take_if(|(seq, _)| *seq <= *seen) {
            add_words(&mut messages, words);
            next = heard.next();
        }
        let said: Option<Reply> = serde_json::from_str(text(&reply.hash)).ok();
        let (text_said, calls) = said.map(|reply| (reply.text, reply.calls)).unwrap_or_default();
        let results = results(history, task, at, &calls, texts);
        // What was cut is thrown away where nothing is left of it.
        let nudge = nudge(*ended).filter(|_| calls.is_empty());
        if nudge.is_none() || !text_said.trim().is_empty() {
            messages.push(Message::Model { text: text_said, calls });
        }
        if let Some(nudge) = nudge {
            add_words(&mut messages, nudge.to_owned());
        }
        if !results.is_empty() {
            let (results, said): (Vec<_>, Vec<_>) = results.into_iter().unzip();
            let said = said.into_iter().enumerate();
            answers.extend(said.filter_map(|(at, words)| Some(((messages.len(), at), words?))));
            messages.push(Message::Tools { results });
        }
    }
    warn_of_loop(&mut messages, &task.entries);
    while let Some((_, words)) = next {
        add_words(&mut messages, words);
        next = heard.next();
    }
    Conversation { messages, answers }
}

/// Whoever goes in circles hears of it before it is given up.
fn warn_of_loop(messages: &mut Vec<Message>, entries: &[HistoryEntry]) {
    if repeated_rounds(entries) == ROUNDS_BEFORE_WARNING {
        add_words(messages, IN_CIRCLES.to_owned());
    }
}

/// What is said to a model that did not come to an end.
fn nudge(ended: ReplyEnd) -> Option<&'static str> {
    match ended {
        ReplyEnd::Whole | ReplyEnd::Refused => None,
        ReplyEnd::Cut => {
            Some("Your answer was too long and was cut off. Go on from there, in smaller steps.")
        }
        ReplyEnd::Empty => Some("You said nothing. Go on with your work, or say how it ended."),
    }
}

/// Words of the person's side in a row are one message.
fn add_words(messages: &mut Vec<Message>, words: String) {
    match messages.last_mut() {
        Some(Message::User { text }) => {
            text.push_str("\n\n");
            text.push_str(&words);
        }
        Some(Message::Model { .. } | Message::Tools { .. }) | None => {
            messages.push(Message::User { text: words })
        }
    }
}

fn said_by(history: &History, from: Speaker, words: &str) -> String {
    match from {
        Speaker::Person => format!("{PERSON}{words}"),
        Speaker::Agent { task, kind } => {
            let role = history.tasks.get(&task).map_or("agent", |task| &*task.role);
            let kind = match kind {
                MessageKind::Finding => "found",
                MessageKind::Question => "asks",
                MessageKind::Answer => "answers",
                MessageKind::Progress => "is on its way",
                MessageKind::Completion => "is done",
                MessageKind::Failure => "failed",
            };
            format!("The {role} {kind}: {words}")
        }
    }
}

/// What came of the calls of a turn, in their order, and what the person said to each.
fn results(
    history: &History,
    task: &TaskHistory,
    at: usize,
    calls: &[ToolCall],
    texts: &Texts,
) -> Vec<(ToolResult, Option<String>)> {
    let Some(HistoryEntry::ModelReply { calls: wanted, .. }) = task.entries.get(at) else { return Vec::new() };
    let pairs = calls.iter().zip(wanted).filter_map(|(call, wanted)| {
        let (status, report) = task.result(wanted.call)?;
        let printed = report.output.and_then(|output| texts.get(&output.hash)).map_or("", |text| text);
        let (mut text, failed) = in_words(status, report, printed);
        let mut said = (*wanted.tool == *ToolKind::Ask.name()).then(|| text.clone());
        if let Some(reply) = history.answers.get(&repeat_ask_id(wanted.call)) {
            let words = format!("{PERSON}{}", to_a_repeat(reply));
            // First, so that it stays when the rest is left out.
            text = format!("{words}\n{text}");
            said = Some(words);
        }
        Some((ToolResult { id: call.id.clone(), tool: call.tool.clone(), text, failed }, said))
    });
    pairs.collect()
}

/// Whether a call that was cut off may be made again, in words.
fn to_a_repeat(reply: &PersonSaid) -> String {
    match reply {
        PersonSaid::Allow(_) => "it may be made again.".to_owned(),
        PersonSaid::Deny(why) | PersonSaid::Words(why) if !why.trim().is_empty() => {
            format!("do not make it again: {why}")
        }
        PersonSaid::Deny(_) | PersonSaid::Words(_) | PersonSaid::Silence => {
            "do not make it again.".to_owned()
        }
    }
}

/// A result as a model reads it, and whether it is one to worry about.
pub(crate) fn in_words(status: &ToolStatus, report: &ToolReport, printed: &str) -> (String, bool) {
    let (first, failed) = match status {
        ToolStatus::Exited { code: 0 } => (None, false),
        ToolStatus::Exited { code } => (Some(format!("exit code {code}")), true),
        ToolStatus::Killed { signal } => (Some(format!("killed by signal {signal}; nothing was kept")), true),
        ToolStatus::Stopped { why } => (Some(format!("{}; nothing was kept", stopped(*why))), true),
        ToolStatus::Failed { reason } => (Some(format!("error: {reason}")), true),
        ToolStatus::Interrupted { reason } => (Some(format!("interrupted: {reason}")), true),
        ToolStatus::Discarded => (Some("the person threw away what it did".into()), true),
    };
    let notes = report.notes.iter().map(|note| format!("note: {note}"));
    let lines: Vec<String> = first
        .into_iter()
        .chain((!printed.is_empty()).then(|| shortened(printed, PRINTED, left_out)))
        .chain(notes)
        .collect();
    (if lines.is_empty() { "done".into() } else { lines.join("\n") }, failed)
}

fn left_out(bytes: usize) -> String {
    format!("[{bytes} bytes are left out]")
}

fn stopped(why: StopReason) -> &'static str {
    match why {
        StopReason::Cancelled => "stopped by the person",
        StopReason::Time => "stopped: out of time",
        StopReason::Memory => "stopped: out of memory",
        StopReason::Processes => "stopped: too many processes",
        StopReason::Disk => "stopped: out of disk",
        StopReason::Output => "stopped: too much output",
        StopReason::Files => "stopped: too many files",
    }
}
