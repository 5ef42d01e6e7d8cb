//! Reconstructs the prompt that a model received before a turn, from the events that existed then.

use agents::history::History;
use agents::roles;
use agents::transcript::{self, Texts};
use event_log::{EventLog, ReadError, decode_event, read_content};
use models::chat::Message;
use shared_types::payload::llm::{LlmEvent, LlmReply};
use shared_types::wire::StepDetail;
use shared_types::{Event, Payload, RunId};

/// The end of the prompt is shown, at most this many bytes.
const MAX_PROMPT_BYTES: usize = 256 << 10;

/// Adds the prompt to the parts of a step, if the step is a turn of a model.
pub fn add_prompt(log: &dyn EventLog, run: RunId, parts: &mut StepDetail) -> Result<(), ReadError> {
    let stored = log.run(run)?;
    let events = stored.iter().map(|stored| decode_event(log, stored)).collect::<Result<Vec<Event>, _>>()?;
    let reply = events.iter().find(|event| event.seq == parts.step.seq).map(|event| &event.payload);
    if let Some(Payload::Llm(LlmEvent::Reply(reply))) = reply
        && let Some((prompt, note)) = prompt_before(log, run, &events, reply)
    {
        parts.input = Some(prompt);
        parts.notes.push(note);
    }
    Ok(())
}

/// The prompt before a reply, with a note. `None` if the agent is unknown. `events` are all events of the run.
fn prompt_before(
    log: &dyn EventLog,
    run: RunId,
    events: &[Event],
    reply: &LlmReply,
) -> Option<(String, String)> {
    let known = events.iter().position(|event| event.seq > reply.seen).unwrap_or(events.len());
    let history = History::from_events(run, &events[..known]);
    let task = history.tasks.get(&reply.task)?;
    let mut texts = Texts::new();
    for hash in transcript::needed_contents(task) {
        if let Ok(bytes) = read_content(log, &hash) {
            texts.insert(hash, String::from_utf8_lossy(&bytes).into());
        }
    }
    let conversation = transcript::conversation(&history, task, &texts);
    let system_prompt = roles::named(&task.role).map(|role| role.system_prompt().to_owned());
    let parts: Vec<String> =
        system_prompt.into_iter().chain(conversation.messages.iter().map(as_text)).collect();
    let text = parts.join("\n\n———\n\n");
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_PROMPT_BYTES));
    let note = if from > 0 {
        format!(
            "Only the last {} KiB of the prompt are shown, without tool definitions.",
            MAX_PROMPT_BYTES >> 10
        )
    } else {
        "Tool definitions are not shown, and omissions for a smaller context are not marked.".to_owned()
    };
    Some((text[from..].to_owned(), note))
}

fn as_text(message: &Message) -> String {
    match message {
        Message::User { text } => text.clone(),
        Message::Model { text, calls } => {
            let calls = calls.iter().map(|call| format!("→ {} {}", call.tool, call.input));
            let text = (!text.is_empty()).then(|| text.clone());
            text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
        }
        Message::Tools { results } => {
            let results = results.iter().map(|result| format!("← {}: {}", result.tool, result.text));
            results.collect::<Vec<_>>().join("\n")
        }
    }
}
