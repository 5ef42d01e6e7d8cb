//! Markdown as it is written, from the beginning to the end. Nothing that was written is looked at again, and nothing is
//! written that nobody would be shown.

use html5ever::Attribute;

/// Bytes that are written of a page: more than an agent is shown.
pub(super) const MOST: usize = 256 << 10;
/// Bytes of an address that is written down.
const ADDRESS: usize = 2_000;
/// Lists and quotes inside each other that are told apart.
const LEVELS: usize = 8;
/// Line ends before and after what has a line of its own, and before and after what stands apart.
const LINE: usize = 1;
const BLOCK: usize = 2;

#[derive(Default)]
pub(super) struct Writing {
    text: String,
    /// What comes before the next word: line ends or a blank, then marks.
    line_ends: usize,
    blank: bool,
    marks: String,
    /// What every line begins with, in lists and quotes.
    levels: Vec<&'static str>,
    /// How many of them were written; marks that wait stand for the others.
    settled: usize,
    /// Lists that are open, with the number of the last entry where they are counted.
    lists: Vec<Option<usize>>,
    /// Elements that are open whose text is taken as it is.
    verbatim: usize,
}

/// What is to be done at the end of an element.
pub(super) struct Closing {
    kind: Kind,
    /// How much was written, and how many marks waited, before it began.
    text: usize,
    marks: usize,
}

/// What an element is in Markdown.
enum Kind {
    /// Nothing of its own.
    Plain,
    /// Words with so many line ends around them.
    Apart(usize),
    Row,
    List,
    /// An entry of a list, or a quote.
    Level(usize),
    Verbatim,
    /// It has the same mark at its beginning and at its end.
    Marked(&'static str),
    Link(String),
}

impl Writing {
    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= MOST
    }

    pub(super) fn words(mut self) -> String {
        self.text.truncate(self.text.floor_char_boundary(MOST));
        self.text
    }

    /// Begins an element; nothing, if what is in it is not for reading.
    pub(super) fn open(&mut self, name: &str, attributes: &[Attribute]) -> Option<Closing> {
        let (text, marks) = (self.text.len(), self.marks.len());
        let kind = match name {
            "script" | "style" | "noscript" | "template" | "svg" => return None,
            "h1" => self.apart(BLOCK, "# "),
            "h2" => self.apart(BLOCK, "## "),
            "h3" => self.apart(BLOCK, "### "),
            "h4" => self.apart(BLOCK, "#### "),
            "h5" => self.apart(BLOCK, "##### "),
            "h6" => self.apart(BLOCK, "###### "),
            "address" | "article" | "aside" | "center" | "details" | "dialog" | "div" | "dl" | "fieldset"
            | "figcaption" | "figure" | "footer" | "form" | "header" | "legend" | "main" | "nav" | "p"
            | "section" | "summary" | "table" | "title" => self.apart(BLOCK, ""),
            "br" | "caption" | "dd" | "dt" | "option" => self.apart(LINE, ""),
            "hr" => {
                self.leave(BLOCK);
                self.word("---");
                Kind::Apart(BLOCK)
            }
            "tr" => {
                self.leave(LINE);
                Kind::Row
            }
            "td" | "th" => {
                self.blank = true;
                self.marks.push_str("| ");
                Kind::Plain
            }
            "ul" | "ol" | "menu" => self.list(name == "ol"),
            "li" => self.entry(),
            "blockquote" => self.level(BLOCK, "> ", "> "),
            "pre" => self.verbatim(),
            "b" | "strong" => self.marked("**"),
            "i" | "em" => self.marked("*"),
            "code" | "kbd" | "samp" => self.marked("`"),
            "a" => self.link(value(attributes, "href")),
            "img" => {
                self.picture(value(attributes, "alt"), value(attributes, "src"));
                Kind::Plain
            }
            _ => Kind::Plain,
        };
        Some(Closing { kind, text, marks })
    }

