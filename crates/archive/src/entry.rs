//! The names that entries of an archive may have.

use std::fmt;

use shared_types::ContentHash;

/// One entry, by its kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Events,
    Content(ContentHash),
    Manifest,
}

impl Entry {
    pub(super) const EVENTS: &'static str = "log/events.jsonl";
    pub(super) const MANIFEST: &'static str = "manifest.json";
    const CONTENTS: &'static str = "contents/";

    /// The entry with exactly this name. Other spellings are not accepted.
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        match std::str::from_utf8(name).ok()? {
            Self::EVENTS => Some(Self::Events),
            Self::MANIFEST => Some(Self::Manifest),
            name => {
                let (folder, digits) = name.strip_prefix(Self::CONTENTS)?.split_once('/')?;
                let hash = ContentHash::parse(digits).ok()?;
                (folder == &digits[..2]).then_some(Self::Content(hash))
            }
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events => f.write_str(Self::EVENTS),
            Self::Manifest => f.write_str(Self::MANIFEST),
            Self::Content(hash) => write!(f, "{}{:02x}/{hash}", Self::CONTENTS, hash.as_bytes()[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_as_its_entry() {
        for entry in [Entry::Events, Entry::Manifest, Entry::Content(ContentHash::of(b"x"))] {
            assert_eq!(Entry::parse(entry.to_string().as_bytes()), Some(entry));
        }
    }

    #[test]
    fn every_other_name_is_none() {
        let name = Entry::Content(ContentHash::of(b"x")).to_string();
        let wrong_folder = format!("contents/ff/{}", &name[12..]);
        let spellings = [
            "",
            "manifest.json/",
            "Manifest.json",
            "./manifest.json",
            "log/../manifest.json",
            "log\\events.jsonl",
            "contents/",
            "contents/ab/cd",
            &name.to_uppercase(),
            &format!("{name}/"),
            &format!("/{name}"),
            &wrong_folder,
        ];
        for spelling in spellings {
            assert_eq!(Entry::parse(spelling.as_bytes()), None, "{spelling}");
        }
        assert_eq!(Entry::parse(b"contents/\xff"), None);
    }
}
