//! How well names fit what was typed in the prompt bar, and what comes first.

use std::cmp::Reverse;

/// How well a name fits; the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It is the name, with or without the ending of a file.
    Exact,
    /// The name begins with it.
    Prefix,
    /// The words of the name begin with its words.
    Words,
    /// The name contains it.
    Inside,
    /// The name begins with nearly it.
    Typo,
    /// The name and the description together contain all its words.
    Description,
}

impl Fit {
    /// Whether the person most likely means this and nothing else.
    pub(super) fn is_sure(self) -> bool {
        self <= Self::Prefix
    }
}

/// Texts of fewer letters have too many neighbours for a typo to be guessed.
const SHORTEST_TYPO: usize = 4;
/// From this length on two letters may be wrong.
const TWO_TYPOS: usize = 8;

/// How well a name fits what was typed; nothing if it does not. `about` describes the named thing in more words.
pub(super) fn fit(typed: &str, name: &str, about: &str) -> Option<Fit> {
    let (typed, name) = (typed.trim().to_lowercase(), name.to_lowercase());
    if typed.is_empty() {
        return None;
    }
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let is_inside = |text: &str| typed.split_whitespace().all(|word| text.contains(word));
    Some(if typed == name || typed == stem {
        Fit::Exact
    } else if name.starts_with(&typed) {
        Fit::Prefix
    } else if words_begin_with(&name, &typed) {
        Fit::Words
    } else if name.contains(&typed) {
        Fit::Inside
    } else if is_nearly(&name, &typed) {
        Fit::Typo
    } else if is_inside(&format!("{name} {}", about.to_lowercase())) {
        Fit::Description
    } else {
        return None;
    })
}

fn words_begin_with(name: &str, typed: &str) -> bool {
    // Letters beyond ASCII count as such: a table of all letters would be a part of the bundle.
    let is_between = |letter: char| letter.is_ascii() && !letter.is_ascii_alphanumeric();
    let mut words = name.split(is_between).filter(|word| !word.is_empty());
    typed.split_whitespace().all(|wanted| words.any(|word| word.starts_with(wanted)))
}

/// Whether the beginning of a name is the typed text but for a letter or two.
fn is_nearly(name: &str, typed: &str) -> bool {
    let (name, typed): (Vec<char>, Vec<char>) = (name.chars().collect(), typed.chars().collect());
    if typed.len() < SHORTEST_TYPO {
        return false;
    }
    let most = if typed.len() < TWO_TYPOS { 1 } else { 2 };
    // The first letter is nearly always right, and without that rule everything resembles everything.
    name.first() == typed.first() && distance_to_a_beginning(&typed, &name) <= most
}

/// The fewest letters to change, add, leave out or swap with their neighbour, until a text is a beginning of another.
fn distance_to_a_beginning(text: &[char], of: &[char]) -> usize {
    let longest = of.len().min(text.len() + 2);
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=longest).collect();
    for (i, letter) in text.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, other) in of.iter().take(longest).enumerate() {
            let changed = row[j] + usize::from(letter != other);
            let mut least = changed.min(row[j + 1] + 1).min(next[j] + 1);
            let is_swapped = i > 0 && j > 0 && letter == &of[j - 1] && &text[i - 1] == other;
            if let (true, Some(two_back)) = (is_swapped, before.get(j.wrapping_sub(1))) {
                least = least.min(two_back + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.into_iter().min().unwrap_or_default()
}

/// Something that can be chosen, and what decides its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate<T> {
    pub(super) fit: Fit,
    /// Larger for what was chosen more recently; zero for what was not.
    pub(super) recent: usize,
    pub(super) hit: T,
}

/// The best first: by how well they fit, then by how recently they were chosen, then in the order given.
pub(super) fn ranked<T>(candidates: Vec<Candidate<T>>) -> Vec<Candidate<T>> {
    let place = |candidate: &Candidate<T>| (candidate.fit, Reverse(candidate.recent));
    let mut ranked: Vec<Candidate<T>> = Vec::with_capacity(candidates.len());
    // There are a few dozen, and the sort of the standard library is larger than all of this module.
    for candidate in candidates {
        let at = ranked.iter().position(|other| place(other) > place(&candidate)).unwrap_or(ranked.len());
        ranked.insert(at, candidate);
    }
    ranked
}

/// Whether the text is most likely an objective for agents rather than a name.
///
/// A run costs money and time, so a single word is one only if it names nothing, and several words are one unless they
/// are, or begin, a name.
pub(super) fn is_objective(typed: &str, best: Option<Fit>) -> bool {
    match best {
        None => true,
        Some(fit) => typed.split_whitespace().nth(1).is_some() && !fit.is_sure(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_by_its_beginning_its_words_its_middle_or_nearly() {
        for (typed, name, expected) in [
            ("Welcome.md", "Welcome.md", Some(Fit::Exact)),
            ("welcome", "Welcome.md", Some(Fit::Exact)),
            ("wel", "Welcome.md", Some(Fit::Prefix)),
            ("all", "Close all windows", Some(Fit::Words)),
            ("cl win", "Close all windows", Some(Fit::Words)),
            ("indow", "Close all windows", Some(Fit::Inside)),
            ("welcme", "Welcome.md", Some(Fit::Typo)),
            ("wlecome", "Welcome.md", Some(Fit::Typo)),
            ("termnial", "Terminal", Some(Fit::Typo)),
            ("xelcome", "Welcome.md", None),
            ("undo", "Unit", None),
            ("", "Files", None),
        ] {
            assert_eq!(fit(typed, name, ""), expected, "{typed} for {name}");
        }
        assert_eq!(fit("shell", "Terminal", "a shell in a cell"), Some(Fit::Description));
    }

    #[test]
    fn a_paid_run_is_never_the_surprise() {
        for (typed, best, objective) in [
            ("undo", Some(Fit::Exact), false),
            ("dark", Some(Fit::Prefix), false),
            ("setings", Some(Fit::Typo), false),
            ("new file", Some(Fit::Exact), false),
            ("haiku", None, true),
            ("write a haiku", None, true),
            ("write a haiku about files", Some(Fit::Description), true),
        ] {
            assert_eq!(is_objective(typed, best), objective, "{typed}");
        }
    }

    #[test]
    fn the_best_comes_first_then_the_most_recent() {
        let candidate = |fit, recent, hit| Candidate { fit, recent, hit };
        let order = ranked(vec![
            candidate(Fit::Inside, 9, "inside"),
            candidate(Fit::Prefix, 0, "older"),
            candidate(Fit::Prefix, 2, "recent"),
            candidate(Fit::Exact, 0, "exact"),
        ]);
        let names: Vec<_> = order.into_iter().map(|candidate| candidate.hit).collect();
        assert_eq!(names, ["exact", "recent", "older", "inside"]);
    }
}
