//! Names as git takes them: which paths it can hold, how they are quoted, what may name a ref.

use shared_types::FilePath;

/// True if git keeps a file or link at this path. It refuses every part that some file system takes for `.git`, and
/// hosts refuse a push that has one.
pub(super) fn git_holds(path: &FilePath) -> bool {
    // NTFS takes a backslash for the end of a part.
    !path.as_str().split(['/', '\\']).any(is_dot_git)
}

/// The same for a symbolic link, which may in addition not be the `.gitmodules` that git reads.
pub(super) fn git_holds_link(path: &FilePath) -> bool {
    let modules = |part: &str| {
        let plain = visible(part);
        [".gitmodules", "gitmod~", "gi7eb"].iter().any(|name| plain.starts_with(name))
    };
    git_holds(path) && !path.as_str().split(['/', '\\']).any(modules)
}

fn is_dot_git(part: &str) -> bool {
    let plain = visible(part);
    let base = plain.split(':').next().unwrap_or_default();
    matches!(base.trim_end_matches(['.', ' ']), ".git" | "git~1")
}

/// A name in lower case and without the characters that HFS+ ignores.
fn visible(part: &str) -> String {
    let ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    part.chars().filter(|c| !ignored(*c)).flat_map(char::to_lowercase).collect()
}

/// A path in the C style of fast-import, always in quotes.
pub(super) fn quote(path: &FilePath) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(path.as_str().len() + 2);
    quoted.push(b'"');
    for byte in path.as_str().bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            0..0x20 | 0x7f => quoted.extend(format!("\\{byte:03o}").bytes()),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// True if git takes this as the last part of a ref, on every file system.
pub(super) fn is_ref_name(name: &str) -> bool {
    let clean = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    let ends = !name.ends_with('.') && !name.to_ascii_lowercase().ends_with(".lock");
    clean && begins && ends && name.len() <= 100 && !name.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    #[test]
    fn every_spelling_of_the_git_folder_is_left_out() {
        for bad in [
            ".git",
            "a/.git/config",
            ".GIT/x",
            ".git./x",
            ".git /x",
            "git~1",
            ".g\u{200c}it",
            "a\\.git",
            ".git::$X",
        ] {
            assert!(!git_holds(&path(bad)), "{bad}");
        }
        for good in [".gitignore", ".gitmodules", "git", "a.git/x", ".github/x", "x\\y", "git~12"] {
            assert!(git_holds(&path(good)), "{good}");
        }
        assert!(!git_holds_link(&path("a/.gitmodules")));
        assert!(git_holds_link(&path("a/.gitignore")));
    }

    #[test]
    fn quoting_leaves_no_line_end_and_no_open_quote() {
        assert_eq!(quote(&path("a \"b\"\\\nc\u{7f}é")), "\"a \\\"b\\\"\\\\\\012c\\177é\"".as_bytes());
    }

    #[test]
    fn a_ref_has_a_plain_name() {
        for good in ["restore-12", "2026-11-15T09.00", "A_b"] {
            assert!(is_ref_name(good), "{good}");
        }
        for bad in ["", "-x", ".x", "a..b", "a/b", "x.lock", "x.", "a b", "é", "a@{1}", &"x".repeat(101)] {
            assert!(!is_ref_name(bad), "{bad}");
        }
    }
}
