//! A page of HTML as Markdown, whatever it was made to be.
//!
//! A few bytes of a page can stand for elements without end, and a few elements for text without end. So it is taken apart
//! piece by piece, within a number of parts and a time, and is written down without a call inside a call, until there are
//! more words than anybody is shown.

mod tree;
mod writing;

use std::rc::Rc;
use std::time::{Duration, Instant};

use markup5ever_rcdom::{Handle, NodeData};
use tokio::sync::OwnedSemaphorePermit;

use writing::{Closing, Writing};

/// How long a page may take to be taken apart.
const PATIENCE: Duration = Duration::from_secs(10);

/// The words of a page, without what only a browser needs. The place is taken until that is done, whoever waits for it.
pub(super) async fn markdown(html: String, place: OwnedSemaphorePermit) -> Result<String, String> {
    let reading = tokio::task::spawn_blocking(move || {
        let _place = place;
        in_markdown(&html)
    });
    reading.await.unwrap_or_else(|_| Err("the page cannot be read".into()))
}

/// What is left to do.
enum Step {
    Open(Handle),
    Close(Closing),
}

fn in_markdown(html: &str) -> Result<String, String> {
    let tree = tree::tree(html, Instant::now() + PATIENCE)?;
    let mut page = Writing::default();
    // The root takes everything with it when it goes, so it stays to the end.
    let mut left = vec![Step::Open(Rc::clone(&tree))];
    while let Some(step) = left.pop()
        && !page.is_full()
    {
        let node = match step {
            Step::Close(closing) => {
                page.close(closing);
                continue;
            }
            Step::Open(node) => node,
        };
        match &node.data {
            NodeData::Text { contents } => page.text(&contents.borrow()),
            NodeData::Element { name, attrs, .. } => {
                let Some(closing) = page.open(&name.local, &attrs.borrow()) else { continue };
                left.push(Step::Close(closing));
            }
            NodeData::Document
            | NodeData::Doctype { .. }
            | NodeData::Comment { .. }
            | NodeData::ProcessingInstruction { .. } => {}
        }
        left.extend(node.children.borrow().iter().rev().cloned().map(Step::Open));
    }
    Ok(page.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_says_is_kept_and_what_a_browser_needs_is_not() {
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
            assert_eq!(in_markdown(html).unwrap(), markdown, "{html}");
        }
    }

    #[test]
    fn no_page_is_too_deep() {
        for open in ["<span a=\"</x>\">", "<blockquote>", "<ul><li>", "<pre>", "<b>"] {
            let deep = format!("{}x", open.repeat(5_000));
            assert!(in_markdown(&deep).unwrap().contains('x'), "{open}");
        }
    }

    #[test]
    fn a_page_that_stands_for_more_than_it_holds_is_refused() {
        let many = |each: &dyn Fn(usize) -> String| (0..2_000).map(each).collect::<String>();
        // Each paragraph begins with all that was begun and not ended before it.
        let again = format!("<p>{}{}", many(&|n| format!("<b a={n}>")), "<p>x".repeat(2_000));
        let attributes = format!("<p><b {}>{}", many(&|n| format!("a{n} ")), "<p>x".repeat(2_000));
        for page in ["<b>".repeat(300_000), "<!>".repeat(300_000), again, attributes] {
            assert_eq!(in_markdown(&page).unwrap_err(), tree::TOO_MANY);
        }
    }

    #[test]
    fn a_page_that_takes_too_long_is_refused() {
        let until = Instant::now() + Duration::from_millis(200);
        let refused = tree::tree(&"<div>".repeat(100_000), until).map(|_| ()).unwrap_err();
        assert_eq!(refused, tree::TOO_SLOW);
    }

    #[test]
    fn no_more_is_written_than_anybody_is_shown() {
        let long = "x".repeat(1 << 20);
        let pages = [
            format!("<p>{long}"),
            format!("<table><tr><th>{long}{}", "<tr><td>y".repeat(50_000)),
            format!("{}<pre>{}", "<blockquote>".repeat(300), "x\n".repeat(1 << 20)),
            format!("<p><a href='{long}'>{}", "<p>x".repeat(50_000)),
        ];
        for page in pages {
            assert!(in_markdown(&page).unwrap().len() <= writing::MOST);
        }
    }
}
