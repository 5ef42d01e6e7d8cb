//! Which top-level module of a crate uses which, read from the paths in its sources.
//!
//! It knows the three ways to name another module: `crate::x`, enough `super`s to reach the root, and an item that the
//! root re-exports from a module. Names that the compiler alone can resolve (globs, macros) are not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Token, tokens};
use crate::workspace::TextFile;

/// One place where a module names another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ModuleUse {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) path: String,
    pub(super) line: usize,
}

/// All uses between the top-level modules of one crate, from its sources with their paths below `src/`.
pub(super) fn of_crate(sources: &[(&str, &TextFile)]) -> Vec<ModuleUse> {
    let modules: BTreeSet<&str> =
        sources.iter().filter_map(|(inside, _)| path_of(inside).first().copied()).collect();
    let roots = sources.iter().filter(|(inside, _)| path_of(inside).is_empty());
    let mut targets: BTreeMap<String, String> =
        roots.flat_map(|(_, file)| re_exports(&product_tokens(&file.text), &modules)).collect();
    // A module wins over a re-exported item of the same name.
    targets.extend(modules.iter().map(|module| ((*module).to_owned(), (*module).to_owned())));
    let mut uses = Vec::new();
    for (inside, file) in sources {
        let module = path_of(inside);
        let Some(from) = module.first() else { continue };
        for (line, name) in names_at_root(&product_tokens(&file.text), &module) {
            if let Some(to) = targets.get(name).filter(|to| to != from) {
                let (from, to) = ((*from).to_owned(), to.clone());
                uses.push(ModuleUse { from, to, path: file.path.clone(), line });
            }
        }
    }
    uses
}

/// The module that a file is: none of its parts for the root.
fn path_of(inside: &str) -> Vec<&str> {
    let parts: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    if matches!(parts.as_slice(), ["lib" | "main"]) { Vec::new() } else { parts }
}

type Tokens<'a> = [(usize, Token<'a>)];

