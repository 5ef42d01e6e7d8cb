//! Checks the fields and tools of a request as OpenAI does; [`messages`](super::messages) checks the messages. Error
//! messages, parameters and codes are those of the real service where known.

use serde_json::{Map, Value};

use super::messages;
use crate::{
    conversation::Conversation,
    failure::InvalidRequest,
    wire::{is_tool_name, kind},
};

const FIELDS: [&str; 34] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "seed",
    "user",
    "store",
    "metadata",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "prediction",
    "modalities",
    "audio",
    "web_search_options",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "functions",
];
/// Additional fields of Z.ai, Moonshot, Ollama, vLLM and llama.cpp.
const COMPATIBLE_FIELDS: [&str; 12] = [
    "thinking",
    "do_sample",
    "request_id",
    "user_id",
    "top_k",
    "min_p",
    "repeat_penalty",
    "grammar",
    "json_schema",
    "cache_prompt",
    "keep_alive",
    "chat_template_kwargs",
];

pub(super) fn read(body: &[u8]) -> Result<Conversation, InvalidRequest> {
    let body: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
        format!(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your \
             HTTP library correctly: {error}.)"
        )
    })?;
    let known = |name: &str| FIELDS.contains(&name) || COMPATIBLE_FIELDS.contains(&name);
    if let Some(name) = body.keys().find(|name| !known(name)) {
        return Err(format!("Unrecognized request argument supplied: {name}").into());
    }
    let mut conversation = Conversation::default();
    conversation.model =
        body.get("model").and_then(Value::as_str).ok_or("you must provide a model parameter")?.into();
    if body.get("stream") != Some(&Value::Bool(true)) {
        if body.contains_key("stream_options") {
            let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
            return Err(invalid(message.into(), "stream_options", None));
        }
        return Err("scripted model: only `stream: true` is served".into());
    }
    let wants_usage = body.get("stream_options").and_then(|options| options.get("include_usage"));
    conversation.wants_usage = wants_usage == Some(&Value::Bool(true));
    let tools = check_tools(body.get("tools"))?;
    check_choice(body.get("tool_choice"), &tools)?;
    if tools.is_empty() && body.contains_key("parallel_tool_calls") {
        let message = "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when \
                       'tools' are specified.";
        return Err(invalid(message.into(), "parallel_tool_calls", None));
    }
    let messages = list(body.get("messages"), "messages")?;
    messages::read(messages, &mut conversation)?;
    Ok(conversation)
}

/// A required, non-empty array.
pub(super) fn list<'a>(value: Option<&'a Value>, field_path: &str) -> Result<&'a [Value], InvalidRequest> {
    let value = value.ok_or_else(|| missing(field_path))?;
    let items = value.as_array().ok_or_else(|| wrong_type(field_path, "an array of objects", value))?;
    if items.is_empty() {
        let message = format!(
            "Invalid '{field_path}': empty array. Expected an array with minimum length 1, but got an empty array instead."
        );
        return Err(invalid(message, field_path, Some("empty_array")));
    }
    Ok(items)
}

/// A required string.
pub(super) fn text<'a>(value: Option<&'a Value>, field_path: &str) -> Result<&'a str, InvalidRequest> {
    let value = value.ok_or_else(|| missing(field_path))?;
    value.as_str().ok_or_else(|| wrong_type(field_path, "a string", value))
}

pub(super) fn invalid(message: String, param: &str, code: Option<&'static str>) -> InvalidRequest {
    InvalidRequest { message, param: Some(param.into()), code }
}

fn missing(field_path: &str) -> InvalidRequest {
    let message = format!("Missing required parameter: '{field_path}'.");
    invalid(message, field_path, Some("missing_required_parameter"))
}

pub(super) fn wrong_type(field_path: &str, expected: &str, value: &Value) -> InvalidRequest {
    let message =
        format!("Invalid type for '{field_path}': expected {expected}, but got {} instead.", kind(value));
    invalid(message, field_path, Some("invalid_type"))
}

fn check_tools(tools: Option<&Value>) -> Result<Vec<&str>, InvalidRequest> {
    let mut names = Vec::new();
    if tools.is_none() {
        return Ok(names);
    }
    for (at, tool) in list(tools, "tools")?.iter().enumerate() {
        let field_path = format!("tools[{at}]");
        if text(tool.get("type"), &format!("{field_path}.type"))? != "function" {
            let message = "Invalid value: Supported values are: 'function' and 'custom'.".to_owned();
            return Err(invalid(message, &format!("{field_path}.type"), Some("invalid_value")));
        }
        let name_place = format!("{field_path}.function.name");
        let name = text(tool.get("function").and_then(|function| function.get("name")), &name_place)?;
        if !is_tool_name(name, 64) {
            let message = format!(
                "Invalid '{name_place}': string does not match pattern. Expected a string that matches the pattern \
                 '^[a-zA-Z0-9_-]+$'."
            );
            return Err(invalid(message, &name_place, Some("invalid_value")));
        }
        if let Some(parameters) = tool.get("function").and_then(|function| function.get("parameters"))
            && parameters.get("type").and_then(Value::as_str) != Some("object")
        {
            let message = format!(
                "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got \
                 'type: \"None\"'."
            );
            let param = format!("{field_path}.function.parameters");
            return Err(invalid(message, &param, Some("invalid_function_parameters")));
        }
        names.push(name);
    }
    Ok(names)
}

fn check_choice(choice: Option<&Value>, tools: &[&str]) -> Result<(), InvalidRequest> {
    let Some(choice) = choice else { return Ok(()) };
    let named = choice.get("function").and_then(|function| function.get("name")).and_then(Value::as_str);
    let problem = match (choice.as_str(), named) {
        _ if tools.is_empty() => {
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
                .to_owned()
        }
        (Some("none" | "auto" | "required"), _) => return Ok(()),
        (None, Some(name)) if tools.contains(&name) => return Ok(()),
        (None, Some(name)) => format!("Tool choice '{name}' not found in 'tools' parameter."),
        _ => "Invalid value for 'tool_choice'. Supported values are: 'none', 'auto', and 'required'."
            .to_owned(),
    };
    Err(invalid(problem, "tool_choice", None))
}
