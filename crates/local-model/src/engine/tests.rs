//! The engine with a scripted network and one token per byte.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::*;
use crate::answer_mode::InvalidRequest;

/// One token per byte, and one for the end of the text.
#[derive(Debug)]
pub(crate) struct ByteTokenizer(Vec<u8>);

const END: u32 = 256;

impl Tokenizer for ByteTokenizer {
    fn is_end(&self, token: u32) -> bool {
        token == END
    }

    fn bytes(&self, token: u32) -> Option<&[u8]> {
        self.0.get(token as usize).map(std::slice::from_ref)
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn prompt(&self, pieces: &[PromptPiece]) -> Result<Vec<u32>, VocabularyError> {
        let tokens = pieces.iter().flat_map(|piece| match piece {
            PromptPiece::Mark(_) => vec![END],
            PromptPiece::Text(text) => text.bytes().map(u32::from).collect(),
        });
        Ok(tokens.collect())
    }
}

/// A network that writes its script and then ends the text. Forced tokens count as written.
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
        // The first read of an answer includes the last token of its prompt.
        self.at += if self.answering { tokens.len() } else { tokens.len() - 1 };
        self.answering = true;
        let mut weights = vec![0.0; 257];
        let next = self.script.front().and_then(|text| text.as_bytes().get(self.at));
        weights[next.map_or(END, |byte| u32::from(*byte)) as usize] = 1.0;
        Ok(weights)
    }

    fn feed(&mut self, tokens: &[u32]) -> candle_core::Result<()> {
        self.advance(tokens);
        Ok(())
    }
}

pub(crate) fn engine(answers: &[&str]) -> Engine<Scripted, ByteTokenizer> {
    let script = answers.iter().map(|answer| (*answer).to_owned()).collect();
    Engine::new(Scripted { script, ..Default::default() }, ByteTokenizer((0..=255).collect()))
}

#[derive(Default)]
struct RecordingListener {
    deltas: Vec<AnswerDelta>,
    disconnects_after: Option<usize>,
}

impl AnswerListener for RecordingListener {
    fn is_connected(&self) -> bool {
        self.disconnects_after.is_none_or(|count| self.deltas.len() < count)
    }

    fn accepted(&mut self) {}

    fn receive(&mut self, delta: AnswerDelta) {
        self.deltas.push(delta);
    }
}

impl RecordingListener {
    fn text(&self) -> String {
        let text = |delta: &AnswerDelta| match delta {
            AnswerDelta::Text(text) | AnswerDelta::Arguments(text) => text.clone(),
            AnswerDelta::Call { name } => format!("{name}: "),
        };
        self.deltas.iter().map(text).collect()
    }
}

fn task(request: Value) -> Task {
    Task::new(&serde_json::from_value(request).unwrap()).unwrap()
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
fn text_is_written_until_the_model_ends() {
    let mut listener = RecordingListener::default();
    let outcome = engine(&["Hello."]).answer(task(user("Hi")), &mut listener).unwrap();
    assert_eq!(
        (listener.text().as_str(), outcome.finish, outcome.usage.completion),
        ("Hello.", FinishReason::Stop, 6)
    );
    assert_eq!(outcome.usage.cached, 0);
}

#[test]
fn an_answer_ends_at_its_token_limit() {
    let mut listener = RecordingListener::default();
    let mut request = user("Hi");
    request["max_tokens"] = 3.into();
    let outcome = engine(&["Hello."]).answer(task(request), &mut listener).unwrap();
    assert_eq!((listener.text().as_str(), outcome.finish), ("Hel", FinishReason::Length));
}

#[test]
fn only_the_new_part_of_a_prompt_is_read() {
    let mut engine = engine(&["One.", "Two.", "Three."]);
    let first = engine.answer(task(user("Count")), &mut RecordingListener::default()).unwrap();
    let more = json!({ "messages": [
        { "role": "user", "content": "Count" },
        { "role": "assistant", "content": "One." },
        { "role": "user", "content": "On" },
    ] });
    engine.network.passes.clear();
    let second = engine.answer(task(more), &mut RecordingListener::default()).unwrap();
    // The cache includes the answer up to its last letter, after which the model chose to end.
    assert_eq!(second.usage.cached, first.usage.prompt + "One.".len());
    let read: usize = engine.network.passes.iter().sum();
    assert_eq!(read, second.usage.prompt - second.usage.cached + "Two.".len());
    // Another conversation shares only the beginning.
    let third = engine.answer(task(user("Other")), &mut RecordingListener::default()).unwrap();
    assert!(third.usage.cached < first.usage.prompt);
}

#[test]
fn a_repeated_prompt_reads_only_its_last_token() {
    let mut engine = engine(&["One.", "One."]);
    let first = engine.answer(task(user("Hi")), &mut RecordingListener::default()).unwrap();
    let second = engine.answer(task(user("Hi")), &mut RecordingListener::default()).unwrap();
    assert_eq!(second.usage.cached, first.usage.prompt - 1);
}

#[test]
fn a_call_follows_the_grammar() {
    let wanted = r#"{"name": "read", "arguments": {"path": "a.txt"}}"#;
    let mut listener = RecordingListener::default();
    let mut engine = engine(&[wanted]);
    let outcome = engine.answer(task(with_tool(user("Hi"))), &mut listener).unwrap();
    assert_eq!(
        (listener.text().as_str(), outcome.finish),
        (r#"read: {"path": "a.txt"}"#, FinishReason::ToolCalls)
    );
    // Forced tokens are read in one pass with the previous token.
    assert!(engine.network.passes.len() < wanted.len() / 2, "{:?}", engine.network.passes);
}

#[test]
fn the_grammar_prevents_any_other_output() {
    let mut listener = RecordingListener::default();
    let mut request = with_tool(user("Hi"));
    request["tool_choice"] = "required".into();
    request["max_tokens"] = 200.into();
    let wanted = r#"```json {"path": "a.txt"} ``` and so on, without any end that would be fitting"#;
    engine(&[wanted]).answer(task(request), &mut listener).unwrap();
    assert_eq!(listener.deltas[0], AnswerDelta::Call { name: "read".into() });
    assert!(listener.text().starts_with(r#"read: {"path": ""#), "{}", listener.text());
}

#[test]
fn the_answer_stops_when_the_client_disconnects() {
    let mut listener = RecordingListener { disconnects_after: Some(2), ..Default::default() };
    let mut engine = engine(&["Hello.", "Again."]);
    let left = engine.answer(task(user("Hi")), &mut listener);
    assert!(matches!(left, Err(EngineError::Cancelled)));
    assert_eq!(listener.text(), "He");
    let mut listener = RecordingListener::default();
    engine.answer(task(user("Hi")), &mut listener).unwrap();
    assert_eq!(listener.text(), "Again.");
}

#[test]
fn a_prompt_that_is_too_long_is_rejected() {
    let long = engine(&[]).answer(task(user(&"x".repeat(3000))), &mut RecordingListener::default());
    assert!(matches!(long, Err(EngineError::TooLong { context: 2000, .. })));
}

#[test]
fn required_tools_must_be_defined() {
    let of = |value: Value| Task::new(&serde_json::from_value(value).unwrap()).map(drop);
    let mut request = user("Hi");
    request["tool_choice"] = "required".into();
    assert_eq!(of(request.clone()), Err(InvalidRequest::NoTools));
    request["tool_choice"] = json!({ "type": "function", "function": { "name": "fly" } });
    assert_eq!(of(with_tool(request)), Err(InvalidRequest::UnknownTool("fly".into())));
    assert_eq!(of(json!({ "messages": [] })), Err(InvalidRequest::NoMessages));
}