    pub(super) fn close(&mut self, Closing { kind, text, marks }: Closing) {
        let is_empty = self.text.len() == text;
        match kind {
            // The cells of a row wait for its end, so that empty ones are seen.
            Kind::Plain => return,
            Kind::Apart(line_ends) => self.leave(line_ends),
            Kind::Row => {
                if !is_empty {
                    let rest = std::mem::take(&mut self.marks);
                    self.put(&format!(" {rest}|"));
                }
                self.leave(LINE);
            }
            Kind::List => {
                self.lists.pop();
                self.leave(if self.lists.is_empty() { BLOCK } else { LINE });
            }
            Kind::Level(line_ends) => {
                self.levels.pop();
                self.settled = self.settled.min(self.levels.len());
                self.leave(line_ends);
            }
            Kind::Verbatim => {
                self.verbatim -= 1;
                self.leave(LINE);
                self.word("```");
                self.leave(BLOCK);
            }
            Kind::Marked(mark) if !is_empty => self.put(mark),
            Kind::Link(to) if !is_empty => self.put(&format!("]({to})")),
            Kind::Marked(_) | Kind::Link(_) => {}
        }
        // What nothing was written after is not written either.
        self.marks.truncate(marks);
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.verbatim > 0 {
            for (index, line) in text.split('\n').enumerate() {
                self.line_ends += usize::from(index > 0);
                if !line.is_empty() {
                    self.word(line);
                }
            }
            return;
        }
        self.blank |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.word(word);
            self.blank = true;
        }
        self.blank &= text.ends_with(char::is_whitespace);
    }

    fn apart(&mut self, line_ends: usize, mark: &str) -> Kind {
        self.leave(line_ends);
        self.marks.push_str(mark);
        Kind::Apart(line_ends)
    }

    fn list(&mut self, is_counted: bool) -> Kind {
        self.leave(if self.lists.is_empty() { BLOCK } else { LINE });
        self.lists.push(is_counted.then_some(0));
        Kind::List
    }

    fn entry(&mut self) -> Kind {
        match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                let mark = format!("{number}. ");
                self.level(LINE, &mark, "   ")
            }
            Some(None) | None => self.level(LINE, "- ", "  "),
        }
    }

    fn level(&mut self, line_ends: usize, mark: &str, each: &'static str) -> Kind {
        self.leave(line_ends);
        self.marks.push_str(mark);
        self.levels.push(each);
        Kind::Level(line_ends)
    }

    fn verbatim(&mut self) -> Kind {
        self.leave(BLOCK);
        self.word("```");
        self.leave(LINE);
        self.verbatim += 1;
        Kind::Verbatim
    }

    fn marked(&mut self, mark: &'static str) -> Kind {
        if self.verbatim > 0 {
            return Kind::Plain;
        }
        self.marks.push_str(mark);
        Kind::Marked(mark)
    }

    fn link(&mut self, to: &str) -> Kind {
        if self.verbatim > 0 || !is_address(to) {
            return Kind::Plain;
        }
        self.marks.push('[');
        Kind::Link(to.to_owned())
    }

    fn picture(&mut self, of: &str, at: &str) {
        let of = of.split_whitespace().collect::<Vec<_>>().join(" ");
        match (of.is_empty(), is_address(at)) {
            (true, _) => {}
            (false, true) => self.word(&format!("![{of}]({at})")),
            (false, false) => self.word(&of),
        }
    }

    /// There are at least so many line ends before the next word.
    fn leave(&mut self, line_ends: usize) {
        self.line_ends = self.line_ends.max(line_ends);
    }

    fn word(&mut self, word: &str) {
        if !self.text.is_empty() && self.line_ends > 0 {
            let begin = self.levels[..self.settled.min(LEVELS)].concat();
            for _ in 1..self.line_ends {
                self.put("\n");
                self.put(begin.trim_end());
            }
            self.put("\n");
            self.put(&begin);
        } else if !self.text.is_empty() && self.blank {
            self.put(" ");
        }
        (self.line_ends, self.blank, self.settled) = (0, false, self.levels.len());
        let marks = std::mem::take(&mut self.marks);
        self.put(&marks);
        self.put(word);
    }

    fn put(&mut self, piece: &str) {
        if !self.is_full() {
            self.text.push_str(piece);
        }
    }
}

fn value<'a>(attributes: &'a [Attribute], name: &str) -> &'a str {
    attributes.iter().find(|one| &*one.name.local == name).map_or("", |one| &*one.value)
}

/// Whether it can be written down; a picture that is its own address cannot.
fn is_address(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ADDRESS
        && !text.contains(char::is_whitespace)
        && !text.starts_with("data:")
}
