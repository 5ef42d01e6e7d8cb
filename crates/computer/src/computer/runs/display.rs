//! Contents as text for a person. Long ones are cut, with a note.

use std::io::Read;

use event_log::EventLog;
use shared_types::ContentRef;

/// The most bytes of a content that are shown.
const MAX_SHOWN_BYTES: u64 = 256 << 10;

/// A text, and a note about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShownText {
    pub(super) text: Option<String>,
    pub(super) note: Option<String>,
}

/// A content as text. A purged or damaged one gives a note, not an error.
pub(super) fn show(log: &dyn EventLog, content: &ContentRef) -> ShownText {
    let mut bytes = Vec::new();
    let read = log.content(&content.hash).map(|reader| reader.take(MAX_SHOWN_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(Ok(_)) => {}
        Ok(Err(e)) => return ShownText { text: None, note: Some(e.to_string()) },
        Err(e) => return ShownText { text: None, note: Some(e.to_string()) },
    }
    let note = (content.size > MAX_SHOWN_BYTES)
        .then(|| format!("The first {} KiB of {} are shown.", MAX_SHOWN_BYTES >> 10, kib(content.size)));
    // A character that is cut in two at the end is left out.
    if let Err(e) = std::str::from_utf8(&bytes)
        && e.error_len().is_none()
    {
        bytes.truncate(e.valid_up_to());
    }
    ShownText { text: Some(String::from_utf8_lossy(&bytes).into_owned()), note }
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

/// JSON laid out to be read; anything else as it is.
pub(super) fn pretty(text: String) -> String {
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(value) => format!("{value:#}"),
        Err(_) => text,
    }
}

/// Markdown without its markup, for a line of a list. Text between backticks is unchanged.
pub(super) fn plain(markdown: &str) -> String {
    let lines = markdown.lines().map(str::trim).filter(|line| !line.starts_with("```"));
    let bare = lines.map(|line| {
        let unquoted = line.trim_start_matches("> ");
        let heading = unquoted.trim_start_matches('#');
        let text = if heading.starts_with(' ') { heading.trim_start() } else { unquoted };
        ["- ", "* ", "+ "].iter().find_map(|sign| text.strip_prefix(sign)).unwrap_or(text)
    });
    let text = bare.collect::<Vec<_>>().join("\n");
    let parts = text.split('`').enumerate();
    parts
        .map(|(at, part)| if at % 2 == 0 { without_links(part).replace("**", "") } else { part.into() })
        .collect()
}

/// Replaces links by their texts.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(words, more)| Some((words, more.split_once(')')?.1)));
        match link.filter(|(words, _)| !words.contains(['[', ']'])) {
            Some((words, more)) => {
                out.push_str(before);
                out.push_str(words);
                rest = more;
            }
            None => {
                out.push_str(before);
                out.push('[');
                rest = after;
            }
        }
    }
    out + rest
}

/// One line of at most `limit` characters, without control characters.
pub(super) fn line(text: &str, limit: usize) -> String {
    let mut words = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() > limit * 4 {
            break;
        }
    }
    if words.chars().count() <= limit {
        return words;
    }
    words.chars().take(limit - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use event_log::MemoryLog;
    use shared_types::UserId;

    use super::*;

    fn shown(bytes: &[u8]) -> ShownText {
        let log = MemoryLog::new(UserId::parse("ada").unwrap());
        let staged = log.stage(&mut &*bytes).unwrap();
        let content = staged.content();
        log.store(staged.into_inline().into_iter().collect()).unwrap();
        show(&log, &content)
    }

    #[test]
    fn a_label_has_the_words_of_markdown_and_not_its_signs() {
        let label = |text| line(&plain(text), 200);
        assert_eq!(
            label("## Plan\n\n- **First**, read [the notes](a/b.md)\n> done"),
            "Plan First, read the notes done"
        );
        assert_eq!(label("run `ls **/*.rs` at [1] and #4"), "run ls **/*.rs at [1] and #4");
        assert_eq!(label("```rust\nlet a = 1;\n```"), "let a = 1;");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_said_to_be() {
        assert_eq!(shown(b"short"), ShownText { text: Some("short".into()), note: None });
        let long = format!("{}é", "a".repeat((256 << 10) - 1));
        let cut = shown(long.as_bytes());
        assert_eq!(cut.text.map(|text| text.len()), Some((256 << 10) - 1));
        assert!(cut.note.unwrap().contains("257 KiB"));
    }

    #[test]
    fn bytes_that_are_gone_are_said_to_be() {
        let log = MemoryLog::new(UserId::parse("ada").unwrap());
        let gone = show(&log, &ContentRef::of(b"x"));
        assert!(gone.text.is_none() && gone.note.is_some(), "{gone:?}");
    }

    #[test]
    fn arguments_are_laid_out_and_words_left_alone() {
        assert_eq!(pretty(r#"{"path":"a"}"#.into()), "{\n  \"path\": \"a\"\n}");
        assert_eq!(pretty("not json".into()), "not json");
    }
}
