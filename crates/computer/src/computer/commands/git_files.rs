//! Files that control git on the host: hooks, settings, and files that point git at another repository.
//!
//! A command in a cell may not leave them in the workspace, or the person's next `git status` would run what the
//! command wrote, with the person's rights. They are removed from the layer before it is read, so that the previous
//! version stays, and the result has a note. Ordinary settings, as `git init`, `git clone` and `git remote add`
//! write them, are kept.
//!
//! Which settings run programs is listed in git-config(1): `core.fsmonitor`, `core.sshCommand`, `core.pager`,
//! `core.hooksPath`, `alias.*`, `filter.*`, `diff.*`, `include.path` and many more. New ones come with every version of
//! git, so this lists the harmless ones instead.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

use isolation::layer::EntryKind;
use projector::workspace::Workspace;
use shared_types::FilePath;

const REASON: &str = "it could make git on this machine run a program";
/// A larger settings file is treated as harmful.
const MAX_CONFIG_BYTES: u64 = 64 << 10;

/// The entries of a layer, by path.
type Entries = Vec<(FilePath, EntryKind)>;

/// Removes such files from a layer. Returns the remaining entries, and a note for each removed path.
pub(super) fn remove_git_files(
    upper: &Path,
    lower: &Workspace,
    layer: &Workspace,
    entries: Entries,
) -> io::Result<(Entries, Vec<String>)> {
    let written: BTreeSet<&FilePath> =
        entries.iter().filter(|(_, kind)| *kind != EntryKind::Whiteout).map(|(path, _)| path).collect();
    let exists = |path: &FilePath| written.contains(path) || matches!(lower.observe(path), Ok(Some(_)));
    let mut notes = Vec::new();
    let mut dangerous = BTreeSet::new();
    for (path, kind) in &entries {
        let harmless = match git_file_kind(path, *kind, &exists) {
            GitFileKind::None => true,
            GitFileKind::Settings => {
                isolation::layer::make_readable(&upper.join(path.as_str()));
                read(layer, path).is_some_and(|text| is_harmless(&text))
            }
            GitFileKind::ControlsGit => false,
        };
        if !harmless {
            dangerous.insert(path.clone());
        }
    }
    for path in &dangerous {
        let unchanged = read(layer, path).is_some_and(|text| read(lower, path).as_ref() == Some(&text));
        std::fs::remove_file(upper.join(path.as_str()))?;
        if !unchanged {
            notes.push(format!("{path} was left out: {REASON}"));
        }
    }
    let kept = entries.into_iter().filter(|(path, _)| !dangerous.contains(path)).collect();
    Ok((kept, notes))
}

/// What git uses a path for.
#[derive(Debug, PartialEq, Eq)]
enum GitFileKind {
    None,
    /// Settings, which may be harmless.
    Settings,
    ControlsGit,
}

fn git_file_kind(path: &FilePath, kind: EntryKind, exists: &dyn Fn(&FilePath) -> bool) -> GitFileKind {
    let is_file = match kind {
        EntryKind::File => true,
        EntryKind::Symlink => false,
        EntryKind::Folder | EntryKind::OpaqueFolder | EntryKind::Whiteout | EntryKind::Special => {
            return GitFileKind::None;
        }
    };
    let parts: Vec<&str> = path.as_str().split('/').collect();
    // On a case-insensitive disk git finds `.GIT` as well.
    let inside = parts.iter().position(|part| part.eq_ignore_ascii_case(".git"));
    let Some(inside) = inside else { return kind_in_bare_repository(&parts, is_file, exists) };
    match &parts[inside + 1..] {
        // A file or link in place of the repository points to another repository.
        [] => GitFileKind::ControlsGit,
        // Git makes no links in a repository, and a link could stand for any of the files below.
        _ if !is_file => GitFileKind::ControlsGit,
        ["refs" | "objects" | "logs", ..] => GitFileKind::None,
        ["config"] => GitFileKind::Settings,
        rest => kind_of_names(rest),
    }
}

/// The kind of a path in a bare repository.
fn kind_in_bare_repository(parts: &[&str], is_file: bool, exists: &dyn Fn(&FilePath) -> bool) -> GitFileKind {
    let beside = |depth: usize, name: &str| {
        let folder = parts[..parts.len() - depth].join("/");
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        FilePath::parse(&path).is_ok_and(|path| exists(&path))
    };
    let is_repository = |depth| beside(depth, "HEAD") && beside(depth, "objects") && beside(depth, "refs");
    match parts {
        [.., "config"] if is_repository(1) => {
            if is_file {
                GitFileKind::Settings
            } else {
                GitFileKind::ControlsGit
            }
        }
        [.., "hooks" | "commondir" | "config.worktree"] if is_repository(1) => GitFileKind::ControlsGit,
        [.., "hooks", name] if !name.ends_with(".sample") && is_repository(2) => GitFileKind::ControlsGit,
        _ => GitFileKind::None,
    }
}

/// Repositories of submodules and work trees are inside, under any name.
fn kind_of_names(rest: &[&str]) -> GitFileKind {
    let is_hook = |pair: &[&str]| pair[0] == "hooks" && !pair[1].ends_with(".sample");
    match rest {
        [.., "hooks" | "commondir" | "config.worktree" | "gitdir"] => GitFileKind::ControlsGit,
        [.., "config"] => GitFileKind::Settings,
        rest if rest.windows(2).any(is_hook) => GitFileKind::ControlsGit,
        _ => GitFileKind::None,
    }
}

