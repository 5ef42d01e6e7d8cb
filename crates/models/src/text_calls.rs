//! Finds tool calls in the text of models without native tool calls.
//!
//! Supported are `<tool_call>{…}</tool_call>`, a code fence that contains a call, and a text that is a call. Only names
//! of offered tools count, so that other JSON in an answer stays text.

use serde_json::Value;

use crate::{
    chat::Tool,
    json_repair::{TextEnd, parse_json},
};

/// The calls found in a text, and the text without them.
#[derive(Debug, PartialEq)]
pub(crate) struct TextCalls {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, Value)>,
}

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// `None` if there is no call. The error reports a tagged call that cannot be parsed.
pub(crate) fn find(text: &str, tools: &[Tool], end: TextEnd) -> Result<Option<TextCalls>, String> {
    if text.contains(OPEN) {
        return tagged(text, tools, end).map(Some);
    }
    Ok(fenced(text, tools, end).or_else(|| {
        let whole = text.trim();
        let calls = whole.starts_with(['{', '[']).then(|| calls_in(whole, tools, end))??;
        Some(TextCalls { text: String::new(), calls })
    }))
}

fn tagged(text: &str, tools: &[Tool], end: TextEnd) -> Result<TextCalls, String> {
    let mut found = TextCalls { text: String::new(), calls: Vec::new() };
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        found.text.push_str(before);
        let (call, left) = after.split_once(CLOSE).unwrap_or((after, ""));
        let calls = calls_in(call, tools, end);
        found.calls.extend(calls.ok_or_else(|| format!("this is not a call of a tool: {}", call.trim()))?);
        rest = left;
    }
    found.text.push_str(rest);
    found.text = found.text.trim().to_owned();
    Ok(found)
}

fn fenced(text: &str, tools: &[Tool], end: TextEnd) -> Option<TextCalls> {
    let (before, rest) = text.split_once("```")?;
    let (inside, after) = rest.split_once("```").unwrap_or((rest, ""));
    let inside = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let calls = calls_in(inside, tools, end)?;
    let text = format!("{}\n{}", before.trim(), after.trim()).trim().to_owned();
    Some(TextCalls { text, calls })
}

/// One call, or a list that contains only calls.
fn calls_in(text: &str, tools: &[Tool], end: TextEnd) -> Option<Vec<(String, Value)>> {
    let value = parse_json(text, end).ok()?;
    match value.as_array() {
        Some(items) if !items.is_empty() => items.iter().map(|item| call(item, tools)).collect(),
        Some(_) | None => call(&value, tools).map(|call| vec![call]),
    }
}

/// `{"name": …, "arguments": {…}}`, with any of the field names that models use.
fn call(value: &Value, tools: &[Tool]) -> Option<(String, Value)> {
    let value = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let name =
        ["name", "tool", "tool_name", "function"].into_iter().find_map(|key| value.get(key)?.as_str())?;
    let tool = tools.iter().find(|tool| tool.name == name)?;
    let input = ["arguments", "parameters", "input", "args"].into_iter().find_map(|key| value.get(key));
    let input = match input {
        Some(Value::String(text)) => parse_json(text, TextEnd::Complete).ok()?,
        Some(input) => input.clone(),
        None => Value::Object(serde_json::Map::new()),
    };
    Some((tool.name.clone(), input))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<Tool> {
        let tool = |name: &str| Tool { name: name.into(), description: String::new(), input: json!({}) };
        vec![tool("read"), tool("write")]
    }

    #[test]
    fn calls_written_as_text_are_found() {
        let read = || ("read".to_owned(), json!({"path": "a"}));
        let write = || ("write".to_owned(), json!({"text": "x"}));
        let cases = [
            (
                "fence",
                "I look.\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
                "I look.",
                vec![read()],
            ),
            (
                "bare fence",
                "```\n{\"tool\": \"read\", \"input\": {\"path\": \"a\",}}\n```\nThen",
                "Then",
                vec![read()],
            ),
            (
                "tags",
                "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
                "",
                vec![read()],
            ),
            (
                "two tags",
                "Both: <tool_call>{'name':'read','arguments':{'path':'a'}}</tool_call>\n<tool_call>{\"name\":\"write\",\"arguments\":{\"text\":\"x\"}}",
                "Both:",
                vec![read(), write()],
            ),
            (
                "whole text",
                "{\"name\": \"read\", \"arguments\": \"{\\\"path\\\": \\\"a\\\"}\"}",
                "",
                vec![read()],
            ),
            (
                "list",
                "[{\"function\": {\"name\": \"write\", \"parameters\": {\"text\": \"x\"}}}]",
                "",
                vec![write()],
            ),
        ];
        for (name, text, rest, calls) in cases {
            let expected = TextCalls { text: rest.into(), calls };
            assert_eq!(find(text, &tools(), TextEnd::Complete), Ok(Some(expected)), "{name}");
        }
    }

    #[test]
    fn json_that_is_not_a_call_of_an_offered_tool_stays_text() {
        let cases = [
            "```json\n{\"name\": \"choir\", \"version\": 1}\n```",
            "{\"answer\": 42}",
            "[1, 2]",
            "Use `read` for that.",
            "```rust\nfn read() {}\n```",
        ];
        for text in cases {
            assert_eq!(find(text, &tools(), TextEnd::Complete), Ok(None), "{text}");
        }
    }

    #[test]
    fn a_tagged_call_that_cannot_be_parsed_is_an_error() {
        assert!(find("<tool_call>read a</tool_call>", &tools(), TextEnd::Complete).is_err());
        assert!(
            find("<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":1", &tools(), TextEnd::CutOff)
                .is_err()
        );
    }
}
