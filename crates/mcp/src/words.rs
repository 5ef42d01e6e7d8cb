//! What a server answers, as words that a model can read: bounded, and without the secrets that it was given.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use zeroize::Zeroizing;

/// Bytes of an answer; the rest is left out.
const LONGEST: usize = 200_000;
/// Characters of a reason.
const LONGEST_REASON: usize = 600;
/// A shorter secret could stand anywhere by chance.
const LEAST_SECRET: usize = 6;

/// What came of a call. All of it is somebody else's words, also where it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub text: String,
    pub failed: bool,
    /// Whether it was cut off, so that nobody knows what became of it.
    pub cut_off: bool,
}

impl Said {
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self { text: reason.into(), failed: true, cut_off: false }
    }

    pub(crate) fn cut_off(reason: impl Into<String>) -> Self {
        Self { cut_off: true, ..Self::failed(reason) }
    }
}

/// What a call came to, without what nobody may read. That goes before anything is cut, so that no half of it stays.
pub(crate) fn of(result: CallToolResult, secrets: &[Zeroizing<String>]) -> Said {
    let failed = result.is_error.unwrap_or(false);
    let parts: Vec<String> = result.content.into_iter().map(part).collect();
    let mut text = parts.join("\n");
    if text.trim().is_empty()
        && let Some(value) = result.structured_content
    {
        text = all_without(value, secrets).to_string();
    }
    text = without(text, secrets);
    if text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        let more = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{more} more bytes are left out]"));
    }
    Said { text, failed, cut_off: false }
}

fn part(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!("[an image, {}, not shown]", reason(&image.mime_type)),
        ContentBlock::Audio(audio) => format!("[a sound, {}, not played]", reason(&audio.mime_type)),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{}\n{text}", reason(&uri)),
            ResourceContents::BlobResourceContents { uri, .. } => {
                format!("[bytes of {}, not shown]", reason(&uri))
            }
            _ => "[something that this program cannot read]".into(),
        },
        ContentBlock::ResourceLink(link) => format!("{}: {}", reason(&link.name), reason(&link.uri)),
        _ => "[something that this program cannot read]".into(),
    }
}

/// Words of somebody else's in one line of ours.
pub(crate) fn reason(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.trim().chars().map(clean).take(LONGEST_REASON).collect();
    if text.trim().chars().count() > LONGEST_REASON { format!("{line}…") } else { line }
}

/// Words without the secrets that a server was given, whole or by one of their lines.
pub(crate) fn without(text: String, secrets: &[Zeroizing<String>]) -> String {
    let lines = secrets.iter().flat_map(|secret| secret.lines());
    let secrets = secrets.iter().map(|secret| secret.as_str()).chain(lines);
    let mut secrets: Vec<&str> = secrets.filter(|secret| secret.len() >= LEAST_SECRET).collect();
    // One may begin as another does.
    secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.iter().fold(text, |text, secret| text.replace(secret, "[a secret]"))
}

/// The same for everything in a value, the names of its fields too.
pub(crate) fn all_without(value: Value, secrets: &[Zeroizing<String>]) -> Value {
    let clean = |value| all_without(value, secrets);
    match value {
        Value::String(text) => without(text, secrets).into(),
        Value::Array(values) => values.into_iter().map(clean).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (without(name, secrets), clean(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(value: serde_json::Value) -> Said {
        of(serde_json::from_value(value).unwrap(), &[])
    }

    #[test]
    fn texts_are_joined_and_the_rest_is_spoken_of() {
        let mixed = json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "text", "text": "two" },
        ] });
        assert_eq!(said(mixed).text, "one\n[an image, image/png, not shown]\ntwo");
        let structured = json!({ "content": [], "structuredContent": { "open": 3 } });
        assert_eq!(said(structured), Said { text: "{\"open\":3}".into(), failed: false, cut_off: false });
        assert!(said(json!({ "content": [], "isError": true })).failed);
    }

    #[test]
    fn an_answer_without_end_is_cut() {
        let flood = json!({ "content": [{ "type": "text", "text": "ä".repeat(LONGEST) }] });
        let text = said(flood).text;
        assert!(text.len() < LONGEST + 60 && text.ends_with("left out]"), "{}", text.len());
    }

    #[test]
    fn a_secret_that_comes_back_is_taken_out() {
        let secret = [Zeroizing::new("s3cret-token".to_owned()), Zeroizing::new("ab".to_owned())];
        assert_eq!(without("not s3cret-token, abba".into(), &secret), "not [a secret], abba");
        let long = format!("{}s3cret-token", "a".repeat(LONGEST - 5));
        let flood = json!({ "content": [{ "type": "text", "text": long }] });
        let said = of(serde_json::from_value(flood).unwrap(), &secret);
        assert!(!said.text.contains("s3cre"), "no half of it stays where an answer is cut");
    }

    #[test]
    fn a_secret_of_several_lines_is_taken_out_line_by_line() {
        let secret = [Zeroizing::new("-----BEGIN-----\nc2VjcmV0\n".to_owned())];
        assert_eq!(without("line 2: c2VjcmV0".into(), &secret), "line 2: [a secret]");
        let structured = json!({ "content": [], "structuredContent": { "key": secret[0].as_str() } });
        let said = of(serde_json::from_value(structured).unwrap(), &secret);
        assert_eq!(said.text, "{\"key\":\"[a secret]\"}");
    }
}
