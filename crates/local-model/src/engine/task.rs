//! A request as the engine takes it: the prompt, the form of the answer, and how it is read.

use serde_json::json;
use thiserror::Error;

use super::sampler::Sampling;
use crate::answer::{Delta, Reader};
use crate::grammar::{self, Place};
use crate::prompt::{self, Manner, Piece};
use crate::wire::{Finish, Request, ResponseFormat, Tool, ToolChoice};

/// Tokens of an answer when the request does not say.
const MOST_TOKENS: u32 = 1024;

/// Why a request makes no sense.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Refusal {
    #[error("there is no message to answer")]
    NothingSaid,
    #[error("a tool must be used, but none is given")]
    NoTools,
    #[error("the tool `{0}` must be used, but is not given")]
    UnknownTool(String),
}

/// What has to be written.
#[derive(Debug)]
pub(crate) struct Task {
    pub(super) prompt: Vec<Piece>,
    pub(super) most_tokens: usize,
    pub(super) sampling: Sampling,
    place: Option<Place>,
    reader: Reader,
}

impl Task {
    pub(crate) fn of(request: &Request) -> Result<Self, Refusal> {
        if request.messages.is_empty() {
            return Err(Refusal::NothingSaid);
        }
        let (tools, manner) = offered(request)?;
        let names = tools.iter().map(|tool| (tool.function.name.as_str(), &tool.function.parameters));
        let (place, reader) = match (manner, &request.response_format) {
            (Manner::Call, _) => (Some(grammar::call_or_say(names, false)), Reader::call_or_say()),
            (Manner::CallOrSay, _) => (Some(grammar::call_or_say(names, true)), Reader::call_or_say()),
            (Manner::Free, Some(ResponseFormat::JsonSchema { json_schema })) => {
                (Some(grammar::of_schema(&json_schema.schema)), Reader::plain())
            }
            (Manner::Free, Some(ResponseFormat::JsonObject)) => {
                (Some(grammar::of_schema(&json!({ "type": "object" }))), Reader::plain())
            }
            (Manner::Free, Some(ResponseFormat::Text) | None) => (None, Reader::plain()),
        };
        let most = request.max_completion_tokens.or(request.max_tokens).unwrap_or(MOST_TOKENS);
        Ok(Self {
            // Every tool stays in the prompt even where one of them must be used, so that its beginning stays the same.
            prompt: prompt::render(&request.messages, &request.tools, manner),
            most_tokens: most as usize,
            sampling: Sampling {
                temperature: request.temperature.unwrap_or(0.0),
                top_p: request.top_p.unwrap_or(0.95),
                seed: request.seed.unwrap_or(0),
            },
            place,
            reader,
        })
    }

    pub(super) fn allows(&self, bytes: &[u8]) -> bool {
        self.place.as_ref().is_none_or(|place| place.after(bytes).is_some())
    }

    pub(super) fn may_end(&self) -> bool {
        self.place.as_ref().is_none_or(Place::may_end)
    }

    /// Whether the form of the answer leaves nothing to add.
    pub(super) fn is_over(&self) -> bool {
        self.place.as_ref().is_some_and(Place::is_over)
    }

    pub(super) fn forced(&self) -> Vec<u8> {
        self.place.as_ref().map(Place::forced).unwrap_or_default()
    }

    pub(super) fn would_be_over(&self, bytes: &[u8]) -> bool {
        self.place.as_ref().and_then(|place| place.after(bytes)).is_some_and(|place| place.is_over())
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Delta> {
        if let Some(place) = &mut self.place
            && let Some(next) = place.after(bytes)
        {
            *place = next;
        }
        self.reader.push(bytes)
    }

    pub(super) fn finish(&self) -> Finish {
        if self.reader.has_called() { Finish::ToolCalls } else { Finish::Stop }
    }
}

/// What the model may do, if the request makes sense.
pub(crate) fn manner(request: &Request) -> Manner {
    offered(request).map_or(Manner::Free, |(_, manner)| manner)
}

/// The tools that may be called, and what else the model may do.
fn offered(request: &Request) -> Result<(Vec<&Tool>, Manner), Refusal> {
    let all: Vec<&Tool> = request.tools.iter().collect();
    match &request.tool_choice {
        Some(ToolChoice::Mode(mode)) if mode == "none" => Ok((Vec::new(), Manner::Free)),
        Some(ToolChoice::Mode(mode)) if mode == "required" && all.is_empty() => Err(Refusal::NoTools),
        Some(ToolChoice::Mode(mode)) if mode == "required" => Ok((all, Manner::Call)),
        Some(ToolChoice::One { function }) => {
            let one: Vec<&Tool> =
                all.into_iter().filter(|tool| tool.function.name == function.name).collect();
            if one.is_empty() {
                Err(Refusal::UnknownTool(function.name.clone()))
            } else {
                Ok((one, Manner::Call))
            }
        }
        Some(ToolChoice::Mode(_)) | None if all.is_empty() => Ok((all, Manner::Free)),
        Some(ToolChoice::Mode(_)) | None => Ok((all, Manner::CallOrSay)),
    }
}
