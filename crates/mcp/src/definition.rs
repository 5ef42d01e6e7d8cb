//! Tool definitions for a model. Names and schemas are restricted to what every provider accepts, because one
//! rejected schema would make every request of the agent fail.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The limit of all providers: `[a-zA-Z0-9_-]{1,64}`.
const MAX_NAME: usize = 64;
/// Hexadecimal digits appended to make names unique.
const HASH_DIGITS: usize = 8;
/// The maximum tools per server; a model cannot choose well among more.
const MAX_TOOLS: usize = 64;
/// The maximum characters of a description and bytes of a schema.
const MAX_DESCRIPTION: usize = 1_000;
const MAX_SCHEMA: usize = 16 << 10;
const MAX_DEPTH: usize = 12;

/// A tool of a server, as it is offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name for models: `mcp_SERVER_TOOL`.
    pub name: String,
    /// The server's own name for it.
    pub tool: String,
    /// The server's description, marked as the server's, for models.
    pub description: String,
    /// The same without the mark, for people.
    #[serde(default)]
    pub own_description: String,
    pub input: Value,
    /// True if the server declares it read-only.
    pub hint: bool,
}

/// A tool as the server describes it, unchecked.
#[derive(Debug, Clone)]
pub(crate) struct RawTool {
    pub(crate) tool: String,
    pub(crate) description: String,
    pub(crate) input: Value,
    pub(crate) hint: bool,
}

/// The definitions of a server's tools, sorted by name.
pub(crate) fn define_tools(server: &str, raw: Vec<RawTool>) -> Vec<ToolDefinition> {
    // If a tool is listed twice, the first entry counts.
    let mut tools = BTreeMap::new();
    for tool in raw {
        if !tool.tool.is_empty() {
            tools.entry(tool.tool.clone()).or_insert(tool);
        }
    }
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for tool in tools.keys() {
        *names.entry(plain_name(server, tool)).or_default() += 1;
    }
    let offer = |raw: RawTool| {
        let own_description = bounded(&raw.description);
        let plain_name = plain_name(server, &raw.tool);
        let is_taken = names.get(&plain_name).is_some_and(|count| *count > 1);
        let name = if is_taken || plain_name.len() > MAX_NAME {
            hashed_name(&plain_name, &raw.tool)
        } else {
            plain_name
        };
        ToolDefinition {
            name,
            description: format!("(by the server {server}) {own_description}"),
            own_description,
            input: schema(raw.input),
            hint: raw.hint,
            tool: raw.tool,
        }
    };
    tools.into_values().take(MAX_TOOLS).map(offer).collect()
}

/// The server that a tool name refers to, if it is an MCP tool.
pub(crate) fn server_of(name: &str) -> Option<&str> {
    // Server names contain no underscore.
    name.strip_prefix("mcp_")?.split_once('_').map(|(server, _)| server)
}

fn plain_name(server: &str, tool: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("mcp_{server}_{}", tool.chars().map(letter).collect::<String>())
}

fn hashed_name(plain_name: &str, tool: &str) -> String {
    let digest = Sha256::digest(tool.as_bytes());
    let digits: String = digest.iter().take(HASH_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
    format!("{}_{digits}", &plain_name[..plain_name.len().min(MAX_NAME - HASH_DIGITS - 1)])
}

/// A server's description, shortened and on one line.
fn bounded(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_DESCRIPTION).collect();
    text.trim().to_owned()
}

/// The schema of the arguments, or one that accepts anything if a provider would reject it.
fn schema(given: Value) -> Value {
    let open = || json!({ "type": "object" });
    let Value::Object(mut schema) = given else { return open() };
    schema.remove("$schema");
    schema.entry("type").or_insert_with(|| "object".into());
    let is_fine = schema.get("type").is_some_and(|kind| kind == "object")
        && !["anyOf", "oneOf", "allOf", "not", "enum"].iter().any(|word| schema.contains_key(*word))
        && is_well_formed(&schema, 0)
        && Value::Object(schema.clone()).to_string().len() <= MAX_SCHEMA;
    if is_fine { Value::Object(schema) } else { open() }
}

