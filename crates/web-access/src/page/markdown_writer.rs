//! Writes Markdown in one pass, up to a limit.

use html5ever::Attribute;

/// Limit of the output; larger than what an agent is shown.
pub(super) const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// Longer addresses are dropped.
const MAX_URL_BYTES: usize = 2_000;
/// Deeper lists and quotes are not indented further.
const MAX_NESTING: usize = 8;
/// Line ends around an element on its own line, and around a block.
const LINE: usize = 1;
const BLOCK: usize = 2;

#[derive(Default)]
pub(super) struct MarkdownWriter {
    text: String,
    /// Written before the next word: line ends or a blank, then marks.
    line_ends: usize,
    blank: bool,
    marks: String,
    /// The prefix of every line, for each open list entry and quote.
    prefixes: Vec<&'static str>,
    /// How many prefixes are in effect; the pending marks introduce the others.
    prefixes_in_effect: usize,
    /// Open lists, with the number of the last entry if they are numbered.
    lists: Vec<Option<usize>>,
    /// Number of open elements whose text is written unchanged.
    verbatim: usize,
}

/// An element whose end is still to come.
pub(super) struct OpenElement {
    kind: ElementKind,
    /// The length of the text and of the pending marks before it.
    text: usize,
    marks: usize,
}

/// How an element is written in Markdown.
enum ElementKind {
    /// Only its text.
    Plain,
    /// A block with this many line ends around it.
    Block(usize),
    Row,
    List,
    /// A list entry or a quote, whose lines have a prefix.
    Nested(usize),
    Verbatim,
    /// Text between two equal marks.
    Marked(&'static str),
    Link(String),
}

impl MarkdownWriter {
    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= MAX_OUTPUT_BYTES
    }

    pub(super) fn finish(mut self) -> String {
        self.text.truncate(self.text.floor_char_boundary(MAX_OUTPUT_BYTES));
        self.text
    }

    /// Begins an element. `None` if its content is not text for readers.
    pub(super) fn open(&mut self, name: &str, attributes: &[Attribute]) -> Option<OpenElement> {
        let (text, marks) = (self.text.len(), self.marks.len());
        let kind = match name {
            "script" | "style" | "noscript" | "template" | "svg" => return None,
            "h1" => self.block(BLOCK, "# "),
            "h2" => self.block(BLOCK, "## "),
            "h3" => self.block(BLOCK, "### "),
            "h4" => self.block(BLOCK, "#### "),
            "h5" => self.block(BLOCK, "##### "),
            "h6" => self.block(BLOCK, "###### "),
            "address" | "article" | "aside" | "center" | "details" | "dialog" | "div" | "dl" | "fieldset"
            | "figcaption" | "figure" | "footer" | "form" | "header" | "legend" | "main" | "nav" | "p"
            | "section" | "summary" | "table" | "title" => self.block(BLOCK, ""),
            "br" | "caption" | "dd" | "dt" | "option" => self.block(LINE, ""),
            "hr" => {
                self.require_line_ends(BLOCK);
                self.write_word("---");
                ElementKind::Block(BLOCK)
            }
            "tr" => {
                self.require_line_ends(LINE);
                ElementKind::Row
            }
            "td" | "th" => {
                self.blank = true;
                self.marks.push_str("| ");
                ElementKind::Plain
            }
            "ul" | "ol" | "menu" => self.list(name == "ol"),
            "li" => self.entry(),
            "blockquote" => self.nested(BLOCK, "> ", "> "),
            "pre" => self.verbatim(),
            "b" | "strong" => self.marked("**"),
            "i" | "em" => self.marked("*"),
            "code" | "kbd" | "samp" => self.marked("`"),
            "a" => self.link(value(attributes, "href")),
            "img" => {
                self.picture(value(attributes, "alt"), value(attributes, "src"));
                ElementKind::Plain
            }
            _ => ElementKind::Plain,
        };
        Some(OpenElement { kind, text, marks })
    }

