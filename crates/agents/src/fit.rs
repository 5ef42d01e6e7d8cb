//! A conversation that is longer than its model can read, made to fit.
//!
//! First the results of one turn share a part of the room, then old results are shortened, then old turns are told in a
//! line for each call. The task, the calls of the last turn and, as far as possible, what the agent was told stay. All of
//! it is in the log, and the agent sees where something is left out. More is left out than has to be: then the beginning
//! stays the same for a while, and so does what is cached of it.

use std::collections::BTreeMap;

use models::chat::{Message, ToolCall, ToolResult};

use crate::tools::one_line;
use crate::transcript::{Place, Conversation};

/// With less room than this nobody can work; whoever has less is refused, and hears why.
const LEAST: usize = 3_000;
/// The share of the room that is made free at once.
const STRIDE: usize = 4;
/// Of the room, the results of one turn take at most this share, and the list of turns that were left out this one.
const RESULTS: usize = 2;
const LIST: usize = 8;
/// What the list takes beside its lines.
const LIST_FRAME: usize = 200;
/// Bytes of an old result; where that is not enough, of any old result.
const OLD: [usize; 2] = [1_200, 120];
/// Bytes of the input of a call that was left out.
const INPUT: usize = 120;
/// Bytes of something that the agent was told.
const HEARD: usize = 1_000;
/// Cutting what is hardly longer saves nothing.
const WORTHWHILE: usize = 120;

const LEFT_OUT: &str = "[more is left out to make room]";

/// Leaves out as much as has to be for a conversation to take no more than so many bytes. It may take more all the same,
/// if what is never left out does.
pub(crate) fn fit(told: Conversation, room: usize) -> Vec<Message> {
    let Conversation { mut messages, answers } = told;
    let room = room.max(LEAST);
    let stride = room / STRIDE;
    let too_much = |messages: &[Message]| {
        let size: usize = messages.iter().map(Message::estimated_bytes).sum();
        size.checked_sub(room).filter(|much| *much > 0).map(|much| much.next_multiple_of(stride))
    };
    if too_much(&messages).is_none() {
        return messages;
    }
    for message in &mut messages {
        if let Message::Tools { results } = message {
            share(results, room / RESULTS);
        }
    }
    for most in OLD {
        if let Some(much) = too_much(&messages) {
            shorten_old_results(&mut messages, &answers, much, most);
        }
    }
    if let Some(much) = too_much(&messages) {
        leave_out_turns(&mut messages, &answers, much, room / LIST);
    }
    messages
}

/// The beginning and the end of a text that is longer than so many bytes, with a word about the bytes between them.
pub(crate) fn shortened(text: &str, most: usize, word: impl FnOnce(usize) -> String) -> String {
    if text.len() <= most + WORTHWHILE {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 5 * 3);
    let tail = text.ceil_char_boundary(text.len() - most / 5 * 2);
    format!("{}\n{}\n{}", &text[..head], word(tail - head), &text[tail..])
}

/// How much is left out is not said: something may have been before.
fn cut(text: &str, most: usize) -> String {
    shortened(text, most, |_| LEFT_OUT.to_owned())
}

/// The results of one turn share a room: small ones are whole, the others get equal parts.
fn share(results: &mut [ToolResult], room: usize) {
    let mut sizes: Vec<usize> = results.iter().map(|result| result.text.len()).collect();
    if sizes.iter().sum::<usize>() <= room {
        return;
    }
    sizes.sort_unstable();
    let (mut left, mut sharing) = (room, sizes.len());
    for size in sizes {
        if size > left / sharing {
            break;
        }
        left -= size;
        sharing -= 1;
    }
    let most = (left / sharing.max(1)).saturating_sub(WORTHWHILE);
    for result in results {
        result.text = cut(&result.text, most);
    }
}

/// Where each turn of the model begins.
fn turns(messages: &[Message]) -> Vec<usize> {
    let is_turn = |(at, message): (usize, &Message)| matches!(message, Message::Model { .. }).then_some(at);
    messages.iter().enumerate().filter_map(is_turn).collect()
}

/// What the person said in answer to calls, which the agent cannot get again.
type Answers = BTreeMap<Place, String>;

