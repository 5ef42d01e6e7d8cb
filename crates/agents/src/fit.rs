//! Shortens a conversation to the size that its model can read (ADR 0023).
//!
//! First the results of each turn are cut to their share of the limit, then old results are shortened, then old turns
//! become a list with one line for each call. The task, the calls of the last turn and, as far as possible, messages to
//! the agent stay. Everything is still in the log, and marks show the agent where text is missing. More is removed than
//! necessary, so that the beginning, which providers cache, stays the same for several turns.

use std::collections::BTreeMap;

use models::chat::{Message, ToolCall, ToolResult};

use crate::shorten::{MIN_CUT, one_line, shortened};
use crate::transcript::{Conversation, ResultPosition};

/// The smallest useful limit in bytes. A provider that accepts less rejects the prompt, with a reason.
const MIN_LIMIT: usize = 3_000;
/// At least one part in this many of the limit is freed at once.
const FREED_SHARE: usize = 4;
/// The results of one turn take at most one part in this many of the limit.
const RESULTS_SHARE: usize = 2;
/// The list of omitted turns takes at most one part in this many of the limit.
const LIST_SHARE: usize = 8;
/// Bytes of the list besides its lines.
const LIST_OVERHEAD: usize = 200;
/// Bytes of an old result: the first attempt, and the second if that does not free enough.
const OLD_RESULT_LIMITS: [usize; 2] = [1_200, 120];
/// Bytes of the input of an omitted call.
const INPUT_LIMIT: usize = 120;
/// Bytes of an omitted message to the agent.
const MESSAGE_LIMIT: usize = 1_000;

/// Marks a cut.
const LEFT_OUT: &str = "[more is left out to make room]";

/// Shortens a conversation to `limit` bytes. It stays longer if the parts that are never omitted are.
pub(crate) fn fit(conversation: Conversation, limit: usize) -> Vec<Message> {
    let Conversation { mut messages, person_answers } = conversation;
    let limit = limit.max(MIN_LIMIT);
    let stride = limit / FREED_SHARE;
    let excess = |messages: &[Message]| {
        let size: usize = messages.iter().map(Message::estimated_bytes).sum();
        size.checked_sub(limit).filter(|excess| *excess > 0).map(|excess| excess.next_multiple_of(stride))
    };
    if excess(&messages).is_none() {
        return messages;
    }
    for message in &mut messages {
        if let Message::Tools { results } = message {
            share_limit(results, limit / RESULTS_SHARE);
        }
    }
    for limit in OLD_RESULT_LIMITS {
        if let Some(excess) = excess(&messages) {
            shorten_old_results(&mut messages, &person_answers, excess, limit);
        }
    }
    if let Some(excess) = excess(&messages) {
        omit_turns(&mut messages, &person_answers, excess, limit / LIST_SHARE);
    }
    messages
}

/// Shortens a text. The mark names no number of bytes, because the text may have been cut before.
fn cut(text: &str, limit: usize) -> String {
    shortened(text, limit, |_| LEFT_OUT.to_owned())
}

/// Divides a limit among the results of one turn: small results stay whole, the others get equal parts.
fn share_limit(results: &mut [ToolResult], limit: usize) {
    let mut sizes: Vec<usize> = results.iter().map(|result| result.text.len()).collect();
    if sizes.iter().sum::<usize>() <= limit {
        return;
    }
    sizes.sort_unstable();
    let (mut left, mut sharing) = (limit, sizes.len());
    for size in sizes {
        if size > left / sharing {
            break;
        }
        left -= size;
        sharing -= 1;
    }
    let part = (left / sharing.max(1)).saturating_sub(MIN_CUT);
    for result in results {
        result.text = cut(&result.text, part);
    }
}

/// The index at which each turn of the model starts.
fn turn_starts(messages: &[Message]) -> Vec<usize> {
    let is_turn = |(at, message): (usize, &Message)| matches!(message, Message::Model { .. }).then_some(at);
    messages.iter().enumerate().filter_map(is_turn).collect()
}

/// The person's answers in tool results, which the agent cannot obtain again.
type PersonAnswers = BTreeMap<ResultPosition, String>;

/// Shortens results to `limit` bytes, oldest first, until `excess` bytes are freed. Those of the last turn stay.
fn shorten_old_results(
    messages: &mut [Message],
    person_answers: &PersonAnswers,
    mut excess: usize,
    limit: usize,
) {
    let last = turn_starts(messages).last().copied().unwrap_or_default();
    for (at, message) in messages[..last].iter_mut().enumerate() {
        let Message::Tools { results } = message else { continue };
        for (index, result) in results.iter_mut().enumerate() {
            let before = result.text.len();
            let is_answer = person_answers.contains_key(&(at, index));
            let limit = if is_answer { limit.max(MESSAGE_LIMIT) } else { limit };
            result.text = cut(&result.text, limit);
            excess = excess.saturating_sub(before - result.text.len());
        }
        if excess == 0 {
            return;
        }
    }
}

