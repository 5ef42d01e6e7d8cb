//! Paths inside a workspace. A `FilePath` cannot name anything outside it, nor the computer's own state in `.choir`.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a text is not a valid path in the workspace.
#[derive(Debug, Error, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("the path is absolute; use a path relative to the workspace")]
    Absolute,
    #[error("the path leaves the workspace: '.' and '..' are not names")]
    Escapes,
    #[error("the path has an empty part or ends with a slash")]
    EmptyPart,
    #[error("the path is too long: the limits are 255 bytes for a part and 3,072 in all")]
    TooLong,
    #[error("the path holds a NUL character")]
    Nul,
    #[error("'.choir', in any spelling, is reserved for the computer's own state")]
    Reserved,
    #[error("the path is not UTF-8, so it cannot be recorded")]
    NotUtf8,
}

/// A path relative to the workspace, with `/` between its parts.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct FilePath(Box<str>);

impl FilePath {
    pub const MAX_LEN: usize = 3072;
    pub const MAX_PART: usize = 255;

    pub fn parse(text: &str) -> Result<Self, PathError> {
        check(text)?;
        Ok(Self(text.into()))
    }

    /// Parses the bytes of a path from the file system.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PathError> {
        Self::parse(std::str::from_utf8(bytes).map_err(|_| PathError::NotUtf8)?)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.into()))
    }

    /// Every folder above this path, nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        self.ancestor_texts().map(|folder| Self(folder.into()))
    }

    /// The same as text, without allocations.
    pub fn ancestor_texts(&self) -> impl Iterator<Item = &str> {
        let ends = self.0.rmatch_indices('/');
        ends.map(|(end, _)| &self.0[..end])
    }

    /// Whether this is the folder itself or a path below it.
    pub fn is_within(&self, folder: &Self) -> bool {
        match self.0.strip_prefix(folder.as_str()) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// This path with the prefix `from` replaced by `to`.
    pub fn rebase(&self, from: &Self, to: &Self) -> Option<Result<Self, PathError>> {
        if !self.is_within(from) {
            return None;
        }
        Some(Self::parse(&format!("{}{}", to.0, &self.0[from.0.len()..])))
    }

    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        Self::parse(&format!("{}/{name}", self.0))
    }

    /// The `.git` folder of the user's own repository, if this path is inside one.
    pub fn repository(&self) -> Option<Self> {
        let mut end = 0;
        for part in self.parts() {
            end += part.len();
            if part == ".git" {
                return Some(Self(self.0[..end].into()));
            }
            end += 1;
        }
        None
    }
}

/// Whether a symbolic link at `link` points into the workspace and not into `.choir`. The check is lexical: it does not
/// depend on the disk.
pub fn link_stays_inside(link: &FilePath, target: &str) -> bool {
    if target.is_empty()
        || target.starts_with('/')
        || target.contains('\0')
        || target.len() > FilePath::MAX_LEN
    {
        return false;
    }
    let mut depth = link.parts().count() - 1;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return false,
            ".." => depth -= 1,
            part if part.len() > FilePath::MAX_PART || is_reserved(part) => return false,
            _ => depth += 1,
        }
    }
    true
}

fn check(text: &str) -> Result<(), PathError> {
    if text.is_empty() {
        return Err(PathError::Empty);
    }
    if text.starts_with('/') {
        return Err(PathError::Absolute);
    }
    if text.len() > FilePath::MAX_LEN {
        return Err(PathError::TooLong);
    }
    // Splitting bytes is faster than splitting text, and every replay checks all paths again.
    for part in text.as_bytes().split(|byte| *byte == b'/') {
        match part {
            b"" => return Err(PathError::EmptyPart),
            b"." | b".." => return Err(PathError::Escapes),
            part if part.len() > FilePath::MAX_PART => return Err(PathError::TooLong),
            part if std::str::from_utf8(part).is_ok_and(is_reserved) => return Err(PathError::Reserved),
            _ => {}
        }
    }
    if text.as_bytes().contains(&0) { Err(PathError::Nul) } else { Ok(()) }
}

/// Whether any file system could take the name for `.choir`: some fold case, some drop trailing dots and spaces, some
/// ignore zero-width characters, some accept a stream name after a colon.
fn is_reserved(part: &str) -> bool {
    let first = part.as_bytes()[0];
    if first != b'.' && first < 0x80 {
        return false;
    }
    let visible = part.chars().filter(|c| !is_ignorable(*c)).collect::<String>();
    let base = visible.split(':').next().unwrap_or_default();
    base.trim_end_matches(['.', ' ']).to_lowercase() == ".choir"
}

fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}')
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::borrow::Borrow<str> for FilePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for FilePath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

struct PathVisitor;

impl<'de> Visitor<'de> for PathVisitor {
    type Value = FilePath;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path relative to the workspace")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<FilePath, E> {
        FilePath::parse(text).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PathVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> PathError {
        FilePath::parse(text).expect_err(text)
    }

    #[test]
    fn ordinary_paths_are_accepted_unchanged() {
        for good in
            ["a", "src/main.rs", "ünï/code.md", ".gitignore", "a b/c", "..a", "a..", ".choirignore", "x\\y"]
        {
            assert_eq!(FilePath::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn hostile_paths_are_refused_with_their_reason() {
        assert_eq!(refused(""), PathError::Empty);
        assert_eq!(refused("/etc/passwd"), PathError::Absolute);
        assert_eq!(refused("../x"), PathError::Escapes);
        assert_eq!(refused("a/../../x"), PathError::Escapes);
        assert_eq!(refused("./a"), PathError::Escapes);
        assert_eq!(refused("a//b"), PathError::EmptyPart);
        assert_eq!(refused("a/"), PathError::EmptyPart);
        assert_eq!(refused("a\0b"), PathError::Nul);
        assert_eq!(refused(&"x".repeat(256)), PathError::TooLong);
        assert_eq!(refused(&"abc/".repeat(1000)), PathError::TooLong);
        assert_eq!(FilePath::from_bytes(b"a\xff"), Err(PathError::NotUtf8));
    }

    #[test]
    fn the_reserved_name_is_refused_in_every_spelling() {
        for bad in [
            ".choir",
            "a/.choir/b",
            ".CHOIR",
            ".Choir",
            ".choir.",
            ".choir ",
            ".ch\u{200c}oir",
            ".choir::$DATA",
        ] {
            assert_eq!(refused(bad), PathError::Reserved, "{bad}");
        }
        assert_eq!(refused("\u{feff}.choir"), PathError::Reserved);
    }

    #[test]
    fn a_link_may_point_only_into_the_workspace() {
        let link = FilePath::parse("a/b/link").unwrap();
        for inside in ["x", "../x", "../../x", "./c/../d", "../../a/b"] {
            assert!(link_stays_inside(&link, inside), "{inside}");
        }
        for outside in
            ["", "/etc", "../../../x", "../../.choir/state.sqlite", "../../.CHOIR", "c/../../../../d"]
        {
            assert!(!link_stays_inside(&link, outside), "{outside}");
        }
    }

    #[test]
    fn rebasing_moves_a_whole_folder() {
        let path = |t: &str| FilePath::parse(t).unwrap();
        assert_eq!(path("a/b/c").rebase(&path("a/b"), &path("z")), Some(Ok(path("z/c"))));
        assert_eq!(path("a/bc").rebase(&path("a/b"), &path("z")), None);
        assert_eq!(path("x/.git/refs/heads").repository(), Some(path("x/.git")));
        assert_eq!(path("a/b/c").ancestors().collect::<Vec<_>>(), vec![path("a/b"), path("a")]);
    }
}
