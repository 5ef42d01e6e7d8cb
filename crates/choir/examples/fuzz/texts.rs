//! Paths, names and ids: whatever is taken keeps the promise of its type.

use shared_types::path::link_stays_inside;
use shared_types::{ContentHash, EventId, EventName, FilePath, UserId};

use crate::random::Random;
use crate::trying;

const PIECES: &[&str] = &[
    "a",
    "B",
    "z9",
    "-",
    "_",
    ".",
    "..",
    "/",
    "//",
    "\\",
    " ",
    ":",
    "*",
    ">",
    "\0",
    "\n",
    "é",
    "\u{200b}",
    "\u{feff}",
    "\u{ad}",
    ".choir",
    ".CHOIR",
    ".Choir",
    "choir",
    ".git",
    "file",
    "write",
    "FILE_WRITE",
    "0",
    "🦀",
    "\u{212a}",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "019a8692-3480-7101-8101-010101010101",
];

pub(crate) fn case(seed: u64, random: &mut Random) -> Result<(), String> {
    let pieces = if random.chance(20) { 80 } else { 6 };
    let text: String = (0..random.below(pieces)).map(|_| *random.pick(PIECES)).collect();
    let mut bytes = text.into_bytes();
    if random.chance(3) && !bytes.is_empty() {
        random.mutate(&mut bytes, PIECES);
    }
    trying(seed, "text", &bytes);
    let from_bytes = FilePath::from_bytes(&bytes);
    let Ok(text) = String::from_utf8(bytes) else {
        return hold(from_bytes.is_err(), "a path that is no text was taken");
    };
    let path = FilePath::parse(&text);
    hold(path == from_bytes, "a path depends on how it is given")?;
    if let Ok(path) = &path {
        check_path(path, &text)?;
        let _ = link_stays_inside(path, &text);
    }
    if let Ok(name) = EventName::parse(&text) {
        let clean = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.';
        hold(name.as_str().bytes().all(clean) && name.as_str().len() <= 64, "a name is not normal")?;
        hold(EventName::parse(name.as_str()).as_ref() == Ok(&name), "a normal name is changed")?;
        hold(!name.family().is_empty(), "a name has no family")?;
    }
    if let Ok(user) = UserId::parse(&text) {
        hold(user.as_str() == text && (1..=64).contains(&text.len()), "a user id is changed")?;
        hold(!text.contains(['.', '*', '>', ' ', '/']), "a user id is more than one token")?;
    }
    if let Ok(hash) = ContentHash::parse(&text) {
        hold(hash.to_string() == text, "a hash is changed")?;
    }
    if let Ok(id) = text.parse::<EventId>() {
        hold(id.to_string().parse() == Ok(id), "an id is changed")?;
    }
    Ok(())
}

fn check_path(path: &FilePath, text: &str) -> Result<(), String> {
    hold(path.as_str() == text, "a path is changed")?;
    let bad = |part: &str| part.is_empty() || part == "." || part == ".." || part.len() > 255;
    hold(!path.parts().any(bad), "a path has a part that is no name")?;
    let reserved = |part: &str| part.trim_end_matches(['.', ' ']).eq_ignore_ascii_case(".choir");
    hold(!path.parts().any(reserved), "a path reaches the computer's own state")?;
    hold(
        !text.starts_with('/') && !text.contains('\0') && text.len() <= FilePath::MAX_LEN,
        "a path escapes",
    )?;
    for above in path.ancestors() {
        hold(FilePath::parse(above.as_str()).as_ref() == Ok(&above), "a folder above a path is none")?;
        hold(path.is_within(&above), "a path is not within its folder")?;
        hold(path.rebase(&above, &above) == Some(Ok(path.clone())), "a path moves by itself")?;
    }
    let json = serde_json::to_string(path).map_err(|e| e.to_string())?;
    hold(serde_json::from_str(&json).ok().as_ref() == Some(path), "a path does not survive its JSON")?;
    let _ = path.repository();
    Ok(())
}

fn hold(promise: bool, broken: &str) -> Result<(), String> {
    if promise { Ok(()) } else { Err(broken.to_owned()) }
}