/// Shortens results to so many bytes, the oldest first, but not those of the last turn.
fn shorten_old_results(messages: &mut [Message], answers: &Answers, mut much: usize, most: usize) {
    let last = turns(messages).last().copied().unwrap_or_default();
    for (at, message) in messages[..last].iter_mut().enumerate() {
        let Message::Tools { results } = message else { continue };
        for (place, result) in results.iter_mut().enumerate() {
            let before = result.text.len();
            let most = if answers.contains_key(&(at, place)) { most.max(HEARD) } else { most };
            result.text = cut(&result.text, most);
            much = much.saturating_sub(before - result.text.len());
        }
        if much == 0 {
            return;
        }
    }
}

fn beginning(text: &str) -> String {
    let line = one_line(text);
    line[..line.floor_char_boundary(INPUT)].to_owned()
}

/// Tells the oldest turns in short, in what the agent was told first. The last one stays.
fn leave_out_turns(messages: &mut Vec<Message>, answers: &Answers, much: usize, list: usize) {
    let starts = turns(messages);
    let Some((first, rest)) = starts.split_first() else { return };
    let size = |until: usize| messages[*first..until].iter().map(Message::estimated_bytes).sum::<usize>();
    let until = rest.iter().copied().find(|until| size(*until) >= much + list);
    let Some(until) = until.or(rest.last().copied()) else { return };
    let count = starts.iter().filter(|start| **start < until).count();
    let gone: Vec<Message> = messages.drain(*first..until).collect();
    let mut lines: Vec<Line> = Vec::new();
    for (at, message) in gone.iter().enumerate() {
        let results = if let Some(Message::Tools { results }) = gone.get(at + 1) { results } else { &[][..] };
        let said = |place| answers.get(&(first + at + 1, place)).map(String::as_str);
        lines.extend(in_short(message, results, said));
    }
    if let Some(Message::User { text }) = messages.first_mut() {
        let listed = listed(&lines, list.saturating_sub(LIST_FRAME));
        *text = format!("{text}\n\n[{count} earlier turns of yours are left out. In them:]{listed}");
    }
}

/// What is told of something that was left out.
struct Line {
    text: String,
    /// Whether somebody said it to the agent.
    is_heard: bool,
}

/// As many lines as so many bytes can hold, in their order: what the agent was told before what it did itself, and of
/// both the newest.
fn listed(lines: &[Line], room: usize) -> String {
    let (mut left, mut taken) = (room, vec![false; lines.len()]);
    for is_heard in [true, false] {
        for (line, taken) in lines.iter().zip(&mut taken).rev().filter(|(line, _)| line.is_heard == is_heard)
        {
            let Some(rest) = left.checked_sub(line.text.len() + 1) else { break };
            (left, *taken) = (rest, true);
        }
    }
    let shown = lines.iter().zip(&taken).filter(|(_, taken)| **taken);
    let shown: String = shown.map(|(line, _)| format!("\n{}", line.text)).collect();
    if taken.contains(&false) { format!("\n- …{shown}") } else { shown }
}

/// What was said, and a line for each call with how it ended. What a tool answered is not told here: it would stand among
/// the words of those whom the agent works for.
fn in_short<'a>(
    message: &Message,
    results: &[ToolResult],
    said: impl Fn(usize) -> Option<&'a str>,
) -> Vec<Line> {
    match message {
        Message::User { text } => vec![Line { text: format!("- {}", cut(text, HEARD)), is_heard: true }],
        Message::Model { text, calls } => {
            let own = (!text.trim().is_empty()).then(|| format!("- You said: {}", beginning(text)));
            let own = own.map(|text| Line { text, is_heard: false });
            own.into_iter().chain(calls.iter().map(|call| call_in_short(call, results, &said))).collect()
        }
        Message::Tools { .. } => Vec::new(),
    }
}

fn call_in_short<'a>(
    call: &ToolCall,
    results: &[ToolResult],
    said: impl Fn(usize) -> Option<&'a str>,
) -> Line {
    let did = format!("- {} {}", one_line(&call.tool), beginning(&call.input.to_string()));
    let came = results.iter().enumerate().find(|(_, result)| result.id == call.id);
    let (came, is_heard) = match came {
        Some((place, result)) => match said(place) {
            Some(words) => (cut(words, HEARD), true),
            None => (if result.failed { "failed" } else { "done" }.to_owned(), false),
        },
        None => ("…".to_owned(), false),
    };
    Line { text: format!("{did}: {came}"), is_heard }
}

#[cfg(test)]
mod tests;
