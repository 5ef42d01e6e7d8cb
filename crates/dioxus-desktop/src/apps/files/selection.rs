//! Which entries of a folder are selected, and in which order they are shown.

use std::collections::BTreeSet;

use shared_types::FilePath;
use shared_types::payload::file::FileNode;
use shared_types::wire::Entry;

/// The selected paths. The cursor is the one that the next key starts from, and the anchor the other end of a range.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selection {
    paths: BTreeSet<FilePath>,
    anchor: Option<FilePath>,
    cursor: Option<FilePath>,
}

impl Selection {
    pub(crate) fn of(path: FilePath) -> Self {
        Self { anchor: Some(path.clone()), cursor: Some(path.clone()), paths: BTreeSet::from([path]) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(crate) fn contains(&self, path: &FilePath) -> bool {
        self.paths.contains(path)
    }

    pub(crate) fn cursor(&self) -> Option<&FilePath> {
        self.cursor.as_ref()
    }

    /// Adds a path, or takes it out.
    pub(crate) fn toggle(&mut self, path: &FilePath) {
        if !self.paths.remove(path) {
            self.paths.insert(path.clone());
        }
        (self.anchor, self.cursor) = (Some(path.clone()), Some(path.clone()));
    }

    /// Selects everything between the anchor and a path, both included.
    pub(crate) fn extend_to(&mut self, path: &FilePath, order: &[Entry]) {
        let place = |path: &FilePath| order.iter().position(|entry| entry.path == *path);
        let Some(end) = place(path) else { return };
        let start = self.anchor.as_ref().and_then(place).unwrap_or(end);
        self.paths = order[start.min(end)..=start.max(end)].iter().map(|entry| entry.path.clone()).collect();
        self.anchor = order.get(start).map(|entry| entry.path.clone());
        self.cursor = Some(path.clone());
    }

    pub(crate) fn all(order: &[Entry]) -> Self {
        Self {
            paths: order.iter().map(|entry| entry.path.clone()).collect(),
            anchor: order.first().map(|entry| entry.path.clone()),
            cursor: order.last().map(|entry| entry.path.clone()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortKey {
    Name,
    Size,
    Changed,
}

/// The order of a list. Folders come first in any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SortOrder {
    pub(crate) key: SortKey,
    pub(crate) descending: bool,
}

impl Default for SortOrder {
    fn default() -> Self {
        Self { key: SortKey::Name, descending: false }
    }
}

impl SortOrder {
    /// The order after a press on the heading of a column. Sizes and times are most useful with the largest first.
    pub(crate) fn pressed(self, key: SortKey) -> Self {
        if self.key == key {
            Self { key, descending: !self.descending }
        } else {
            Self { key, descending: key != SortKey::Name }
        }
    }

    pub(crate) fn sorted(self, entries: &[Entry]) -> Vec<Entry> {
        // Made once for each entry: there may be a hundred thousand.
        let lower = |entry: &Entry| entry.path.name().to_lowercase();
        let mut keyed: Vec<(String, &Entry)> = entries.iter().map(|entry| (lower(entry), entry)).collect();
        keyed.sort_by(|(name_a, a), (name_b, b)| {
            let is_file = |entry: &Entry| !matches!(entry.node, FileNode::Folder);
            let size = |entry: &Entry| match &entry.node {
                FileNode::File { size, .. } => *size,
                FileNode::Folder | FileNode::Symlink { .. } => 0,
            };
            let by_key = match self.key {
                SortKey::Name => by_name(name_a, name_b),
                SortKey::Size => size(a).cmp(&size(b)),
                SortKey::Changed => a.ts.cmp(&b.ts),
            };
            let by_key = if self.descending { by_key.reverse() } else { by_key };
            is_file(a).cmp(&is_file(b)).then(by_key).then_with(|| by_name(name_a, name_b))
        });
        keyed.into_iter().map(|(_, entry)| entry.clone()).collect()
    }
}

/// As people sort names, which are given in lower case: numbers by their value.
fn by_name(a: &str, b: &str) -> std::cmp::Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    loop {
        let (number_a, number_b) = (leading_digits(rest_a), leading_digits(rest_b));
        if !number_a.is_empty() && !number_b.is_empty() {
            let (value_a, value_b) = (number_a.trim_start_matches('0'), number_b.trim_start_matches('0'));
            let order = value_a.len().cmp(&value_b.len()).then(value_a.cmp(value_b));
            if order.is_ne() {
                return order;
            }
            (rest_a, rest_b) = (&rest_a[number_a.len()..], &rest_b[number_b.len()..]);
            continue;
        }
        let (mut letters_a, mut letters_b) = (rest_a.chars(), rest_b.chars());
        match (letters_a.next(), letters_b.next()) {
            (Some(letter_a), Some(letter_b)) if letter_a == letter_b => {
                (rest_a, rest_b) = (letters_a.as_str(), letters_b.as_str());
            }
            (letter_a, letter_b) => return letter_a.cmp(&letter_b).then_with(|| a.cmp(b)),
        }
        if rest_a.is_empty() && rest_b.is_empty() {
            return a.cmp(b);
        }
    }
}

fn leading_digits(text: &str) -> &str {
    &text[..text.bytes().take_while(u8::is_ascii_digit).count()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_types::{ContentHash, Seq, Timestamp};

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    fn file(name: &str, size: u64, ts: i64) -> Entry {
        let node = FileNode::File { hash: ContentHash::of(b""), size, mode: 0o644 };
        Entry { path: path(name), node, ts: Timestamp::from_millis(ts), seq: Seq(1) }
    }

    fn names(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    #[test]
    fn a_range_grows_and_shrinks_from_its_anchor() {
        let order: Vec<Entry> = ["a", "b", "c", "d"].map(|name| file(name, 1, 1)).into();
        let chosen =
            |selection: &Selection| selection.paths.iter().map(FilePath::to_string).collect::<String>();
        let mut selection = Selection::of(path("b"));
        selection.extend_to(&path("d"), &order);
        assert_eq!(chosen(&selection), "bcd");
        selection.extend_to(&path("a"), &order);
        assert_eq!(chosen(&selection), "ab");
        selection.toggle(&path("d"));
        selection.toggle(&path("a"));
        assert_eq!(chosen(&selection), "bd");
        assert_eq!(chosen(&Selection::all(&order)), "abcd");
    }

    #[test]
    fn names_are_sorted_as_people_sort_them_and_folders_come_first() {
        let mut entries =
            vec![file("part 10", 1, 3), file("Part 9", 5, 1), file("part 009b", 2, 2), file("zoo", 9, 9)];
        entries.push(Entry { node: FileNode::Folder, ..file("src", 0, 0) });
        let entries = SortOrder::default().sorted(&entries);
        assert_eq!(names(&entries), ["src", "Part 9", "part 009b", "part 10", "zoo"]);
        let entries = SortOrder::default().pressed(SortKey::Size).sorted(&entries);
        assert_eq!(names(&entries), ["src", "zoo", "Part 9", "part 009b", "part 10"]);
        let entries =
            SortOrder::default().pressed(SortKey::Changed).pressed(SortKey::Changed).sorted(&entries);
        assert_eq!(names(&entries), ["src", "Part 9", "part 009b", "part 10", "zoo"]);
    }
}
