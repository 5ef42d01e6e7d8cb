//! Rule: a crate takes every dependency from the workspace's table, where it is declared once, with its reason.
//!
//! cargo's metadata does not distinguish an inherited version from a written one, so this reads the text of the manifest:
//! not all of TOML, but what cargo accepts in a dependency table.

use std::collections::BTreeMap;

use super::finding::Finding;
use crate::workspace::{DependencyKind, TextFile};

/// One dependency as the manifest writes it, all its lines together.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) line: usize,
    inherits: bool,
}

/// Where in a manifest an entry is; the same key may be both a normal and a dev-dependency.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EntryKey {
    table: &'static str,
    key: String,
}

pub(super) fn check(manifest: &TextFile) -> Vec<Finding> {
    let written = entries(&manifest.text).into_iter().filter(|(_, entry)| !entry.inherits);
    let finding = |(place, entry): (EntryKey, Entry)| {
        let key = place.key;
        let message = format!(
            "`{key}` is not taken from the workspace; put it in [workspace.dependencies] with its reason and \
             write `{key}.workspace = true`"
        );
        Finding::error(&manifest.path, entry.line, message)
    };
    written.map(finding).collect()
}

/// The line of a dependency, or the first line if it cannot be found.
pub(super) fn line_of(manifest: &TextFile, key: &str, kind: DependencyKind) -> usize {
    let place = EntryKey { table: table_of(kind), key: key.to_owned() };
    entries(&manifest.text).get(&place).map_or(1, |entry| entry.line)
}

fn table_of(kind: DependencyKind) -> &'static str {
    match kind {
        DependencyKind::Normal => "dependencies",
        DependencyKind::Build => "build-dependencies",
        DependencyKind::Dev => "dev-dependencies",
    }
}

/// What the lines being read belong to.
enum Section {
    /// `[dependencies]`: each line, or run of lines within brackets, is an entry.
    Table(&'static str),
    /// `[dependencies.x]`: every line is about that one.
    One(&'static str, String),
    Other,
}

fn entries(text: &str) -> BTreeMap<EntryKey, Entry> {
    let mut entries = BTreeMap::new();
    let mut section = Section::Other;
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let mut statement = without_comment(line).trim().to_owned();
        if let Some(header) = statement.strip_prefix('[') {
            section = section_of(header.trim_matches(['[', ']']));
            if let Section::One(table, key) = &section {
                note(&mut entries, table, key, index + 1, "");
            }
            continue;
        }
        while open_brackets(&statement) > 0
            && let Some((_, more)) = lines.next()
        {
            statement.push_str(without_comment(more).trim());
        }
        match (&section, statement.split_once('=')) {
            (Section::Table(table), Some((left, _))) => {
                let key = left.split('.').next().unwrap_or(left);
                let rest = statement.trim_start_matches(key);
                note(&mut entries, table, key, index + 1, rest);
            }
            (Section::One(table, key), Some(_)) => note(&mut entries, table, key, index + 1, &statement),
            (Section::Other, _) | (_, None) => {}
        }
    }
    entries
}

fn note(entries: &mut BTreeMap<EntryKey, Entry>, table: &'static str, key: &str, line: usize, text: &str) {
    let place = EntryKey { table, key: unquoted(key).to_owned() };
    let entry = entries.entry(place).or_insert(Entry { line, inherits: false });
    let compact: String = text.split_whitespace().collect();
    entry.inherits |= compact.contains("workspace=true");
}

/// Reads a header such as `dev-dependencies`, `target.'cfg(unix)'.dependencies` or `dependencies.serde`.
fn section_of(header: &str) -> Section {
    const TABLES: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];
    let name = match header.strip_prefix("target.") {
        Some(target) => target.trim_start_matches(['"', '\'']).split_once(['"', '\'']).map_or_else(
            || target.split_once('.').map_or("", |(_, rest)| rest),
            |(_, rest)| rest.trim_start_matches('.'),
        ),
        None => header,
    };
    let (table, key) = name.split_once('.').map_or((name, None), |(table, key)| (table, Some(key)));
    match (TABLES.into_iter().find(|known| *known == table.trim()), key) {
        (Some(table), Some(key)) => Section::One(table, key.to_owned()),
        (Some(table), None) => Section::Table(table),
        (None, _) => Section::Other,
    }
}

fn unquoted(key: &str) -> &str {
    key.trim().trim_matches(['"', '\''])
}

fn open_brackets(statement: &str) -> i32 {
    statement.chars().map(|c| i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'))).sum()
}

fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some(_), _) => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> TextFile {
        TextFile { path: "Cargo.toml".into(), text: text.into() }
    }

    fn found(text: &str) -> Vec<String> {
        let shown = check(&manifest(text)).iter().map(ToString::to_string).collect::<Vec<_>>();
        shown.iter().filter_map(|f| f.split_once(" is not")).map(|(head, _)| head.to_owned()).collect()
    }

    #[test]
    fn a_version_of_its_own_is_found_in_every_form() {
        let text = "\
[package]
version = \"0.1.0\"
[dependencies]
serde = \"1\"
tokio = { version = \"1\", features = [
    \"rt\", # workspace = true
] }
[dev-dependencies.tempfile]
version = \"3\"
[target.'cfg(unix)'.dependencies]
rustix.version = \"1\"
[target.x86_64-unknown-linux-gnu.build-dependencies]
\"cc\" = { path = \"../cc\" }
";
        let expected = ["11: `rustix`", "13: `cc`", "4: `serde`", "5: `tokio`", "8: `tempfile`"];
        let mut lines = found(text);
        lines.sort();
        assert_eq!(lines, expected.map(|place| format!("Cargo.toml:{place}")));
    }

    #[test]
    fn inheritance_passes_in_every_form() {
        let text = "\
[dependencies] # what it needs
serde.workspace = true
tokio = { workspace=true, features = [
    \"rt\",
] }
uuid.features = [\"v7\"]
uuid.workspace = true
[dev-dependencies.tempfile]
workspace = true
[lints]
workspace = true
[features]
default = []
";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn a_dependency_is_found_in_its_own_table() {
        let text = manifest("[dependencies]\na.workspace = true\n[dev-dependencies]\na.workspace = true\n");
        assert_eq!(line_of(&text, "a", DependencyKind::Normal), 2);
        assert_eq!(line_of(&text, "a", DependencyKind::Dev), 4);
        assert_eq!(line_of(&text, "b", DependencyKind::Normal), 1);
    }
}
