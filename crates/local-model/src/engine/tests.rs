//! The engine with a network that follows a script, and a token for every byte.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::*;

/// A token for each byte, and one for the end.
#[derive(Debug)]
pub(crate) struct ByteWords(Vec<u8>);

const END: u32 = 256;

impl Words for ByteWords {
    fn is_end(&self, token: u32) -> bool {
        token == END
    }

    fn bytes(&self, token: u32) -> Option<&[u8]> {
        self.0.get(token as usize).map(std::slice::from_ref)
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn prompt(&self, pieces: &[Piece]) -> Result<Vec<u32>, VocabularyError> {
        let tokens = pieces.iter().flat_map(|piece| match piece {
            Piece::Mark(_) => vec![END],
            Piece::Text(text) => text.bytes().map(u32::from).collect(),
        });
        Ok(tokens.collect())
    }
}

/// Wants to write its script, and then to end. What a grammar forces on it, it takes as written.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    script: VecDeque<String>,
    at: usize,
    answering: bool,
    length: usize,
    pub(crate) passes: Vec<usize>,
}

impl Scripted {
    fn advance(&mut self, tokens: &[u32]) {
        self.length += tokens.len();
        self.passes.push(tokens.len());
    }
}

impl Network for Scripted {
    fn context(&self) -> usize {
        2000
    }

    fn truncate(&mut self, length: usize) {
        if std::mem::take(&mut self.answering) {
            self.script.pop_front();
        }
        (self.at, self.length) = (0, self.length.min(length));
    }

    fn read(&mut self, tokens: &[u32]) -> candle_core::Result<Vec<f32>> {
        self.advance(tokens);
        // The first token of an answer is the last of its prompt.
        self.at += if self.answering { tokens.len() } else { tokens.len() - 1 };
        self.answering = true;
        let mut weights = vec![0.0; 257];
        let next = self.script.front().and_then(|text| text.as_bytes().get(self.at));
        weights[next.map_or(END, |byte| u32::from(*byte)) as usize] = 1.0;
        Ok(weights)
    }

    fn skim(&mut self, tokens: &[u32]) -> candle_core::Result<()> {
        self.advance(tokens);
        Ok(())
    }
}

pub(crate) fn engine(answers: &[&str]) -> Engine<Scripted, ByteWords> {
    let script = answers.iter().map(|answer| (*answer).to_owned()).collect();
    Engine::new(Scripted { script, ..Default::default() }, ByteWords((0..=255).collect()))
}

#[derive(Default)]
struct Heard {
    deltas: Vec<Delta>,
    leaves_after: Option<usize>,
}

impl Listener for Heard {
    fn is_there(&self) -> bool {
        self.leaves_after.is_none_or(|count| self.deltas.len() < count)
    }

    fn accepted(&mut self) {}

    fn hear(&mut self, delta: Delta) {
        self.deltas.push(delta);
    }
}

impl Heard {
    fn text(&self) -> String {
        let text = |delta: &Delta| match delta {
            Delta::Text(text) | Delta::Arguments(text) => text.clone(),
            Delta::Call { name } => format!("{name}: "),
        };
        self.deltas.iter().map(text).collect()
    }
}

fn task(request: Value) -> Task {
    Task::of(&serde_json::from_value(request).unwrap()).unwrap()
}

