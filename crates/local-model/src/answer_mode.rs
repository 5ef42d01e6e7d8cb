//! What a request allows as an answer: text, tool calls or both.

use thiserror::Error;

use crate::wire::{ChoiceMode, CompletionRequest, Tool, ToolChoice};

/// Which kinds of answers are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerMode {
    Free,
    CallOrSay,
    Call,
}

/// Why a request is invalid.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum InvalidRequest {
    #[error("the request has no messages")]
    NoMessages,
    #[error("a tool call is required, but no tools are given")]
    NoTools,
    #[error("a call of the tool `{0}` is required, but the tool is not given")]
    UnknownTool(String),
}

/// The answer mode of a request; free text if the request is invalid.
pub(crate) fn answer_mode(request: &CompletionRequest) -> AnswerMode {
    offered(request).map_or(AnswerMode::Free, |(_, answer_mode)| answer_mode)
}

/// The tools that may be called, and the answer mode.
pub(crate) fn offered(request: &CompletionRequest) -> Result<(Vec<&Tool>, AnswerMode), InvalidRequest> {
    let all: Vec<&Tool> = request.tools.iter().collect();
    match &request.tool_choice {
        Some(ToolChoice::Mode(ChoiceMode::None)) => Ok((Vec::new(), AnswerMode::Free)),
        Some(ToolChoice::Mode(ChoiceMode::Required)) if all.is_empty() => Err(InvalidRequest::NoTools),
        Some(ToolChoice::Mode(ChoiceMode::Required)) => Ok((all, AnswerMode::Call)),
        Some(ToolChoice::One { function }) => {
            let one: Vec<&Tool> =
                all.into_iter().filter(|tool| tool.function.name == function.name).collect();
            if one.is_empty() {
                Err(InvalidRequest::UnknownTool(function.name.clone()))
            } else {
                Ok((one, AnswerMode::Call))
            }
        }
        Some(ToolChoice::Mode(ChoiceMode::Auto)) | None if all.is_empty() => Ok((all, AnswerMode::Free)),
        Some(ToolChoice::Mode(ChoiceMode::Auto)) | None => Ok((all, AnswerMode::CallOrSay)),
    }
}
