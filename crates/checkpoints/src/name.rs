//! Git's rules for names: which paths it can store, how paths are quoted, and what is a valid ref name.

use shared_types::FilePath;

/// True if git can store a file or link at this path. It refuses every component that some file system takes for
/// `.git`, and hosts refuse a push that has one.
pub(super) fn is_storable(path: &FilePath) -> bool {
    // NTFS treats a backslash as a separator.
    !path.as_str().split(['/', '\\']).any(is_dot_git)
}

/// Like [`is_storable`], for a symbolic link, which must not replace the `.gitmodules` that git reads either.
pub(super) fn is_storable_link(path: &FilePath) -> bool {
    let modules = |component: &str| {
        let plain = normalized(component);
        [".gitmodules", "gitmod~", "gi7eb"].iter().any(|name| plain.starts_with(name))
    };
    is_storable(path) && !path.as_str().split(['/', '\\']).any(modules)
}

fn is_dot_git(component: &str) -> bool {
    let plain = normalized(component);
    let base = plain.split(':').next().unwrap_or_default();
    matches!(base.trim_end_matches(['.', ' ']), ".git" | "git~1")
}

/// A name in lower case and without the characters that HFS+ ignores.
fn normalized(component: &str) -> String {
    let ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    component.chars().filter(|c| !ignored(*c)).flat_map(char::to_lowercase).collect()
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

/// True if git accepts this as the last component of a ref, on every file system.
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
            assert!(!is_storable(&path(bad)), "{bad}");
        }
        for good in [".gitignore", ".gitmodules", "git", "a.git/x", ".github/x", "x\\y", "git~12"] {
            assert!(is_storable(&path(good)), "{good}");
        }
        assert!(!is_storable_link(&path("a/.gitmodules")));
        assert!(is_storable_link(&path("a/.gitignore")));
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
