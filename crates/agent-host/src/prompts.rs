//! What a model was told before it took a turn, put together again from what was known then.

use agents::history::History;
use agents::roles;
use agents::transcript::{self, Texts};
use event_log::{EventLog, ReadError, decode_event, read_content};
use models::chat::Message;
use shared_types::payload::llm::{LlmEvent, LlmReply};
use shared_types::wire::StepDetail;
use shared_types::{Event, Payload, RunId};

/// Bytes of it that are shown, from the end on: what came last is what was answered.
const SHOWN: usize = 256 << 10;

/// Adds what its model was told to the parts of a step, where the step is a turn of a model.
pub fn add_prompt(log: &dyn EventLog, run: RunId, parts: &mut StepDetail) -> Result<(), ReadError> {
    let stored = log.run(run)?;
    let events = stored.iter().map(|stored| decode_event(log, stored)).collect::<Result<Vec<Event>, _>>()?;
    let reply = events.iter().find(|event| event.seq == parts.step.seq).map(|event| &event.payload);
    if let Some(Payload::Llm(LlmEvent::Reply(reply))) = reply
        && let Some((told, note)) = before(log, run, &events, reply)
    {
        parts.input = Some(told);
        parts.notes.push(note);
    }
    Ok(())
}

/// Nothing, where the agent is not known. `events` are all of the run.
fn before(log: &dyn EventLog, run: RunId, events: &[Event], reply: &LlmReply) -> Option<(String, String)> {
    let known = events.iter().position(|event| event.seq > reply.seen).unwrap_or(events.len());
    let history = History::from_events(run, &events[..known]);
    let task = history.tasks.get(&reply.task)?;
    let mut texts = Texts::new();
    for hash in transcript::needed_contents(task) {
        if let Ok(bytes) = read_content(log, &hash) {
            texts.insert(hash, String::from_utf8_lossy(&bytes).into());
        }
    }
    let told = transcript::conversation(&history, task, &texts);
    let words = roles::named(&task.role).map(|role| role.system_prompt().to_owned());
    let parts: Vec<String> = words.into_iter().chain(told.messages.iter().map(in_text)).collect();
    let text = parts.join("\n\n———\n\n");
    let from = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
    let note = if from > 0 {
        format!("The last {} KiB of what it was told are shown, without its tools.", SHOWN >> 10)
    } else {
        "Its tools are not shown, nor what was left out for a model that reads less.".to_owned()
    };
    Some((text[from..].to_owned(), note))
}

fn in_text(message: &Message) -> String {
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
