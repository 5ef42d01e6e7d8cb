//! Turns the history of an agent into the conversation that its model reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use models::chat::{Message, Reply, ToolCall, ToolResult};
use shared_types::ContentHash;
use shared_types::payload::llm::ReplyEnd;
use shared_types::payload::run::Reply as PersonReply;
use shared_types::payload::task::MessageKind;
use shared_types::payload::tool::{StopReason, ToolReport, ToolStatus};

use crate::ask_ids::repeat_ask_id;
use crate::history::{History, HistoryEntry, MessageSender, TaskHistory};
use crate::loop_detection::repeated_rounds;
use crate::plan::ROUNDS_BEFORE_WARNING;
use crate::shorten::shortened;
use crate::tool_kind::ToolKind;

/// Texts by their hash.
pub type Texts = BTreeMap<ContentHash, Arc<str>>;

/// The messages for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    pub messages: Vec<Message>,
    /// The person's words in tool results, by position. The text of a result does not show whose words it holds: a web page
    /// may claim to be the person.
    pub(crate) person_answers: BTreeMap<ResultPosition, String>,
}

/// The position of a tool result: the index of its message, and its index there.
pub(crate) type ResultPosition = (usize, usize);

/// The prefix of the person's words.
const PERSON_PREFIX: &str = "The person says: ";
const LOOP_WARNING: &str = "You made the same calls again and again, and their results stay the same. Do something \
    else, or end your work with what you know and say what is missing.";
/// The most bytes of a tool's output that a model reads, from the beginning and the end.
const OUTPUT_LIMIT: usize = 10_000;

/// The contents that the conversation of an agent consists of.
pub fn needed_contents(task: &TaskHistory) -> BTreeSet<ContentHash> {
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

/// Texts whose addresses a tainted agent may fetch without asking: the person's messages, web results of the whole run,
/// and what this agent received from untainted senders. The text of a tainted agent does not count, because it may encode
/// anything that the agent knows.
pub(crate) fn trusted_address_sources(
    history: &History,
    task: &TaskHistory,
    from_web: &[ToolKind],
) -> BTreeSet<ContentHash> {
    let is_one_of = |tool: &str, kinds: &[ToolKind]| kinds.iter().any(|kind| kind.name() == tool);
    let in_run = history.tasks.values().flat_map(|task| &task.entries).filter_map(|entry| match entry {
        HistoryEntry::Message { from: MessageSender::Person, words, .. } => Some(words.hash),
        HistoryEntry::ToolResult { tool, report, .. }
            if is_one_of(tool, from_web) || is_one_of(tool, &[ToolKind::Ask]) =>
        {
            report.output.map(|output| output.hash)
        }
        HistoryEntry::Message { .. } | HistoryEntry::ToolResult { .. } | HistoryEntry::ModelReply { .. } => {
            None
        }
    });
    let received = task.entries.iter().filter_map(|entry| match entry {
        HistoryEntry::Message { words, is_untainted: true, .. } => Some(words.hash),
        HistoryEntry::ToolResult { report, is_untainted: true, .. } => {
            report.output.map(|output| output.hash)
        }
        HistoryEntry::Message { .. } | HistoryEntry::ToolResult { .. } | HistoryEntry::ModelReply { .. } => {
            None
        }
    });
    let instruction = task.is_untainted.then_some(task.instruction.hash);
    let objective = history.start.as_ref().map(|start| start.objective.hash);
    in_run.chain(received).chain(instruction).chain(objective).collect()
}

/// The conversation of an agent so far.
pub fn conversation(history: &History, task: &TaskHistory, texts: &Texts) -> Conversation {
    let text = |hash: &ContentHash| texts.get(hash).map_or("(these words were purged)", |text| text);
    let mut messages = vec![Message::User { text: text(&task.instruction.hash).to_owned() }];
    let mut person_answers = BTreeMap::new();
    let mut received = task.entries.iter().filter_map(|entry| match entry {
        HistoryEntry::Message { seq, from, words, .. } => {
            Some((*seq, message_text(history, *from, text(&words.hash))))
        }
        HistoryEntry::ModelReply { .. } | HistoryEntry::ToolResult { .. } => None,
    });
    let mut next = received.next();
    for (at, entry) in task.entries.iter().enumerate() {
        let HistoryEntry::ModelReply { seen, reply, ended, .. } = entry else { continue };
        warn_of_loop(&mut messages, &task.entries[..at]);
        while let Some((_, words)) = next.take_if(|(seq, _)| *seq <= *seen) {
            add_user_text(&mut messages, words);
            next = received.next();
        }
        let model_reply: Option<Reply> = serde_json::from_str(text(&reply.hash)).ok();
        let (reply_text, calls) = model_reply.map(|reply| (reply.text, reply.calls)).unwrap_or_default();
        let results = tool_results(history, task, at, &calls, texts);
        // A cut-off or empty reply without any text is left out.
        let nudge = nudge(*ended).filter(|_| calls.is_empty());
        if nudge.is_none() || !reply_text.trim().is_empty() {
            messages.push(Message::Model { text: reply_text, calls });
        }
        if let Some(nudge) = nudge {
            add_user_text(&mut messages, nudge.to_owned());
        }
        if !results.is_empty() {
            let (results, answers): (Vec<_>, Vec<_>) = results.into_iter().unzip();
            let answers = answers.into_iter().enumerate();
            person_answers.extend(answers.filter_map(|(at, words)| Some(((messages.len(), at), words?))));
            messages.push(Message::Tools { results });
        }
    }
    warn_of_loop(&mut messages, &task.entries);
    while let Some((_, words)) = next {
        add_user_text(&mut messages, words);
        next = received.next();
    }
    Conversation { messages, person_answers }
}

/// Warns an agent that repeats itself, one round before it fails.
fn warn_of_loop(messages: &mut Vec<Message>, entries: &[HistoryEntry]) {
    if repeated_rounds(entries) == ROUNDS_BEFORE_WARNING {
        add_user_text(messages, LOOP_WARNING.to_owned());
    }
}

/// The message to a model whose reply was cut off or empty.
fn nudge(ended: ReplyEnd) -> Option<&'static str> {
    match ended {
        ReplyEnd::Whole | ReplyEnd::Refused => None,
        ReplyEnd::Cut => {
            Some("Your answer was too long and was cut off. Go on from there, in smaller steps.")
        }
        ReplyEnd::Empty => Some("You said nothing. Go on with your work, or say how it ended."),
    }
}