    pub(super) fn close(&mut self, OpenElement { kind, text, marks }: OpenElement) {
        let is_empty = self.text.len() == text;
        match kind {
            // Keep the marks of cells until the end of the row, so that empty cells are written.
            ElementKind::Plain => return,
            ElementKind::Block(line_ends) => self.require_line_ends(line_ends),
            ElementKind::Row => {
                if !is_empty {
                    let rest = std::mem::take(&mut self.marks);
                    self.push(&format!(" {rest}|"));
                }
                self.require_line_ends(LINE);
            }
            ElementKind::List => {
                self.lists.pop();
                self.require_line_ends(if self.lists.is_empty() { BLOCK } else { LINE });
            }
            ElementKind::Nested(line_ends) => {
                self.prefixes.pop();
                self.prefixes_in_effect = self.prefixes_in_effect.min(self.prefixes.len());
                self.require_line_ends(line_ends);
            }
            ElementKind::Verbatim => {
                self.verbatim -= 1;
                self.require_line_ends(LINE);
                self.write_word("```");
                self.require_line_ends(BLOCK);
            }
            ElementKind::Marked(mark) if !is_empty => self.push(mark),
            ElementKind::Link(to) if !is_empty => self.push(&format!("]({to})")),
            ElementKind::Marked(_) | ElementKind::Link(_) => {}
        }
        // Drop marks that no text followed.
        self.marks.truncate(marks);
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.verbatim > 0 {
            for (index, line) in text.split('\n').enumerate() {
                self.line_ends += usize::from(index > 0);
                if !line.is_empty() {
                    self.write_word(line);
                }
            }
            return;
        }
        self.blank |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.write_word(word);
            self.blank = true;
        }
        self.blank &= text.ends_with(char::is_whitespace);
    }

    fn block(&mut self, line_ends: usize, mark: &str) -> ElementKind {
        self.require_line_ends(line_ends);
        self.marks.push_str(mark);
        ElementKind::Block(line_ends)
    }

    fn list(&mut self, is_numbered: bool) -> ElementKind {
        self.require_line_ends(if self.lists.is_empty() { BLOCK } else { LINE });
        self.lists.push(is_numbered.then_some(0));
        ElementKind::List
    }

    fn entry(&mut self) -> ElementKind {
        match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                let mark = format!("{number}. ");
                self.nested(LINE, &mark, "   ")
            }
            Some(None) | None => self.nested(LINE, "- ", "  "),
        }
    }

    fn nested(&mut self, line_ends: usize, mark: &str, each: &'static str) -> ElementKind {
        self.require_line_ends(line_ends);
        self.marks.push_str(mark);
        self.prefixes.push(each);
        ElementKind::Nested(line_ends)
    }

    fn verbatim(&mut self) -> ElementKind {
        self.require_line_ends(BLOCK);
        self.write_word("```");
        self.require_line_ends(LINE);
        self.verbatim += 1;
        ElementKind::Verbatim
    }

    fn marked(&mut self, mark: &'static str) -> ElementKind {
        if self.verbatim > 0 {
            return ElementKind::Plain;
        }
        self.marks.push_str(mark);
        ElementKind::Marked(mark)
    }

    fn link(&mut self, to: &str) -> ElementKind {
        if self.verbatim > 0 || !is_writable_url(to) {
            return ElementKind::Plain;
        }
        self.marks.push('[');
        ElementKind::Link(to.to_owned())
    }

    fn picture(&mut self, alt: &str, src: &str) {
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        match (alt.is_empty(), is_writable_url(src)) {
            (true, _) => {}
            (false, true) => self.write_word(&format!("![{alt}]({src})")),
            (false, false) => self.write_word(&alt),
        }
    }

    /// Requires at least this many line ends before the next word.
    fn require_line_ends(&mut self, line_ends: usize) {
        self.line_ends = self.line_ends.max(line_ends);
    }

    fn write_word(&mut self, word: &str) {
        if !self.text.is_empty() && self.line_ends > 0 {
            let begin = self.prefixes[..self.prefixes_in_effect.min(MAX_NESTING)].concat();
            for _ in 1..self.line_ends {
                self.push("\n");
                self.push(begin.trim_end());
            }
            self.push("\n");
            self.push(&begin);
        } else if !self.text.is_empty() && self.blank {
            self.push(" ");
        }
        (self.line_ends, self.blank, self.prefixes_in_effect) = (0, false, self.prefixes.len());
        let marks = std::mem::take(&mut self.marks);
        self.push(&marks);
        self.push(word);
    }

    fn push(&mut self, piece: &str) {
        if !self.is_full() {
            self.text.push_str(piece);
        }
    }
}

fn value<'a>(attributes: &'a [Attribute], name: &str) -> &'a str {
    attributes.iter().find(|one| &*one.name.local == name).map_or("", |one| &*one.value)
}

/// Whether an address can be written; `data:` addresses are dropped.
fn is_writable_url(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_URL_BYTES
        && !text.contains(char::is_whitespace)
        && !text.starts_with("data:")
}