fn read(workspace: &Workspace, path: &FilePath) -> Option<String> {
    let mut text = String::new();
    let read = workspace.open_file(path).ok()?.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= MAX_CONFIG_BYTES).then_some(text)
}

/// True if every line is plain and names a setting that only describes the repository. A line that could be read in
/// two ways (quotes, a backslash, a section and a setting in one line) is not plain.
fn is_harmless(text: &str) -> bool {
    let mut section = "";
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(named) = line.strip_prefix('[') {
            let Some(named) = named.strip_suffix(']') else { return false };
            section = named.split_once(' ').map_or(named, |(section, _)| section);
            return is_plain_section(named);
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        !value.contains(['\\', '"'])
            && !name.contains(['\\', '"'])
            && is_known(section, name.trim(), value.trim())
    })
}

fn is_plain_section(named: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    match named.split_once(' ') {
        None => named.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
        Some((section, rest)) => {
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            section.chars().all(|c| c.is_ascii_alphanumeric())
                && quoted.is_some_and(|name| name.chars().all(word))
        }
    }
}

fn is_known(section: &str, name: &str, value: &str) -> bool {
    match (section.to_ascii_lowercase().as_str(), name.to_ascii_lowercase().as_str()) {
        (
            "core",
            "repositoryformatversion"
            | "filemode"
            | "bare"
            | "logallrefupdates"
            | "ignorecase"
            | "symlinks"
            | "precomposeunicode"
            | "autocrlf"
            | "eol"
            | "quotepath",
        )
        | ("user", "name" | "email")
        | ("branch", "remote" | "merge" | "rebase")
        | ("remote", "fetch" | "tagopt")
        | ("init", "defaultbranch")
        | ("pull", "rebase" | "ff")
        | ("submodule", "active")
        | ("extensions", "objectformat" | "refstorage") => true,
        // `ext::` and its likes run a program (gitremote-helpers(7)).
        ("remote" | "submodule", "url") => !value.contains("::") && !value.starts_with('-'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(path: &str, kind: EntryKind) -> GitFileKind {
        let bare = ["bare/HEAD", "bare/objects", "bare/refs"].map(|path| FilePath::parse(path).unwrap());
        git_file_kind(&FilePath::parse(path).unwrap(), kind, &|path| bare.contains(path))
    }

    #[test]
    fn what_git_executes_or_obeys_is_told_from_what_it_only_keeps() {
        for (path, expected) in [
            (".git/config", GitFileKind::Settings),
            ("vendor/x/.git/config", GitFileKind::Settings),
            (".git/modules/a/b/config", GitFileKind::Settings),
            ("bare/config", GitFileKind::Settings),
            (".git", GitFileKind::ControlsGit),
            ("x/.git", GitFileKind::ControlsGit),
            (".GIT/hooks/post-checkout", GitFileKind::ControlsGit),
            (".git/hooks/pre-commit", GitFileKind::ControlsGit),
            (".git/modules/a/hooks/pre-commit", GitFileKind::ControlsGit),
            (".git/commondir", GitFileKind::ControlsGit),
            (".git/config.worktree", GitFileKind::ControlsGit),
            ("bare/hooks/update", GitFileKind::ControlsGit),
            (".git/hooks/pre-commit.sample", GitFileKind::None),
            (".git/HEAD", GitFileKind::None),
            (".git/index", GitFileKind::None),
            (".git/objects/ab/cdef", GitFileKind::None),
            (".git/refs/heads/hooks/better", GitFileKind::None),
            (".gitignore", GitFileKind::None),
            ("src/hooks/use_state.rs", GitFileKind::None),
            ("app/config", GitFileKind::None),
        ] {
            assert_eq!(kind_of(path, EntryKind::File), expected, "{path}");
        }
        for link in [".git", ".git/hooks", ".git/config", ".git/refs"] {
            assert_eq!(kind_of(link, EntryKind::Symlink), GitFileKind::ControlsGit, "{link}");
        }
    }

    #[test]
    fn settings_are_harmless_only_if_every_line_is() {
        let clone = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
            [remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = Ada\n";
        assert!(is_harmless(clone));
        for line in [
            "[core]\n\tfsmonitor = .git/fs\n",
            "[core] fsmonitor = .git/fs\n",
            "[CORE]\n\tsshCommand = x\n",
            "[core]\n\tbare = false\\\n\tfsmonitor = x\n",
            "[core \"x\"]\n\thooksPath = x\n",
            "[include]\n\tpath = evil\n",
            "[includeIf \"gitdir:/\"]\n\tpath = evil\n",
            "[alias]\n\tstatus = !touch x\n",
            "[filter \"x\"]\n\tclean = x\n",
            "[remote \"origin\"]\n\turl = ext::sh -c x\n",
            "[remote \"origin\"]\n\tuploadpack = x\n",
            "[diff]\n\texternal = x\n",
            "[user]\n\tname = \"a\"\n",
        ] {
            assert!(!is_harmless(line), "{line}");
        }
    }
}
