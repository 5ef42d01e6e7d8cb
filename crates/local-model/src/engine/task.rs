//! A request prepared for the engine: the prompt, the grammar of the answer, and its decoder.

use serde_json::json;

use super::sampler::Sampling;
use crate::answer::{AnswerDelta, AnswerReader};
use crate::answer_mode::{AnswerMode, InvalidRequest, offered};
use crate::grammar::{self, GrammarState};
use crate::prompt::{self, PromptPiece};
use crate::wire::{CompletionRequest, FinishReason, ResponseFormat};

/// Default output limit.
const MOST_TOKENS: u32 = 1024;

/// An answer to write.
#[derive(Debug)]
pub(crate) struct Task {
    pub(super) prompt: Vec<PromptPiece>,
    pub(super) most_tokens: usize,
    pub(super) sampling: Sampling,
    state: Option<GrammarState>,
    reader: AnswerReader,
}

impl Task {
    pub(crate) fn new(request: &CompletionRequest) -> Result<Self, InvalidRequest> {
        if request.messages.is_empty() {
            return Err(InvalidRequest::NoMessages);
        }
        let (tools, answer_mode) = offered(request)?;
        let names = tools.iter().map(|tool| (tool.function.name.as_str(), &tool.function.parameters));
        let (state, reader) = match (answer_mode, &request.response_format) {
            (AnswerMode::Call, _) => {
                (Some(grammar::call_or_say_grammar(names, false)), AnswerReader::call_or_say())
            }
            (AnswerMode::CallOrSay, _) => {
                (Some(grammar::call_or_say_grammar(names, true)), AnswerReader::call_or_say())
            }
            (AnswerMode::Free, Some(ResponseFormat::JsonSchema { json_schema })) => {
                (Some(grammar::schema_grammar(&json_schema.schema)), AnswerReader::plain())
            }
            (AnswerMode::Free, Some(ResponseFormat::JsonObject)) => {
                (Some(grammar::schema_grammar(&json!({ "type": "object" }))), AnswerReader::plain())
            }
            (AnswerMode::Free, Some(ResponseFormat::Text) | None) => (None, AnswerReader::plain()),
        };
        let most = request.max_completion_tokens.or(request.max_tokens).unwrap_or(MOST_TOKENS);
        Ok(Self {
            // The prompt lists all tools even if one of them is required, so that its prefix stays cached.
            prompt: prompt::render(&request.messages, &request.tools, answer_mode),
            most_tokens: most as usize,
            sampling: Sampling {
                temperature: request.temperature.unwrap_or(0.0),
                top_p: request.top_p.unwrap_or(0.95),
                seed: request.seed.unwrap_or(0),
            },
            state,
            reader,
        })
    }

    pub(super) fn allows(&self, bytes: &[u8]) -> bool {
        self.state.as_ref().is_none_or(|state| state.advance(bytes).is_some())
    }

    pub(super) fn may_end(&self) -> bool {
        self.state.as_ref().is_none_or(GrammarState::may_end)
    }

    /// Whether the grammar allows nothing more.
    pub(super) fn is_complete(&self) -> bool {
        self.state.as_ref().is_some_and(GrammarState::is_complete)
    }

    pub(super) fn forced_bytes(&self) -> Vec<u8> {
        self.state.as_ref().map(GrammarState::forced_bytes).unwrap_or_default()
    }

    pub(super) fn would_be_complete(&self, bytes: &[u8]) -> bool {
        self.state.as_ref().and_then(|state| state.advance(bytes)).is_some_and(|state| state.is_complete())
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<AnswerDelta> {
        if let Some(state) = &mut self.state
            && let Some(next) = state.advance(bytes)
        {
            *state = next;
        }
        self.reader.push(bytes)
    }

    pub(super) fn finish(&self) -> FinishReason {
        if self.reader.has_called() { FinishReason::ToolCalls } else { FinishReason::Stop }
    }
}
