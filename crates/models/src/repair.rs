//! JSON as weak models write it: with commas too many, quotes of the wrong kind, brackets left open, prose around it.
//!
//! Only what has one meaning is repaired. A string without an end is never closed: half a file would pass for a whole.

use serde_json::{Map, Value};

/// Deeper nesting than any tool's input has.
const DEEPEST: usize = 64;

/// Whether the text may lack its last brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The model had said everything, so brackets that lack were forgotten.
    Said,
    /// The model was cut off, so whatever lacks was still to come.
    CutOff,
}

/// Reads JSON, repaired where it must be; the error says what is wrong with it.
pub(crate) fn read_json(text: &str, ending: Ending) -> Result<Value, String> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    let inner = unfenced(text);
    if let Ok(value) = serde_json::from_str(inner) {
        return Ok(value);
    }
    let start = inner.find(['{', '[']).ok_or_else(|| error.clone())?;
    let mut parser = Parser { rest: &inner[start..], ending };
    parser.value(0).ok_or(error)
}

/// What stands in the first code fence, or the text itself.
fn unfenced(text: &str) -> &str {
    let Some((before, rest)) = text.split_once("```") else { return text.trim() };
    // A fence after the JSON has begun belongs to it.
    if before.contains(['{', '[']) {
        return text.trim();
    }
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    rest.rsplit_once("```").map_or(rest, |(inside, _)| inside).trim()
}

struct Parser<'a> {
    rest: &'a str,
    ending: Ending,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
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
                None => return (self.ending == Ending::Said).then_some(fields.into()),
                Some(_) => {
                    let key = self.key()?;
                    if self.peek()? != ':' {
                        return None;
                    }
                    self.next();
                    fields.insert(key, self.value(depth + 1)?);
                    self.separated('}')?;
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
                None => return (self.ending == Ending::Said).then_some(items.into()),
                Some(_) => {
                    items.push(self.value(depth + 1)?);
                    self.separated(']')?;
                }
            }
        }
    }

    /// After a member there is a comma, the closing bracket, or nothing any more.
    fn separated(&mut self, close: char) -> Option<()> {
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

    /// A string in either kind of quotes. Line breaks may stand in it as they are.
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

    /// A number, or a word of JSON, JavaScript or Python.
    fn word(&mut self) -> Option<Value> {
        let end =
            self.rest.find(|c: char| c.is_whitespace() || ",]}:".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        // A number at the very end may have had more digits.
        if rest.is_empty() && self.ending == Ending::CutOff {
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

    /// The next character that is no space.
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

/// Four hexadecimal digits, or two such groups that stand for one character.
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
    fn what_has_one_meaning_is_read() {
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
            assert_eq!(read_json(text, Ending::Said), Ok(expected), "{name}");
        }
    }

    #[test]
    fn what_could_mean_anything_is_refused() {
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
            assert!(read_json(text, Ending::Said).is_err(), "{name}");
        }
    }

    #[test]
    fn what_was_cut_off_is_not_completed() {
        for text in [r#"{"a": [1, 2"#, r#"{"a": 1, "b": {"c": 2}"#, r#"{"a": 12"#] {
            assert!(read_json(text, Ending::Said).is_ok(), "{text}");
            assert!(read_json(text, Ending::CutOff).is_err(), "{text}");
        }
        assert!(read_json(r#"{"a": 1,}"#, Ending::CutOff).is_ok());
    }
}
