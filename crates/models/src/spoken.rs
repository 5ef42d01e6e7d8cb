//! Calls that a model wrote into its text because it knows no other way.
//!
//! Understood are `<tool_call>{…}</tool_call>`, a code fence with a call in it, and a text that is a call. Only tools
//! that were offered are called this way, so that JSON in an answer stays an answer.

use serde_json::Value;

use crate::{
    chat::Tool,
    repair::{Ending, read_json},
};

/// A text, and the calls that were taken out of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Spoken {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, Value)>,
}

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// `None` if there is no call. The error is for a call that is meant as one and cannot be read.
pub(crate) fn find(text: &str, tools: &[Tool], ending: Ending) -> Result<Option<Spoken>, String> {
    if text.contains(OPEN) {
        return tagged(text, tools, ending).map(Some);
    }
    Ok(fenced(text, tools, ending).or_else(|| {
        let whole = text.trim();
        let calls = whole.starts_with(['{', '[']).then(|| calls_in(whole, tools, ending))??;
        Some(Spoken { text: String::new(), calls })
    }))
}

fn tagged(text: &str, tools: &[Tool], ending: Ending) -> Result<Spoken, String> {
    let mut spoken = Spoken { text: String::new(), calls: Vec::new() };
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        spoken.text.push_str(before);
        let (call, left) = after.split_once(CLOSE).unwrap_or((after, ""));
        let calls = calls_in(call, tools, ending);
        spoken.calls.extend(calls.ok_or_else(|| format!("this is not a call of a tool: {}", call.trim()))?);
        rest = left;
    }
    spoken.text.push_str(rest);
    spoken.text = spoken.text.trim().to_owned();
    Ok(spoken)
}

fn fenced(text: &str, tools: &[Tool], ending: Ending) -> Option<Spoken> {
    let (before, rest) = text.split_once("```")?;
    let (inside, after) = rest.split_once("```").unwrap_or((rest, ""));
    let inside = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let calls = calls_in(inside, tools, ending)?;
    let text = format!("{}\n{}", before.trim(), after.trim()).trim().to_owned();
    Some(Spoken { text, calls })
}

/// One call, or a list of nothing but calls.
fn calls_in(text: &str, tools: &[Tool], ending: Ending) -> Option<Vec<(String, Value)>> {
    let value = read_json(text, ending).ok()?;
    match value.as_array() {
        Some(items) if !items.is_empty() => items.iter().map(|item| call(item, tools)).collect(),
        Some(_) | None => call(&value, tools).map(|call| vec![call]),
    }
}

/// `{"name": …, "arguments": {…}}`, by any of the words for both that are in use.
fn call(value: &Value, tools: &[Tool]) -> Option<(String, Value)> {
    let value = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let name =
        ["name", "tool", "tool_name", "function"].into_iter().find_map(|key| value.get(key)?.as_str())?;
    let tool = tools.iter().find(|tool| tool.name == name)?;
    let input = ["arguments", "parameters", "input", "args"].into_iter().find_map(|key| value.get(key));
    let input = match input {
        Some(Value::String(text)) => read_json(text, Ending::Said).ok()?,
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
            let expected = Spoken { text: rest.into(), calls };
            assert_eq!(find(text, &tools(), Ending::Said), Ok(Some(expected)), "{name}");
        }
    }

    #[test]
    fn json_that_calls_no_offered_tool_stays_text() {
        let cases = [
            "```json\n{\"name\": \"choir\", \"version\": 1}\n```",
            "{\"answer\": 42}",
            "[1, 2]",
            "Use `read` for that.",
            "```rust\nfn read() {}\n```",
        ];
        for text in cases {
            assert_eq!(find(text, &tools(), Ending::Said), Ok(None), "{text}");
        }
    }

    #[test]
    fn a_tag_that_cannot_be_read_is_an_error() {
        assert!(find("<tool_call>read a</tool_call>", &tools(), Ending::Said).is_err());
        assert!(
            find("<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":1", &tools(), Ending::CutOff)
                .is_err()
        );
    }
}
