//! Converts untrusted HTML to Markdown.
//!
//! A small page can expand to a huge tree or text, so parsing is limited in nodes and time, and the output in bytes;
//! the tree is walked without recursion.

mod markdown_writer;
mod tree;

use std::rc::Rc;
use std::time::{Duration, Instant};

use markup5ever_rcdom::{Handle, NodeData};
use tokio::sync::OwnedSemaphorePermit;

use markdown_writer::{MarkdownWriter, OpenElement};

/// How long parsing a page may take.
const PARSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The text of a page, without scripts and styles. The permit is held until the conversion ends, even if the caller
/// is gone.
pub(super) async fn to_markdown(html: String, permit: OwnedSemaphorePermit) -> Result<String, String> {
    let conversion = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        convert(&html)
    });
    conversion.await.unwrap_or_else(|_| Err("the page cannot be read".into()))
}

/// A node to visit, or an element to close.
enum PendingNode {
    Open(Handle),
    Close(OpenElement),
}

fn convert(html: &str) -> Result<String, String> {
    let tree = tree::parse_html(html, Instant::now() + PARSE_TIMEOUT)?;
    let mut page = MarkdownWriter::default();
    // Dropping the root drops the whole tree, so it is kept to the end.
    let mut pending = vec![PendingNode::Open(Rc::clone(&tree))];
    while let Some(next) = pending.pop()
        && !page.is_full()
    {
        let node = match next {
            PendingNode::Close(element) => {
                page.close(element);
                continue;
            }
            PendingNode::Open(node) => node,
        };
        match &node.data {
            NodeData::Text { contents } => page.text(&contents.borrow()),
            NodeData::Element { name, attrs, .. } => {
                let Some(element) = page.open(&name.local, &attrs.borrow()) else { continue };
                pending.push(PendingNode::Close(element));
            }
            NodeData::Document
            | NodeData::Doctype { .. }
            | NodeData::Comment { .. }
            | NodeData::ProcessingInstruction { .. } => {}
        }
        pending.extend(node.children.borrow().iter().rev().cloned().map(PendingNode::Open));
    }
    Ok(page.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_and_scripts_and_styles_are_dropped() {
        let cases = [
            ("<p>a<br>b <b>c</b> <i> d </i>e</p><p>f</p>", "a\nb **c** *d* e\n\nf"),
            ("<head><title>T</title><style>x{}</style></head><h2>Two</h2>x", "T\n\n## Two\n\nx"),
            ("<script>x()</script><svg><text>x</text></svg>a<template>x</template>", "a"),
            ("<ul><li>a<li>b<ol><li>c<li>d<p>e</ol><li></ul>f", "- a\n- b\n  1. c\n  2. d\n\n     e\n\nf"),
            ("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
            ("<pre>a\n  <b>b</b>\n</pre>c <code>d</code>", "```\na\n  b\n```\n\nc `d`"),
            ("<a href='/x'><b>a</b></a> <a href='/y'></a><a>b</a>", "[**a**](/x) b"),
            ("<img src=/i alt='a b'><img src='data:x' alt=c><img src=/j>", "![a b](/i)c"),
            (
                "<table><tr><th>a<th>b<tr><td>c<td><tr><td><td>e<tr></table>f",
                "| a | b |\n| c | |\n| | e |\n\nf",
            ),
            ("<hr>a &lt;b&gt;<!-- c -->", "---\n\na <b>"),
            ("", ""),
        ];
        for (html, markdown) in cases {
            assert_eq!(convert(html).unwrap(), markdown, "{html}");
        }
    }

    #[test]
    fn deep_nesting_is_converted() {
        for open in ["<span a=\"</x>\">", "<blockquote>", "<ul><li>", "<pre>", "<b>"] {
            let deep = format!("{}x", open.repeat(5_000));
            assert!(convert(&deep).unwrap().contains('x'), "{open}");
        }
    }

    #[test]
    fn a_page_that_expands_too_much_is_refused() {
        let many = |each: &dyn Fn(usize) -> String| (0..2_000).map(each).collect::<String>();
        // Each paragraph repeats all formatting elements that are still open.
        let again = format!("<p>{}{}", many(&|n| format!("<b a={n}>")), "<p>x".repeat(2_000));
        let attributes = format!("<p><b {}>{}", many(&|n| format!("a{n} ")), "<p>x".repeat(2_000));
        for page in ["<b>".repeat(300_000), "<!>".repeat(300_000), again, attributes] {
            assert_eq!(convert(&page).unwrap_err(), tree::TOO_MANY);
        }
    }

    #[test]
    fn a_page_that_takes_too_long_is_refused() {
        let until = Instant::now() + Duration::from_millis(200);
        let refused = tree::parse_html(&"<div>".repeat(100_000), until).map(|_| ()).unwrap_err();
        assert_eq!(refused, tree::TOO_SLOW);
    }

    #[test]
    fn the_output_is_limited() {
        let long = "x".repeat(1 << 20);
        let pages = [
            format!("<p>{long}"),
            format!("<table><tr><th>{long}{}", "<tr><td>y".repeat(50_000)),
            format!("{}<pre>{}", "<blockquote>".repeat(300), "x\n".repeat(1 << 20)),
            format!("<p><a href='{long}'>{}", "<p>x".repeat(50_000)),
        ];
        for page in pages {
            assert!(convert(&page).unwrap().len() <= markdown_writer::MAX_OUTPUT_BYTES);
        }
    }
}
