//! Rule: fewer sentences without a subject. Each crate has a budget of vague pronouns, and budgets only shrink.
//!
//! `word-budget.txt` in this crate holds the budgets, one crate a line. `--fix` lowers a budget to what is used and never
//! raises one; a crate without a line has none.

use std::{collections::BTreeMap, fmt::Write, fs};

use anyhow::{Context, Result};

use super::{finding::Finding, sources};
use crate::workspace::{TextFile, Workspace};

const PATH: &str = "crates/xtask/word-budget.txt";
/// In two parts, so that this list does not count itself.
const WORDS: [(&str, &str); 4] = [("who", "ever"), ("what", "ever"), ("some", "body"), ("no", "body")];

type Counts = BTreeMap<String, usize>;

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let budgets =
        files.iter().find(|file| file.path == PATH).map(|file| read(&file.text)).unwrap_or_default();
    let mut findings = Vec::new();
    for (name, count) in counts(files) {
        let budget = budgets.get(&name).copied().unwrap_or_default();
        if count > budget {
            let message = format!(
                "{count} vague words ({}) in the sources, the budget is {budget}; name who or what is meant",
                WORDS.map(|(start, end)| format!("{start}{end}")).join(", ")
            );
            findings.push(Finding::error(&format!("crates/{name}/Cargo.toml"), 1, message));
        }
    }
    findings
}

/// Lowers every budget to what is used now.
pub(super) fn lower(workspace: &Workspace) -> Result<()> {
    let files = sources::committable(&workspace.root)?;
    let path = workspace.root.join(PATH);
    let budgets = read(&fs::read_to_string(&path).with_context(|| format!("cannot read {PATH}"))?);
    fs::write(path, lowered(&budgets, &counts(&files))).with_context(|| format!("cannot write {PATH}"))
}

fn lowered(budgets: &Counts, used: &Counts) -> String {
    let mut text = String::new();
    for (name, budget) in budgets {
        let left = used.get(name).copied().unwrap_or_default().min(*budget);
        if left > 0 {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name} {left}");
        }
    }
    text
}

fn read(text: &str) -> Counts {
    let line = |line: &str| {
        let (name, budget) = line.split_once(' ')?;
        Some((name.to_owned(), budget.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn counts(files: &[TextFile]) -> Counts {
    let mut counts = Counts::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        if let Some((name, _)) = file.path.strip_prefix("crates/").and_then(|path| path.split_once('/')) {
            *counts.entry(name.to_owned()).or_default() += vague_words(&file.text);
        }
    }
    counts
}

fn vague_words(text: &str) -> usize {
    let is_vague = |word: &str| {
        let word = word.to_ascii_lowercase();
        WORDS.iter().any(|(start, end)| word.strip_prefix(start).is_some_and(|rest| rest == *end))
    };
    text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| is_vague(word)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vague word, put together here so that this file does not count it.
    fn vague() -> String {
        format!("Some{}", "body")
    }

    fn files(budget: &str, uses: usize) -> Vec<TextFile> {
        let text = format!("// {} knows.\n", vague()).repeat(uses);
        vec![
            TextFile { path: PATH.into(), text: budget.into() },
            TextFile { path: "crates/a/tests/b.rs".into(), text },
        ]
    }

    #[test]
    fn more_than_the_budget_fails_and_no_budget_is_zero() {
        assert_eq!(check(&files("a 2\n", 2)), []);
        assert!(check(&files("a 2\n", 3))[0].to_string().starts_with("crates/a/Cargo.toml:1: 3 vague words"));
        assert!(check(&files("", 1))[0].to_string().contains("the budget is 0"));
    }

    #[test]
    fn only_whole_words_count() {
        assert_eq!(vague_words(&format!("{0}s {0}_else {0}.", vague())), 2);
    }

    #[test]
    fn fix_lowers_a_budget_and_never_raises_one() {
        let count = |n: usize| Counts::from([("a".to_owned(), n)]);
        assert_eq!(lowered(&count(5), &count(3)), "a 3\n");
        assert_eq!(lowered(&count(5), &count(9)), "a 5\n");
        assert_eq!(lowered(&count(5), &count(0)), "");
    }
}
