//! Markdown for reading: headings, lists, quotes, code, emphasis, links. It makes elements, never HTML, so nothing in
//! a file can run or reach out; images and raw HTML stay text.

use dioxus::prelude::*;

/// A block of the text.
#[derive(Debug, Clone, PartialEq)]
enum Block {
    Heading(usize, String),
    Paragraph(String),
    Code(String),
    Quote(String),
    List { ordered: bool, items: Vec<String> },
    Rule,
}

fn list_item(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    for sign in ["- ", "* ", "+ "] {
        if let Some(rest) = line.strip_prefix(sign) {
            return Some((false, rest));
        }
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?.strip_prefix(". ")?;
    (digits > 0).then_some((true, rest))
}

fn blocks(text: &str) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::new();
    let mut lines = text.lines();
    let mut open = false;
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if let Some(fence) = ["```", "~~~"].into_iter().find(|f| trimmed.starts_with(f)) {
            let code: Vec<&str> = lines.by_ref().take_while(|l| !l.trim().starts_with(fence)).collect();
            out.push(Block::Code(code.join("\n")));
            open = false;
            continue;
        }
        let level = trimmed.bytes().take_while(|b| *b == b'#').count();
        if trimmed.is_empty() {
            open = false;
        } else if (1..=6).contains(&level) && trimmed.as_bytes().get(level) == Some(&b' ') {
            out.push(Block::Heading(level, trimmed[level..].trim().to_owned()));
            open = false;
        } else if matches!(trimmed, "---" | "***" | "___") {
            out.push(Block::Rule);
            open = false;
        } else if let Some(rest) = trimmed.strip_prefix('>') {
            match out.last_mut() {
                Some(Block::Quote(text)) if open => {
                    text.push(' ');
                    text.push_str(rest.trim());
                }
                Some(_) | None => out.push(Block::Quote(rest.trim().to_owned())),
            }
            open = true;
        } else if let Some((ordered, rest)) = list_item(line) {
            match out.last_mut() {
                Some(Block::List { ordered: same, items }) if *same == ordered => items.push(rest.to_owned()),
                Some(_) | None => out.push(Block::List { ordered, items: vec![rest.to_owned()] }),
            }
            open = true;
        } else {
            match out.last_mut() {
                Some(Block::Paragraph(text)) if open => {
                    text.push(' ');
                    text.push_str(trimmed);
                }
                Some(Block::List { items, .. }) if open => {
                    if let Some(item) = items.last_mut() {
                        item.push(' ');
                        item.push_str(trimmed);
                    }
                }
                Some(_) | None => out.push(Block::Paragraph(trimmed.to_owned())),
            }
            open = true;
        }
    }
    out
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq)]
enum Span {
    Plain(String),
    Strong(String),
    Emphasis(String),
    Code(String),
    Link { text: String, to: String },
}

fn enclosed<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let inner = text.strip_prefix(mark)?;
    let end = inner.find(mark).filter(|end| *end > 0)?;
    Some((&inner[..end], &inner[end + mark.len()..]))
}

fn link(text: &str) -> Option<(Span, &str)> {
    let inner = text.strip_prefix('[')?;
    let (label, rest) = inner.split_once("](")?;
    let (to, rest) = rest.split_once(')')?;
    (!label.contains('[')).then(|| (Span::Link { text: label.to_owned(), to: to.trim().to_owned() }, rest))
}

fn spans(text: &str) -> Vec<Span> {
    let mut out = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let found = match first {
            '`' => enclosed(rest, "`").map(|(t, r)| (Span::Code(t.to_owned()), r)),
            '*' | '_' => ["**", "__"]
                .into_iter()
                .find_map(|m| enclosed(rest, m))
                .map(|(t, r)| (Span::Strong(t.to_owned()), r))
                .or_else(|| enclosed(rest, "*").map(|(t, r)| (Span::Emphasis(t.to_owned()), r))),
            '[' => link(rest),
            _ => None,
        };
        match found {
            Some((span, after)) => {
                if !plain.is_empty() {
                    out.push(Span::Plain(std::mem::take(&mut plain)));
                }
                out.push(span);
                rest = after;
            }
            None => {
                plain.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    if !plain.is_empty() {
        out.push(Span::Plain(plain));
    }
    out
}

/// Only web addresses become links; other schemes could run code or mislead.
fn is_web(to: &str) -> bool {
    to.starts_with("https://") || to.starts_with("http://")
}

#[component]
fn Line(text: String) -> Element {
    rsx! {
        for (i, span) in spans(&text).into_iter().enumerate() {
            match span {
                Span::Plain(t) => rsx! { Fragment { key: "{i}", "{t}" } },
                Span::Strong(t) => rsx! { strong { key: "{i}", "{t}" } },
                Span::Emphasis(t) => rsx! { em { key: "{i}", "{t}" } },
                Span::Code(t) => rsx! { code { key: "{i}", "{t}" } },
                Span::Link { text, to } if is_web(&to) => rsx! {
                    a { key: "{i}", href: "{to}", target: "_blank", rel: "noopener noreferrer", "{text}" }
                },
                Span::Link { text, to } => rsx! { span { key: "{i}", title: "{to}", "{text}" } },
            }
        }
    }
}

#[component]
pub(crate) fn Markdown(text: String) -> Element {
    rsx! {
        for (i, block) in blocks(&text).into_iter().enumerate() {
            match block {
                Block::Heading(1, t) => rsx! { h1 { key: "{i}", Line { text: t } } },
                Block::Heading(2, t) => rsx! { h2 { key: "{i}", Line { text: t } } },
                Block::Heading(_, t) => rsx! { h3 { key: "{i}", Line { text: t } } },
                Block::Paragraph(t) => rsx! { p { key: "{i}", Line { text: t } } },
                Block::Code(t) => rsx! { pre { key: "{i}", code { "{t}" } } },
                Block::Quote(t) => rsx! { blockquote { key: "{i}", Line { text: t } } },
                Block::Rule => rsx! { hr { key: "{i}" } },
                Block::List { ordered: true, items } => rsx! { ol { key: "{i}", for item in items { li { Line { text: item } } } } },
                Block::List { ordered: false, items } => rsx! { ul { key: "{i}", for item in items { li { Line { text: item } } } } },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_blocks() {
        let found = blocks("# Title\n\nOne\ntwo\n\n- a\n- b\n\n```rs\nlet x;\n```\n> q");
        let expected = vec![
            Block::Heading(1, "Title".into()),
            Block::Paragraph("One two".into()),
            Block::List { ordered: false, items: vec!["a".into(), "b".into()] },
            Block::Code("let x;".into()),
            Block::Quote("q".into()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_becomes_spans_and_a_stray_mark_stays() {
        let link = Span::Link { text: "c".into(), to: "https://d".into() };
        let found = spans("a **b** [c](https://d) 2 * 3");
        let expected = vec![
            Span::Plain("a ".into()),
            Span::Strong("b".into()),
            Span::Plain(" ".into()),
            link,
            Span::Plain(" 2 * 3".into()),
        ];
        assert_eq!(found, expected);
        assert!(!is_web("javascript:alert(1)"));
    }
}