/// Adds text to the last message if that is a user message, else as a new user message.
fn add_user_text(messages: &mut Vec<Message>, addition: String) {
    match messages.last_mut() {
        Some(Message::User { text }) => {
            text.push_str("\n\n");
            text.push_str(&addition);
        }
        Some(Message::Model { .. } | Message::Tools { .. }) | None => {
            messages.push(Message::User { text: addition })
        }
    }
}

fn message_text(history: &History, from: MessageSender, words: &str) -> String {
    match from {
        MessageSender::Person => format!("{PERSON_PREFIX}{words}"),
        MessageSender::Agent { task, kind } => {
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

/// The results of a turn's calls, in their order, each with the person's words in it.
fn tool_results(
    history: &History,
    task: &TaskHistory,
    at: usize,
    calls: &[ToolCall],
    texts: &Texts,
) -> Vec<(ToolResult, Option<String>)> {
    let Some(HistoryEntry::ModelReply { calls: requested, .. }) = task.entries.get(at) else {
        return Vec::new();
    };
    let pairs = calls.iter().zip(requested).filter_map(|(call, requested)| {
        let (status, report) = task.result(requested.call)?;
        let output = report.output.and_then(|output| texts.get(&output.hash)).map_or("", |text| text);
        let (mut text, failed) = result_text(status, report, output);
        let mut answer = (*requested.tool == *ToolKind::Ask.name()).then(|| text.clone());
        if let Some(reply) = history.answers.get(&repeat_ask_id(requested.call)) {
            let words = format!("{PERSON_PREFIX}{}", repeat_answer(reply));
            // The answer comes first, so that it stays when the result is shortened.
            text = format!("{words}\n{text}");
            answer = Some(words);
        }
        Some((ToolResult { id: call.id.clone(), tool: call.tool.clone(), text, failed }, answer))
    });
    pairs.collect()
}

/// The person's answer about repeating an interrupted call.
fn repeat_answer(reply: &PersonReply) -> String {
    match reply {
        PersonReply::Allow(_) => "it may be made again.".to_owned(),
        PersonReply::Deny(why) | PersonReply::Words(why) if !why.trim().is_empty() => {
            format!("do not make it again: {why}")
        }
        PersonReply::Deny(_) | PersonReply::Words(_) | PersonReply::Silence => {
            "do not make it again.".to_owned()
        }
    }
}

/// The text of a tool result for the model, and whether the call failed.
fn result_text(status: &ToolStatus, report: &ToolReport, output: &str) -> (String, bool) {
    let (first_line, failed) = match status {
        ToolStatus::Exited { code: 0 } => (None, false),
        ToolStatus::Exited { code } => (Some(format!("exit code {code}")), true),
        ToolStatus::Killed { signal } => (Some(format!("killed by signal {signal}; nothing was kept")), true),
        ToolStatus::Stopped { why } => (Some(format!("{}; nothing was kept", stop_reason(*why))), true),
        ToolStatus::Failed { reason } => (Some(format!("error: {reason}")), true),
        ToolStatus::Interrupted { reason } => (Some(format!("interrupted: {reason}")), true),
        ToolStatus::Discarded => (Some("the person threw away what it did".into()), true),
    };
    let notes = report.notes.iter().map(|note| format!("note: {note}"));
    let lines: Vec<String> = first_line
        .into_iter()
        .chain((!output.is_empty()).then(|| shortened(output, OUTPUT_LIMIT, omission_mark)))
        .chain(notes)
        .collect();
    (if lines.is_empty() { "done".into() } else { lines.join("\n") }, failed)
}

fn omission_mark(bytes: usize) -> String {
    format!("[{bytes} bytes are left out]")
}

fn stop_reason(why: StopReason) -> &'static str {
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
