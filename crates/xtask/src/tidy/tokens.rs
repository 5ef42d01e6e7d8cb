//! A small lexer for Rust: identifiers and punctuation with their lines, without comments and literals.
//!
//! Rules that look for paths in code read these tokens rather than the text, so that a path in a comment or a string
//! is not taken for a use.

/// One token that a rule can care about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Ident(&'a str),
    Punct(char),
}

/// The tokens of a file, each with its line, counted from 1.
pub(super) fn tokens(text: &str) -> Vec<(usize, Token<'_>)> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut found = Vec::new();
    while let Some(token) = lexer.next() {
        found.push(token);
    }
    found
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Option<(usize, Token<'a>)> {
        loop {
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            let line = self.line;
            let literal = literal_length(rest);
            if rest.starts_with("//") {
                self.skip(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                self.skip(block_comment_length(rest));
            } else if literal > 0 {
                self.skip(literal);
            } else if is_ident(first) {
                let length = ident_length(rest);
                self.skip(length);
                return Some((line, Token::Ident(&rest[..length])));
            } else {
                self.skip(first.len_utf8());
                if !first.is_whitespace() {
                    return Some((line, Token::Punct(first)));
                }
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.line += self.text[self.at..self.at + bytes].matches('\n').count();
        self.at += bytes;
    }
}

fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn ident_length(rest: &str) -> usize {
    rest.find(|c| !is_ident(c)).unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of the string or character literal that starts here, or 0 if none does.
fn literal_length(rest: &str) -> usize {
    let prefix = ["br", "cr", "b", "c", "r"].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix).unwrap_or_default();
        after.starts_with('"')
            || (prefix.ends_with('r') && after.trim_start_matches('#').starts_with('"'))
            || (*prefix == "b" && after.starts_with('\''))
    });
    let prefix = prefix.unwrap_or_default();
    let body = &rest[prefix.len()..];
    let length = if prefix.ends_with('r') {
        raw_string_length(body)
    } else if body.starts_with('"') {
        quoted_length(body, '"')
    } else if body.starts_with('\'') && is_character(body) {
        quoted_length(body, '\'')
    } else {
        return 0;
    };
    prefix.len() + length
}

/// Tells `'a'` and `'\n'` from the lifetime `'a`.
fn is_character(body: &str) -> bool {
    let mut chars = body.chars().skip(1);
    matches!((chars.next(), chars.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

fn quoted_length(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    body.len()
}

fn raw_string_length(body: &str) -> usize {
    let hashes = body.chars().take_while(|c| *c == '#').count();
    let end = format!("\"{}", "#".repeat(hashes));
    let content = hashes + 1;
    body.get(content..).and_then(|rest| rest.find(&end)).map_or(body.len(), |at| content + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idents(text: &str) -> Vec<(usize, &str)> {
        let ident = |(line, token)| match token {
            Token::Ident(name) => Some((line, name)),
            Token::Punct(_) => None,
        };
        tokens(text).into_iter().filter_map(ident).collect()
    }

    #[test]
    fn comments_and_literals_are_left_out_and_lines_are_kept() {
        let text =
            "use a; // b\n/* c /* d */\n e */ f(\"g \\\" h\", 'i', '\\'', b\"j\");\nlet k = r#\"l \" m\"#; n";
        assert_eq!(idents(text), [(1, "use"), (1, "a"), (3, "f"), (4, "let"), (4, "k"), (4, "n")]);
    }

    #[test]
    fn a_lifetime_is_not_a_character() {
        assert_eq!(idents("fn f<'a>(x: &'a str) {}").len(), 6);
    }

    #[test]
    fn a_string_over_several_lines_counts_its_lines() {
        assert_eq!(idents("\"one\n\ntwo\" x"), [(3, "x")]);
    }

    #[test]
    fn punctuation_is_kept() {
        let puncts =
            tokens("a::{b}").into_iter().filter(|(_, token)| matches!(token, Token::Punct(_))).count();
        assert_eq!(puncts, 4);
    }
}
