//! Checks the fields and tools of a request as Anthropic does; [`messages`](super::messages) checks the messages.
//! Error messages are those of the real service where known.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::messages;
use crate::{conversation::Conversation, wire::is_tool_name};

/// The service that receives the body. The formats differ slightly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::wire) enum Host {
    Anthropic(Version),
    /// Its version is in the body.
    Bedrock,
}

/// Supported versions of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::wire) enum Version {
    Of2023,
    /// Without sampling parameters, and without citations in user messages.
    Of2026,
}

impl Version {
    pub(super) fn of_header(text: &str) -> Option<Self> {
        match text {
            "2023-06-01" => Some(Self::Of2023),
            OF_2026 => Some(Self::Of2026),
            _ => None,
        }
    }

    fn of_bedrock(text: &str) -> Option<Self> {
        match text {
            BEDROCK_VERSION => Some(Self::Of2023),
            OF_2026 => Some(Self::Of2026),
            _ => None,
        }
    }
}

const SHARED_FIELDS: [&str; 9] = [
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "stop_sequences",
    "thinking",
    "output_config",
    "cache_control",
];
const SAMPLING_FIELDS: [&str; 3] = ["temperature", "top_p", "top_k"];
const ANTHROPIC_FIELDS: [&str; 10] = [
    "model",
    "stream",
    "metadata",
    "service_tier",
    "container",
    "context_management",
    "mcp_servers",
    "inference_geo",
    "diagnostics",
    "speed",
];
const BEDROCK_FIELDS: [&str; 2] = ["anthropic_version", "anthropic_beta"];
const OF_2026: &str = "2026-10-21";
const BEDROCK_VERSION: &str = "bedrock-2023-05-31";
const MOST_CACHE_MARKS: usize = 4;

/// Parses a body, or returns the error message.
pub(in crate::wire) fn read(body: &[u8], host: Host) -> Result<Conversation, String> {
    let body: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| format!("The request body is not valid JSON: {error}"))?;
    let version = match host {
        Host::Anthropic(version) => version,
        Host::Bedrock => Version::of_bedrock(text(&body, "anthropic_version")?).ok_or_else(|| {
            format!("anthropic_version: Input should be '{BEDROCK_VERSION}' or '{OF_2026}'")
        })?,
    };
    check_fields(&body, host, version)?;
    let mut conversation = Conversation::default();
    if host != Host::Bedrock {
        conversation.model = text(&body, "model")?.into();
        if body.get("stream") != Some(&Value::Bool(true)) {
            return Err("scripted model: only `stream: true` is served".into());
        }
    }
    match body.get("max_tokens").ok_or("max_tokens: Field required")?.as_u64() {
        None => return Err("max_tokens: Input should be a valid integer".into()),
        Some(0) => return Err("max_tokens: Input should be greater than or equal to 1".into()),
        Some(_) => {}
    }
    if let Some(system) = body.get("system") {
        read_system(system, &mut conversation)?;
    }
    let tools = check_tools(body.get("tools"))?;
    check_choice(body.get("tool_choice"), &tools)?;
    check_cache_marks(&body)?;
    let used =
        messages::read(body.get("messages").ok_or("messages: Field required")?, version, &mut conversation)?;
    if used == messages::Tools::Used && tools.is_empty() {
        return Err("Requests which include `tool_use` or `tool_result` blocks must define tools".into());
    }
    Ok(conversation)
}

fn check_fields(body: &Map<String, Value>, host: Host, version: Version) -> Result<(), String> {
    let own: &[&str] = match host {
        Host::Anthropic(_) => &ANTHROPIC_FIELDS,
        Host::Bedrock => &BEDROCK_FIELDS,
    };
    let sampling: &[&str] = if version == Version::Of2023 { &SAMPLING_FIELDS } else { &[] };
    let known = |name: &str| [&SHARED_FIELDS, own, sampling].iter().any(|fields| fields.contains(&name));
    match body.keys().find(|name| !known(name)) {
        Some(name) => Err(format!("{name}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

fn text<'a>(body: &'a Map<String, Value>, field: &str) -> Result<&'a str, String> {
    let value = body.get(field).ok_or_else(|| format!("{field}: Field required"))?;
    value.as_str().ok_or_else(|| format!("{field}: Input should be a valid string"))
}

fn read_system(system: &Value, conversation: &mut Conversation) -> Result<(), String> {
    if let Some(text) = system.as_str() {
        conversation.add_system_text(text);
        return Ok(());
    }
    for (at, block) in system.as_array().ok_or("system: Input should be a valid array")?.iter().enumerate() {
        if block.get("type").and_then(Value::as_str) != Some("text") {
            return Err(format!("system.{at}.type: Input should be 'text'"));
        }
        match block.get("text").and_then(Value::as_str) {
            None => return Err(format!("system.{at}.text: Field required")),
            Some("") => return Err("system: text content blocks must be non-empty".into()),
            Some(text) => conversation.add_system_text(text),
        }
    }
    Ok(())
}

fn check_tools(tools: Option<&Value>) -> Result<HashSet<&str>, String> {
    let mut names = HashSet::new();
    let Some(tools) = tools else { return Ok(names) };
    for (at, tool) in tools.as_array().ok_or("tools: Input should be a valid array")?.iter().enumerate() {
        let field_path = format!("tools.{at}.custom");
        let name =
            tool.get("name").and_then(Value::as_str).ok_or(format!("{field_path}.name: Field required"))?;
        if !is_tool_name(name, 128) {
            return Err(format!("{field_path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"));
        }
        let schema = tool.get("input_schema").ok_or(format!("{field_path}.input_schema: Field required"))?;
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => {}
            Some(_) => return Err(format!("{field_path}.input_schema.type: Input should be 'object'")),
            None => return Err(format!("{field_path}.input_schema.type: Field required")),
        }
        if !names.insert(name) {
            return Err("tools: Tool names must be unique.".into());
        }
    }
    Ok(names)
}

fn check_choice(choice: Option<&Value>, tools: &HashSet<&str>) -> Result<(), String> {
    let Some(choice) = choice else { return Ok(()) };
    if tools.is_empty() {
        return Err("tool_choice may only be specified while providing tools".into());
    }
    match choice.get("type").and_then(Value::as_str) {
        Some("auto" | "any" | "none") => Ok(()),
        Some("tool") => match choice.get("name").and_then(Value::as_str) {
            None => Err("tool_choice.tool.name: Field required".into()),
            Some(name) if !tools.contains(name) => Err(format!("Tool '{name}' not found in provided tools")),
            Some(_) => Ok(()),
        },
        _ => Err(
            "tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
                .into(),
        ),
    }
}

fn check_cache_marks(body: &Map<String, Value>) -> Result<(), String> {
    fn count(value: &Value) -> usize {
        match value {
            Value::Object(fields) => {
                usize::from(fields.contains_key("cache_control")) + fields.get("content").map_or(0, count)
            }
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }
    let places = ["system", "tools", "messages"].iter().filter_map(|field| body.get(*field));
    let found = places.map(count).sum::<usize>() + usize::from(body.contains_key("cache_control"));
    if found > MOST_CACHE_MARKS {
        return Err(format!(
            "A maximum of {MOST_CACHE_MARKS} blocks with cache_control may be provided. Found {found}."
        ));
    }
    Ok(())
}