fn beginning(text: &str) -> String {
    let line = one_line(text);
    line[..line.floor_char_boundary(INPUT_LIMIT)].to_owned()
}

/// Replaces the oldest turns by a list of at most `list_limit` bytes in the first message, so that `excess` bytes are
/// freed. The last turn stays.
fn omit_turns(messages: &mut Vec<Message>, person_answers: &PersonAnswers, excess: usize, list_limit: usize) {
    let starts = turn_starts(messages);
    let Some((first, rest)) = starts.split_first() else { return };
    let size = |until: usize| messages[*first..until].iter().map(Message::estimated_bytes).sum::<usize>();
    let until = rest.iter().copied().find(|until| size(*until) >= excess + list_limit);
    let Some(until) = until.or(rest.last().copied()) else { return };
    let count = starts.iter().filter(|start| **start < until).count();
    let omitted: Vec<Message> = messages.drain(*first..until).collect();
    let mut lines: Vec<ListLine> = Vec::new();
    for (at, message) in omitted.iter().enumerate() {
        let results =
            if let Some(Message::Tools { results }) = omitted.get(at + 1) { results } else { &[][..] };
        let answer = |index| person_answers.get(&(first + at + 1, index)).map(String::as_str);
        lines.extend(list_lines(message, results, answer));
    }
    if let Some(Message::User { text }) = messages.first_mut() {
        let list = join_newest(&lines, list_limit.saturating_sub(LIST_OVERHEAD));
        *text = format!("{text}\n\n[{count} earlier turns of yours are left out. In them:]{list}");
    }
}

/// A line of the list of omitted turns.
struct ListLine {
    text: String,
    /// Whether it is a message to the agent or an answer of the person, which are kept longest.
    is_message: bool,
}

/// Joins as many lines as fit into `limit` bytes, in their order. Messages take precedence over calls, and new lines over
/// old ones.
fn join_newest(lines: &[ListLine], limit: usize) -> String {
    let (mut left, mut taken) = (limit, vec![false; lines.len()]);
    for is_message in [true, false] {
        for (line, taken) in
            lines.iter().zip(&mut taken).rev().filter(|(line, _)| line.is_message == is_message)
        {
            let Some(rest) = left.checked_sub(line.text.len() + 1) else { break };
            (left, *taken) = (rest, true);
        }
    }
    let shown = lines.iter().zip(&taken).filter(|(_, taken)| **taken);
    let shown: String = shown.map(|(line, _)| format!("\n{}", line.text)).collect();
    if taken.contains(&false) { format!("\n- …{shown}") } else { shown }
}

/// The lines for an omitted message: its text, or one line for each call with its status. Tool output must not appear here,
/// because the list is part of the instructions to the agent.
fn list_lines<'a>(
    message: &Message,
    results: &[ToolResult],
    answer: impl Fn(usize) -> Option<&'a str>,
) -> Vec<ListLine> {
    match message {
        Message::User { text } => {
            vec![ListLine { text: format!("- {}", cut(text, MESSAGE_LIMIT)), is_message: true }]
        }
        Message::Model { text, calls } => {
            let own = (!text.trim().is_empty()).then(|| format!("- You said: {}", beginning(text)));
            let own = own.map(|text| ListLine { text, is_message: false });
            own.into_iter().chain(calls.iter().map(|call| call_line(call, results, &answer))).collect()
        }
        Message::Tools { .. } => Vec::new(),
    }
}

fn call_line<'a>(
    call: &ToolCall,
    results: &[ToolResult],
    answer: impl Fn(usize) -> Option<&'a str>,
) -> ListLine {
    let request = format!("- {} {}", one_line(&call.tool), beginning(&call.input.to_string()));
    let result = results.iter().enumerate().find(|(_, result)| result.id == call.id);
    let (status, is_message) = match result {
        Some((index, result)) => match answer(index) {
            Some(words) => (cut(words, MESSAGE_LIMIT), true),
            None => (if result.failed { "failed" } else { "done" }.to_owned(), false),
        },
        None => ("…".to_owned(), false),
    };
    ListLine { text: format!("{request}: {status}"), is_message }
}

#[cfg(test)]
mod tests;
