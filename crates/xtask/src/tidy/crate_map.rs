//! Rule: the table and the picture of the crates in ARCHITECTURE.md say what `layers` says.
//!
//! The table names exactly the crates of `layers`, each with the crates that it builds on. That column and the picture
//! below it are generated: `--fix` writes them. What a crate owns, and what it must not know, is for people to write.

use std::{fmt::Write, fs};

use anyhow::{Context, Result};

use super::{finding::Finding, layers::LAYERS};
use crate::workspace::{TextFile, Workspace};

const PATH: &str = "ARCHITECTURE.md";
const HEADER: &str = "| crate | owns | builds on | must not know |";
const BEGIN: &str = "<!-- crates: written by `cargo xtask tidy --fix` -->";
const END: &str = "<!-- end of crates -->";
/// What the column says for a crate that builds on no other.
const NONE: &str = "–";

type Layers<'a> = &'a [(&'a str, &'a [&'a str])];

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    if file.path == PATH { check_with(&file.text, LAYERS) } else { Vec::new() }
}

/// Writes the column and the picture; rows that are missing stay missing, since their words are not known.
pub(super) fn rewrite(workspace: &Workspace) -> Result<()> {
    let path = workspace.root.join(PATH);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {PATH}"))?;
    fs::write(&path, generated(&text, LAYERS)).with_context(|| format!("cannot write {PATH}"))
}

fn check_with(text: &str, layers: Layers<'_>) -> Vec<Finding> {
    let header = text.lines().position(|line| line == HEADER).map_or(1, |index| index + 1);
    let rows: Vec<(usize, &str)> = rows(text).collect();
    let mut findings = Vec::new();
    for (name, _) in layers {
        match rows.iter().filter(|(_, row)| row == name).count() {
            1 => {}
            0 => {
                let message = format!("the table `{HEADER}` has no row for `{name}`; add one");
                findings.push(Finding::error(PATH, header, message));
            }
            n => findings.push(Finding::error(PATH, header, format!("`{name}` has {n} rows; keep one"))),
        }
    }
    for (line, name) in rows.into_iter().filter(|(_, name)| !layers.iter().any(|(known, _)| known == name)) {
        let message = format!(
            "`{name}` is not in crates/xtask/src/tidy/layers.rs; remove the row or add the crate there"
        );
        findings.push(Finding::error(PATH, line, message));
    }
    for marker in [BEGIN, END] {
        if text.lines().filter(|line| *line == marker).count() != 1 {
            findings.push(Finding::error(
                PATH,
                1,
                format!("needs the line `{marker}` once, around the picture"),
            ));
        }
    }
    let wanted = generated(text, layers);
    if let Some(index) = text.lines().zip(wanted.lines()).position(|(is, should)| is != should) {
        let message = "differs from crates/xtask/src/tidy/layers.rs; run `cargo xtask tidy --fix` and commit the result";
        findings.push(Finding::error(PATH, index + 1, message));
    }
    findings
}

/// The crates that the table names, with their lines.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let after_header = text.lines().enumerate().skip_while(|(_, line)| *line != HEADER);
    let table = after_header.take_while(|(_, line)| line.starts_with('|'));
    table.filter_map(|(index, line)| Some((index + 1, name_of(line)?)))
}

fn name_of(row: &str) -> Option<&str> {
    row.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name)
}

/// The text as it should be: the column of each known crate and the picture regenerated.
fn generated(text: &str, layers: Layers<'_>) -> String {
    let rows: Vec<usize> = rows(text).map(|(line, _)| line).collect();
    let mut out = String::new();
    let mut in_picture = false;
    for (index, line) in text.lines().enumerate() {
        if line == END {
            in_picture = false;
        }
        if in_picture {
            continue;
        }
        match rows.contains(&(index + 1)).then(|| with_column(line, layers)).flatten() {
            Some(row) => out.push_str(&row),
            None => out.push_str(line),
        }
        out.push('\n');
        if line == BEGIN && text.lines().any(|line| line == END) {
            in_picture = true;
            out.push_str(&picture(layers));
        }
    }
    out
}

fn with_column(row: &str, layers: Layers<'_>) -> Option<String> {
    let cells: Vec<&str> = row.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [name, owns, _, absent] = cells.as_slice() else { return None };
    let (_, below) = layers.iter().find(|(known, _)| name.trim_matches('`') == *known)?;
    let quoted: Vec<String> = below.iter().map(|crate_name| format!("`{crate_name}`")).collect();
    let column = if quoted.is_empty() { NONE.to_owned() } else { quoted.join(", ") };
    Some(format!("| {name} | {owns} | {column} | {absent} |"))
}

/// A Mermaid diagram, which GitHub and most editors draw: an arrow from each crate to those that it builds on.
fn picture(layers: Layers<'_>) -> String {
    let mut out = String::from("```mermaid\nflowchart TD\n");
    for (name, below) in layers.iter().rev() {
        // Writing to a string does not fail.
        let _ = match below {
            [] => writeln!(out, "    {name}"),
            below => writeln!(out, "    {name} --> {}", below.join(" & ")),
        };
    }
    out + "```\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Layers<'_> = &[("base", &[]), ("top", &["base"])];

    fn document(rows: &str) -> String {
        format!("# Map\n\n{HEADER}\n|---|---|---|---|\n{rows}\n{BEGIN}\n{END}\n\nMore.\n")
    }

    fn found(text: &str) -> Vec<String> {
        check_with(text, TWO).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_fix_writes_is_what_the_check_wants() {
        let text = document("| `base` | data | x | disks |\n| `top` | routes |  | – |\n");
        assert!(found(&text)[0].contains("ARCHITECTURE.md:5: differs"), "{:?}", found(&text));
        let fixed = generated(&text, TWO);
        assert!(
            fixed.contains("| `base` | data | – | disks |\n| `top` | routes | `base` | – |\n"),
            "{fixed}"
        );
        assert!(fixed.contains("flowchart TD\n    top --> base\n    base\n"), "{fixed}");
        assert!(fixed.ends_with("\nMore.\n"), "{fixed}");
        assert_eq!(found(&fixed), [""; 0]);
        assert_eq!(generated(&fixed, TWO), fixed, "writing it again changes nothing");
    }

    #[test]
    fn a_missing_row_and_an_unknown_crate_are_found_by_name() {
        let text = generated(&document("| `base` | data | – | disks |\n| `gone` | x | – | – |\n"), TWO);
        let found = found(&text);
        assert!(found[0].contains("no row for `top`"), "{found:?}");
        assert!(found[1].starts_with("ARCHITECTURE.md:6: `gone` is not in"), "{found:?}");
    }

    #[test]
    fn without_its_markers_the_picture_is_missed() {
        let text = document("| `base` | data | – | disks |\n| `top` | x | `base` | – |\n").replace(END, "");
        assert!(found(&text)[0].contains("needs the line"), "{:?}", found(&text));
        assert!(generated(&text, TWO).ends_with("\nMore.\n"), "a fix keeps the rest");
    }
}