/// Checks the keywords that providers validate.
fn is_well_formed(schema: &Map<String, Value>, depth: usize) -> bool {
    let one = |value: &Value| match value {
        Value::Object(schema) => is_well_formed(schema, depth + 1),
        Value::Bool(_) => true,
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    };
    let kind = |kind: &Value| {
        let known = ["object", "array", "string", "number", "integer", "boolean", "null"];
        kind.as_str().is_some_and(|kind| known.contains(&kind))
    };
    depth <= MAX_DEPTH
        && schema.iter().all(|(word, value)| match word.as_str() {
            "type" => kind(value) || value.as_array().is_some_and(|kinds| kinds.iter().all(kind)),
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                value.as_object().is_some_and(|all| all.values().all(one))
            }
            "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
            "items" | "additionalProperties" => one(value),
            "anyOf" | "oneOf" | "allOf" => {
                value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(one))
            }
            "enum" => value.as_array().is_some_and(|all| !all.is_empty()),
            "$ref" => value.as_str().is_some_and(|to| to.starts_with('#')),
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(tool: &str, input: Value) -> RawTool {
        RawTool { tool: tool.into(), description: "Finds\nthings".into(), input, hint: false }
    }

    fn names(tools: &[&str]) -> Vec<String> {
        let raw = tools.iter().map(|tool| raw(tool, json!({}))).collect();
        define_tools("notes", raw).into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn names_are_valid_for_every_provider() {
        assert_eq!(names(&["find", "make new"]), ["mcp_notes_find", "mcp_notes_make_new"]);
        let long = names(&[&"x".repeat(80), &format!("{}y", "x".repeat(80))]);
        assert!(long.iter().all(|name| name.len() == MAX_NAME), "{long:?}");
        assert_ne!(long[0], long[1]);
        let other = names(&["käse", "späße/🧀"]);
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        assert!(other.iter().all(|name| name.chars().all(fits)), "{other:?}");
    }

    #[test]
    fn colliding_tool_names_are_made_unique() {
        let both = names(&["a.b", "a/b", "c", "c"]);
        assert_eq!(both.len(), 3);
        assert_ne!(both[0], both[1]);
        assert_eq!(
            names(&["a.b", "a/b"])[0],
            both[0],
            "a name does not depend on what else there is to come"
        );
        assert_eq!(both[2], "mcp_notes_c");
    }

    #[test]
    fn a_tool_name_identifies_its_server() {
        assert_eq!(server_of("mcp_my-notes_find_all"), Some("my-notes"));
        assert_eq!(server_of("mcp_notes"), None);
        assert_eq!(server_of("read"), None);
    }

    #[test]
    fn a_schema_that_a_provider_would_reject_is_replaced() {
        let open = json!({ "type": "object" });
        let fine = json!({ "type": "object", "properties": { "words": { "type": "string" } }, "required": ["words"] });
        assert_eq!(schema(fine.clone()), fine);
        assert_eq!(
            schema(json!({ "$schema": "https://x", "properties": {} })),
            json!({ "type": "object", "properties": {} })
        );
        for bad in [
            json!([]),
            json!("words"),
            json!({ "type": "string" }),
            json!({ "type": "object", "properties": 5 }),
            json!({ "type": "object", "properties": { "a": { "type": "strnig" } } }),
            json!({ "type": "object", "properties": { "a": { "$ref": "https://elsewhere" } } }),
            json!({ "type": "object", "required": "a" }),
            json!({ "anyOf": [{}] }),
            json!({ "type": "object", "description": "x".repeat(MAX_SCHEMA) }),
        ] {
            assert_eq!(schema(bad.clone()), open, "{bad}");
        }
        let deep =
            (0..40).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "array", "items": inner }));
        assert_eq!(schema(json!({ "type": "object", "properties": { "deep": deep } })), open);
    }

    #[test]
    fn descriptions_are_bounded_and_name_their_server() {
        let raw = RawTool { description: "x".repeat(5_000), ..raw("find", json!({})) };
        let tool = define_tools("notes", vec![raw]).remove(0);
        assert!(tool.description.starts_with("(by the server notes) xxx"));
        assert!(tool.own_description.starts_with("xxx"));
        assert!(tool.description.len() < MAX_DESCRIPTION + 40);
        assert_eq!(tool.input, json!({ "type": "object" }));
    }

    #[test]
    fn the_number_of_tools_is_bounded() {
        let many: Vec<RawTool> = (0..500).map(|n| raw(&format!("t{n}"), json!({}))).collect();
        assert_eq!(define_tools("notes", many).len(), MAX_TOOLS);
    }
}