fn user(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

fn with_tool(mut request: Value) -> Value {
    let parameters =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    request["tools"] =
        json!([{ "type": "function", "function": { "name": "read", "parameters": parameters } }]);
    request
}

#[test]
fn text_is_written_until_the_model_ends_it() {
    let mut heard = Heard::default();
    let outcome = engine(&["Hello."]).answer(task(user("Hi")), &mut heard).unwrap();
    assert_eq!(
        (heard.text().as_str(), outcome.finish, outcome.usage.completion),
        ("Hello.", Finish::Stop, 6)
    );
    assert_eq!(outcome.usage.cached, 0);
}

#[test]
fn an_answer_ends_at_its_limit() {
    let mut heard = Heard::default();
    let mut request = user("Hi");
    request["max_tokens"] = 3.into();
    let outcome = engine(&["Hello."]).answer(task(request), &mut heard).unwrap();
    assert_eq!((heard.text().as_str(), outcome.finish), ("Hel", Finish::Length));
}

#[test]
fn a_prompt_that_goes_on_costs_only_what_is_new() {
    let mut engine = engine(&["One.", "Two.", "Three."]);
    let first = engine.answer(task(user("Count")), &mut Heard::default()).unwrap();
    let more = json!({ "messages": [
        { "role": "user", "content": "Count" },
        { "role": "assistant", "content": "One." },
        { "role": "user", "content": "On" },
    ] });
    engine.network.passes.clear();
    let second = engine.answer(task(more), &mut Heard::default()).unwrap();
    // The answer was read up to its last letter, which is where the model chose to end it.
    assert_eq!(second.usage.cached, first.usage.prompt + "One.".len());
    let read: usize = engine.network.passes.iter().sum();
    assert_eq!(read, second.usage.prompt - second.usage.cached + "Two.".len());
    // Another conversation shares the beginning only.
    let third = engine.answer(task(user("Other")), &mut Heard::default()).unwrap();
    assert!(third.usage.cached < first.usage.prompt);
}

#[test]
fn the_same_prompt_twice_reads_its_last_token() {
    let mut engine = engine(&["One.", "One."]);
    let first = engine.answer(task(user("Hi")), &mut Heard::default()).unwrap();
    let second = engine.answer(task(user("Hi")), &mut Heard::default()).unwrap();
    assert_eq!(second.usage.cached, first.usage.prompt - 1);
}

#[test]
fn a_call_is_held_to_its_form() {
    let wanted = r#"{"name": "read", "arguments": {"path": "a.txt"}}"#;
    let mut heard = Heard::default();
    let mut engine = engine(&[wanted]);
    let outcome = engine.answer(task(with_tool(user("Hi"))), &mut heard).unwrap();
    assert_eq!((heard.text().as_str(), outcome.finish), (r#"read: {"path": "a.txt"}"#, Finish::ToolCalls));
    // What has to come is read in one pass with what came before.
    assert!(engine.network.passes.len() < wanted.len() / 2, "{:?}", engine.network.passes);
}

#[test]
fn a_model_that_would_write_something_else_is_kept_from_it() {
    let mut heard = Heard::default();
    let mut request = with_tool(user("Hi"));
    request["tool_choice"] = "required".into();
    request["max_tokens"] = 200.into();
    let wanted = r#"```json {"path": "a.txt"} ``` and so on, without any end that would be fitting"#;
    engine(&[wanted]).answer(task(request), &mut heard).unwrap();
    assert_eq!(heard.deltas[0], Delta::Call { name: "read".into() });
    assert!(heard.text().starts_with(r#"read: {"path": ""#), "{}", heard.text());
}

#[test]
fn nobody_is_answered_who_went_away() {
    let mut heard = Heard { leaves_after: Some(2), ..Default::default() };
    let mut engine = engine(&["Hello.", "Again."]);
    let left = engine.answer(task(user("Hi")), &mut heard);
    assert!(matches!(left, Err(EngineError::Cancelled)));
    assert_eq!(heard.text(), "He");
    let mut heard = Heard::default();
    engine.answer(task(user("Hi")), &mut heard).unwrap();
    assert_eq!(heard.text(), "Again.");
}

#[test]
fn a_prompt_that_is_too_long_is_refused() {
    let long = engine(&[]).answer(task(user(&"x".repeat(3000))), &mut Heard::default());
    assert!(matches!(long, Err(EngineError::TooLong { context: 2000, .. })));
}

#[test]
fn tools_that_must_be_used_have_to_be_there() {
    let of = |value: Value| Task::of(&serde_json::from_value(value).unwrap()).map(drop);
    let mut request = user("Hi");
    request["tool_choice"] = "required".into();
    assert_eq!(of(request.clone()), Err(Refusal::NoTools));
    request["tool_choice"] = json!({ "type": "function", "function": { "name": "fly" } });
    assert_eq!(of(with_tool(request)), Err(Refusal::UnknownTool("fly".into())));
    assert_eq!(of(json!({ "messages": [] })), Err(Refusal::NothingSaid));
}
