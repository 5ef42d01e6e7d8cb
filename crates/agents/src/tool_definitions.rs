//! The built-in tools as a model is told about them.

use models::chat::Tool;
use serde_json::{Value, json};

use crate::roles::Role;
use crate::tool_kind::ToolKind;

/// The most bytes of the system prompt and all tools for the local model: about 800 tokens.
const LOCAL_PROMPT_BYTES: usize = 800 * models::BYTES_PER_TOKEN;

impl Role {
    /// Its tools in the form that a model is sent.
    pub fn tool_definitions(self) -> Vec<Tool> {
        self.tools().iter().map(|tool| definition(*tool, self)).collect()
    }

    /// The bytes that are left for external tools in a prompt for the local model.
    pub fn local_tool_bytes(self) -> usize {
        let own: usize = self.tool_definitions().iter().map(definition_size).sum();
        LOCAL_PROMPT_BYTES.saturating_sub(self.system_prompt().len() + own)
    }
}

/// The bytes of a tool definition in a prompt.
pub(crate) fn definition_size(tool: &Tool) -> usize {
    const OVERHEAD: usize = 40;
    tool.name.len() + tool.description.len() + tool.input.to_string().len() + OVERHEAD
}

/// The definition of a tool for the model of a role.
fn definition(tool: ToolKind, role: Role) -> Tool {
    let text = json!({ "type": "string" });
    let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required });
    let (description, input) = match tool {
        ToolKind::Read => ("Read a file", object(json!({ "path": text }), &["path"])),
        ToolKind::List => ("List a folder; without path the workspace", object(json!({ "path": text }), &[])),
        ToolKind::Search => {
            ("Find files by words in their name or text", object(json!({ "words": text }), &["words"]))
        }
        ToolKind::Write => {
            ("Write a whole file", object(json!({ "path": text, "text": text }), &["path", "text"]))
        }
        ToolKind::Edit => (
            "Replace one exact passage of a file",
            object(json!({ "path": text, "find": text, "replace": text }), &["path", "find", "replace"]),
        ),
        ToolKind::Exec => (
            "Run a line of shell. `hosts`: reach these hosts, after the person agrees",
            object(
                json!({
                    "command": text,
                    "hosts": { "type": "array", "items": text },
                    "seconds": { "type": "integer" }
                }),
                &["command"],
            ),
        ),
        ToolKind::Fetch => ("Read a page of the web", object(json!({ "url": text }), &["url"])),
        ToolKind::WebSearch => ("Search the web", object(json!({ "words": text }), &["words"])),
        ToolKind::Delegate => {
            let names: Vec<&str> = role.helpers().iter().map(|helper| helper.name()).collect();
            let agent = json!({ "type": "string", "enum": names });
            ("Hand work to an agent", object(json!({ "agent": agent, "task": text }), &["agent", "task"]))
        }
        ToolKind::Tell => {
            let names: Vec<&str> = role.helpers().iter().map(|helper| helper.name()).collect();
            let agent = json!({ "type": "string", "enum": names });
            (
                "Answer an agent that works for you",
                object(json!({ "agent": agent, "text": text }), &["agent", "text"]),
            )
        }
        ToolKind::Report => {
            let kind = json!({ "type": "string", "enum": ["finding", "question", "progress"] });
            ("Tell whoever asked you", object(json!({ "kind": kind, "text": text }), &["kind", "text"]))
        }
        ToolKind::Ask => (
            "Ask the person",
            object(json!({ "question": text, "choices": { "type": "array", "items": text } }), &["question"]),
        ),
        ToolKind::Finish => (
            "End the run when all is done",
            object(json!({ "summary": text, "files": { "type": "array", "items": text } }), &["summary"]),
        ),
        // External tools come with their own definitions.
        ToolKind::External => ("", object(json!({}), &[])),
    };
    Tool { name: tool.name().into(), description: description.into(), input }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::ROLES;

    #[test]
    fn the_prompt_of_every_role_fits_the_local_model() {
        for role in ROLES {
            let tools = serde_json::to_string(&role.tool_definitions()).unwrap();
            let all = role.system_prompt().len() + tools.len() + role.local_tool_bytes();
            assert!(all < LOCAL_PROMPT_BYTES + 64, "{}: {all} bytes", role.name());
            assert!(role.local_tool_bytes() > 0, "{}", role.name());
        }
    }
}
