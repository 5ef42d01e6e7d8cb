//! Parses JSON as weak models write it: with extra commas, wrong quotes, missing closing brackets, or prose around it.
//!
//! Only errors with one possible meaning are repaired. An unterminated string is never closed: half a file would look
//! like a complete one.

use serde_json::{Map, Value};

/// Deeper than the input of any tool.
const MAX_DEPTH: usize = 64;

/// How the text ended, which decides whether missing brackets are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextEnd {
    /// The model finished, so it forgot the missing brackets.
    Complete,
    /// The model was cut off, so the missing part is unknown.
    CutOff,
}

/// Parses JSON and repairs it if needed. The error is the parser's message.
pub(crate) fn parse_json(text: &str, end: TextEnd) -> Result<Value, String> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    let inner = unfenced(text);
    if let Ok(value) = serde_json::from_str(inner) {
        return Ok(value);
    }
    let start = inner.find(['{', '[']).ok_or_else(|| error.clone())?;
    let mut parser = LenientParser { rest: &inner[start..], end };
    parser.value(0).ok_or(error)
}

/// The content of the first code fence, or the text itself.
fn unfenced(text: &str) -> &str {
    let Some((before, rest)) = text.split_once("```") else { return text.trim() };
    // A fence after the start of the JSON is part of it.
    if before.contains(['{', '[']) {
        return text.trim();
    }
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    rest.rsplit_once("```").map_or(rest, |(inside, _)| inside).trim()
}

struct LenientParser<'a> {
    rest: &'a str,
    end: TextEnd,
}

impl LenientParser<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.next();
        let mut fields = Map::new();
        loop {
            match self.peek() {
                Some('}') => {
                    self.next();
                    return Some(fields.into());
                }
                Some(',') => self.next(),
                None => return (self.end == TextEnd::Complete).then_some(fields.into()),
                Some(_) => {
                    let key = self.key()?;
                    if self.peek()? != ':' {
                        return None;
                    }
                    self.next();
                    fields.insert(key, self.value(depth + 1)?);
                    self.expect_separator('}')?;
                }
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.next();
        let mut items = Vec::new();
        loop {
            match self.peek() {
                Some(']') => {
                    self.next();
                    return Some(items.into());
                }
                Some(',') => self.next(),
                None => return (self.end == TextEnd::Complete).then_some(items.into()),
                Some(_) => {
                    items.push(self.value(depth + 1)?);
                    self.expect_separator(']')?;
                }
            }
        }
    }

    /// Checks that a comma, the closing bracket or the end of the text follows.
    fn expect_separator(&mut self, close: char) -> Option<()> {
        self.peek().is_none_or(|c| c == ',' || c == close).then_some(())
    }

    fn key(&mut self) -> Option<String> {
        match self.peek()? {
            quote @ ('"' | '\'') => self.string(quote),
            _ => {
                let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
                let end = self.rest.find(|c| !is_part(c))?;
                let (key, rest) = self.rest.split_at(end);
                self.rest = rest;
                (!key.is_empty()).then(|| key.to_owned())
            }
        }
    }

    /// A string in single or double quotes. It may contain raw line breaks.
    fn string(&mut self, quote: char) -> Option<String> {
        self.next();
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Some(text);
                }
                '\\' => {
                    let (_, escaped) = chars.next()?;
                    match escaped {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        'r' => text.push('\r'),
                        'b' => text.push('\u{8}'),
                        'f' => text.push('\u{c}'),
                        'u' => text.push(unicode(&mut chars)?),
                        other => text.push(other),
                    }
                }
                c => text.push(c),
            }
        }
        None
    }

    /// A number, or a literal of JSON, JavaScript or Python.
    fn word(&mut self) -> Option<Value> {
        let end =
            self.rest.find(|c: char| c.is_whitespace() || ",]}:".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        // A number at the very end may be incomplete.
        if rest.is_empty() && self.end == TextEnd::CutOff {
            return None;
        }
        self.rest = rest;
        match word {
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            "null" | "None" | "undefined" => Some(Value::Null),
            number => serde_json::from_str(number).ok(),
        }
    }

    /// Skips whitespace and returns the next character.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn next(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }
}

/// The four hex digits after `\u`, or a surrogate pair of two such groups.
fn unicode(chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    let mut group = || {
        let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
        u16::from_str_radix(&digits, 16).ok()
    };
    let first = group()?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first.into());
    }
    let (Some((_, '\\')), Some((_, 'u'))) = (chars.next(), chars.next()) else { return None };
    let mut group = || {
        let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
        u16::from_str_radix(&digits, 16).ok()
    };
    char::decode_utf16([first, group()?]).next()?.ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unambiguous_errors_are_repaired() {
        let cases = [
            ("as it should be", r#"{"a": 1}"#, json!({"a": 1})),
            ("trailing commas", r#"{"a": [1, 2,], "b": 3,}"#, json!({"a": [1, 2], "b": 3})),
            ("brackets left open", r#"{"a": {"b": [1, {"c": 2"#, json!({"a": {"b": [1, {"c": 2}]}})),
            ("single quotes", "{'a': 'b \"c\"', 'd': ['e']}", json!({"a": "b \"c\"", "d": ["e"]})),
            ("code fence", "```json\n{\"a\": 1}\n```", json!({"a": 1})),
            ("fence and commas", "Here:\n```\n{\"a\": 1,}\n``` done", json!({"a": 1})),
            ("prose around", "Sure! {\"a\": \"x\"} I hope this helps.", json!({"a": "x"})),
            (
                "fence inside a string",
                "{\"a\": \"```rust\\nfn x() {}\\n```\",}",
                json!({"a": "```rust\nfn x() {}\n```"}),
            ),
            ("bare keys", "{path: \"a\", max_lines: 3}", json!({"path": "a", "max_lines": 3})),
            ("Python", "{'a': True, 'b': None, 'c': False}", json!({"a": true, "b": null, "c": false})),
            ("line breaks in a string", "{\"a\": \"one\ntwo\",}", json!({"a": "one\ntwo"})),
            ("escapes", r#"{'a': '\u00fc \ud83d\ude00 \\ \/',}"#, json!({"a": "ü 😀 \\ /"})),
        ];
        for (name, text, expected) in cases {
            assert_eq!(parse_json(text, TextEnd::Complete), Ok(expected), "{name}");
        }
    }

    #[test]
    fn ambiguous_text_is_rejected() {
        let cases = [
            ("nothing", ""),
            ("prose", "I will not."),
            ("a string left open", r#"{"path": "a", "text": "half of a fi"#),
            ("a key without a value", r#"{"a""#),
            ("no comma", r#"{"a": 1 "b": 2}"#),
            ("an apostrophe in single quotes", "{'a': 'it's'}"),
            ("half a character", r#"{'a': '\ud83d'}"#),
            ("too deep", &"[".repeat(100_000)),
        ];
        for (name, text) in cases {
            assert!(parse_json(text, TextEnd::Complete).is_err(), "{name}");
        }
    }

    #[test]
    fn text_that_was_cut_off_is_not_completed() {
        for text in [r#"{"a": [1, 2"#, r#"{"a": 1, "b": {"c": 2}"#, r#"{"a": 12"#] {
            assert!(parse_json(text, TextEnd::Complete).is_ok(), "{text}");
            assert!(parse_json(text, TextEnd::CutOff).is_err(), "{text}");
        }
        assert!(parse_json(r#"{"a": 1,}"#, TextEnd::CutOff).is_ok());
    }
}
