//! A server's answer as text for a model: bounded, with the server's secrets redacted.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use zeroize::Zeroizing;

/// The maximum bytes of an answer; the rest is cut off.
const MAX_BYTES: usize = 200_000;
/// The maximum characters of a one-line text.
const MAX_LINE: usize = 600;
/// A shorter secret could occur in other text by chance, so it is not redacted.
const MIN_SECRET: usize = 6;

/// The result of a call. All of it is untrusted text from the server, including errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    pub text: String,
    pub failed: bool,
    /// True if the call was interrupted, so that its effect is unknown.
    pub cut_off: bool,
}

impl ToolAnswer {
    pub(crate) fn failed(one_line: impl Into<String>) -> Self {
        Self { text: one_line.into(), failed: true, cut_off: false }
    }

    pub(crate) fn cut_off(one_line: impl Into<String>) -> Self {
        Self { cut_off: true, ..Self::failed(one_line) }
    }
}

/// Converts a call's result. Secrets are redacted before the text is cut, so that no part of one remains.
pub(crate) fn from_result(result: CallToolResult, secrets: &[Zeroizing<String>]) -> ToolAnswer {
    let failed = result.is_error.unwrap_or(false);
    let parts: Vec<String> = result.content.into_iter().map(block_text).collect();
    let mut text = parts.join("\n");
    if text.trim().is_empty()
        && let Some(value) = result.structured_content
    {
        text = redact_value(value, secrets).to_string();
    }
    text = redact(text, secrets);
    if text.len() > MAX_BYTES {
        let end = text.floor_char_boundary(MAX_BYTES);
        let more = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{more} more bytes are left out]"));
    }
    ToolAnswer { text, failed, cut_off: false }
}

fn block_text(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!("[an image, {}, not shown]", one_line(&image.mime_type)),
        ContentBlock::Audio(audio) => format!("[a sound, {}, not played]", one_line(&audio.mime_type)),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{}\n{text}", one_line(&uri)),
            ResourceContents::BlobResourceContents { uri, .. } => {
                format!("[bytes of {}, not shown]", one_line(&uri))
            }
            _ => "[something that this program cannot read]".into(),
        },
        ContentBlock::ResourceLink(link) => format!("{}: {}", one_line(&link.name), one_line(&link.uri)),
        _ => "[something that this program cannot read]".into(),
    }
}

/// Untrusted text as one bounded line without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.trim().chars().map(clean).take(MAX_LINE).collect();
    if text.trim().chars().count() > MAX_LINE { format!("{line}…") } else { line }
}

/// Redacts the secrets that a server was given, as a whole and line by line.
pub(crate) fn redact(text: String, secrets: &[Zeroizing<String>]) -> String {
    let lines = secrets.iter().flat_map(|secret| secret.lines());
    let secrets = secrets.iter().map(|secret| secret.as_str()).chain(lines);
    let mut secrets: Vec<&str> = secrets.filter(|secret| secret.len() >= MIN_SECRET).collect();
    // Longest first, because one secret may be a prefix of another.
    secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.iter().fold(text, |text, secret| text.replace(secret, "[a secret]"))
}

/// Redacts all strings of a value, including field names.
pub(crate) fn redact_value(value: Value, secrets: &[Zeroizing<String>]) -> Value {
    let clean = |value| redact_value(value, secrets);
    match value {
        Value::String(text) => redact(text, secrets).into(),
        Value::Array(values) => values.into_iter().map(clean).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (redact(name, secrets), clean(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(value: serde_json::Value) -> ToolAnswer {
        from_result(serde_json::from_value(value).unwrap(), &[])
    }

    #[test]
    fn texts_are_joined_and_other_content_is_described() {
        let mixed = json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "text", "text": "two" },
        ] });
        assert_eq!(answer(mixed).text, "one\n[an image, image/png, not shown]\ntwo");
        let structured = json!({ "content": [], "structuredContent": { "open": 3 } });
        assert_eq!(
            answer(structured),
            ToolAnswer { text: "{\"open\":3}".into(), failed: false, cut_off: false }
        );
        assert!(answer(json!({ "content": [], "isError": true })).failed);
    }

    #[test]
    fn a_long_answer_is_cut() {
        let flood = json!({ "content": [{ "type": "text", "text": "ä".repeat(MAX_BYTES) }] });
        let text = answer(flood).text;
        assert!(text.len() < MAX_BYTES + 60 && text.ends_with("left out]"), "{}", text.len());
    }

    #[test]
    fn a_returned_secret_is_redacted() {
        let secret = [Zeroizing::new("s3cret-token".to_owned()), Zeroizing::new("ab".to_owned())];
        assert_eq!(redact("not s3cret-token, abba".into(), &secret), "not [a secret], abba");
        let long = format!("{}s3cret-token", "a".repeat(MAX_BYTES - 5));
        let flood = json!({ "content": [{ "type": "text", "text": long }] });
        let answer = from_result(serde_json::from_value(flood).unwrap(), &secret);
        assert!(!answer.text.contains("s3cre"), "no half of it stays where an answer is cut");
    }

    #[test]
    fn a_multi_line_secret_is_redacted_line_by_line() {
        let secret = [Zeroizing::new("-----BEGIN-----\nc2VjcmV0\n".to_owned())];
        assert_eq!(redact("line 2: c2VjcmV0".into(), &secret), "line 2: [a secret]");
        let structured = json!({ "content": [], "structuredContent": { "key": secret[0].as_str() } });
        let answer = from_result(serde_json::from_value(structured).unwrap(), &secret);
        assert_eq!(answer.text, "{\"key\":\"[a secret]\"}");
    }
}