/// The tokens of a file without the items under `#[cfg(test)]`.
fn product_tokens(text: &str) -> Vec<(usize, Token<'_>)> {
    let all = tokens(text);
    let mut kept = Vec::new();
    let mut at = 0;
    while at < all.len() {
        match test_attribute(&all[at..]) {
            Some(length) => at += length + item_length(&all[at + length..]),
            None => {
                kept.push(all[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// The length of `#[cfg(test)]`, `#[cfg(all(test, …))]` or `#[test]`, if one starts here.
fn test_attribute(rest: &Tokens<'_>) -> Option<usize> {
    let [(_, Token::Punct('#')), (_, Token::Punct('['))] = rest.get(..2)? else { return None };
    let end = rest.iter().position(|(_, token)| *token == Token::Punct(']'))?;
    let has = |name| rest[..end].iter().any(|(_, token)| *token == Token::Ident(name));
    let is_test = has("test") && !has("not") && (has("cfg") || end == 3);
    is_test.then_some(end + 1)
}

/// How many tokens an item has: up to its `;` or its closing brace.
fn item_length(rest: &Tokens<'_>) -> usize {
    let mut depth = 0;
    for (index, (_, token)) in rest.iter().enumerate() {
        match token {
            Token::Punct('{' | '(' | '[') => depth += 1,
            Token::Punct(')' | ']') => depth -= 1,
            Token::Punct('}') => {
                depth -= 1;
                // A braced list of a `use` is followed by its `;`.
                let ends = !matches!(rest.get(index + 1), Some((_, Token::Punct(';'))));
                if depth == 0 && ends {
                    return index + 1;
                }
            }
            Token::Punct(';') if depth == 0 => return index + 1,
            Token::Punct(_) | Token::Ident(_) => {}
        }
    }
    rest.len()
}

/// Every name that a file takes directly from the root of the crate, with its line.
fn names_at_root<'a>(tokens: &Tokens<'a>, module: &[&str]) -> Vec<(usize, &'a str)> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    // The brace depths at which inline modules began: each takes one more `super` to leave.
    let mut inline: Vec<usize> = Vec::new();
    for at in 0..tokens.len() {
        match tokens[at].1 {
            Token::Punct('{') => {
                depth += 1;
                if at >= 2 && tokens[at - 2].1 == Token::Ident("mod") {
                    inline.push(depth);
                }
            }
            Token::Punct('}') => {
                if inline.last() == Some(&depth) {
                    inline.pop();
                }
                depth = depth.saturating_sub(1);
            }
            Token::Ident("crate") => names.extend(first_names(&tokens[at + 1..])),
            // `self` and the `super`s after the first were read with their path.
            Token::Ident("super") if !follows_path(tokens, at) => {
                let (supers, rest) = supers(&tokens[at..]);
                if supers == module.len() + inline.len() {
                    names.extend(first_names(rest));
                }
            }
            Token::Ident(_) | Token::Punct(_) => {}
        }
    }
    names
}

fn follows_path(tokens: &Tokens<'_>, at: usize) -> bool {
    at > 0 && tokens[at - 1].1 == Token::Punct(':')
}

/// Counts `super::super` and gives what follows.
fn supers<'t, 'a>(tokens: &'t Tokens<'a>) -> (usize, &'t Tokens<'a>) {
    let (mut count, mut rest) = (1, &tokens[1..]);
    while let [(_, Token::Punct(':')), (_, Token::Punct(':')), (_, Token::Ident("super")), more @ ..] = rest {
        (count, rest) = (count + 1, more);
    }
    (count, rest)
}

/// The first names after `::`: one, or those of a braced list.
fn first_names<'a>(rest: &Tokens<'a>) -> Vec<(usize, &'a str)> {
    match rest {
        [(_, Token::Punct(':')), (_, Token::Punct(':')), (line, Token::Ident(name)), ..] => {
            vec![(*line, name)]
        }
        [(_, Token::Punct(':')), (_, Token::Punct(':')), (_, Token::Punct('{')), list @ ..] => heads(list),
        _ => Vec::new(),
    }
}

/// The first name of each entry of a braced list, up to its closing brace.
fn heads<'a>(list: &Tokens<'a>) -> Vec<(usize, &'a str)> {
    let mut names = Vec::new();
    let (mut depth, mut begins) = (0, true);
    for (line, token) in list {
        match token {
            Token::Punct('{') => depth += 1,
            Token::Punct('}') if depth == 0 => break,
            Token::Punct('}') => depth -= 1,
            Token::Punct(',') if depth == 0 => begins = true,
            Token::Ident(name) if begins => {
                names.push((*line, *name));
                begins = false;
            }
            Token::Ident(_) | Token::Punct(_) => {}
        }
    }
    names
}

/// Which names the root re-exports, with the module that each comes from: `pub use x::{A, b::C as D};`.
fn re_exports(tokens: &Tokens<'_>, modules: &BTreeSet<&str>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at].1 != Token::Ident("use") {
            continue;
        }
        let end = tokens[at..]
            .iter()
            .position(|(_, token)| *token == Token::Punct(';'))
            .map_or(tokens.len(), |n| at + n);
        let mut path = tokens[at + 1..end].iter().map(|(_, token)| token).peekable();
        while matches!(path.peek(), Some(Token::Ident("crate" | "self") | Token::Punct(':'))) {
            path.next();
        }
        let Some(Token::Ident(module)) = path.next() else { continue };
        if modules.contains(module) {
            found.extend(leaves(path).into_iter().map(|leaf| (leaf.to_owned(), (*module).to_owned())));
        }
    }
    found
}

/// The names that a `use` brings in: those before a comma, a closing brace or the end.
fn leaves<'t, 'a: 't>(path: impl Iterator<Item = &'t Token<'a>>) -> Vec<&'a str> {
    let mut leaves = Vec::new();
    let mut last = None;
    for token in path {
        match token {
            Token::Ident(name) => last = Some(*name),
            Token::Punct(',' | '}') => leaves.extend(last.take()),
            Token::Punct(_) => {}
        }
    }
    leaves.extend(last);
    leaves
}

#[cfg(test)]
mod tests;
