//! Files that an agent may not read without being asked: its commands find their names, and cannot open them.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agents::ground::Sight;
use shared_types::FilePath;

use crate::place::STATE;

/// All files of a workspace that are out of an agent's sight, relative to it. Those that the log ignores are on disk
/// only, so it is the disk that is looked at. Links are passed over: what one leads to is looked at under its own name.
pub(super) fn out_of_sight(workspace: &Path, sight: &Sight) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        let entries = match open(&workspace.join(&folder)) {
            Ok(entries) => entries,
            // Somebody else may take it away at any time.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(io::Error::new(e.kind(), format!("{}: {e}", folder.display()))),
        };
        for entry in entries {
            let entry = entry?;
            let (path, kind) = (folder.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() && path != Path::new(STATE) {
                folders.push(path);
            } else if kind.is_file() {
                // What has a name that the log cannot hold is judged by what can be read of it.
                let text = FilePath::from_bytes(path.as_os_str().as_bytes());
                let text = text.or_else(|_| FilePath::parse(&path.to_string_lossy()));
                // Whatever no rule can be asked about is not shown.
                if !text.is_ok_and(|text| sight.may_read(&text)) {
                    found.push(path);
                }
            }
        }
    }
    Ok(found)
}

/// Reads a folder. One that its owner closed is opened first: a command could do so as well, and look.
fn open(folder: &Path) -> io::Result<std::fs::ReadDir> {
    match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
            std::fs::read_dir(folder)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_wherever_they_lie_and_whether_or_not_they_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [(".env", "a"), (".gitignore", ".env"), ("app/.env", "b"), (".choir/.env", "c")] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink(".env", folder.path().join("link")).unwrap();
        let sight = Sight::new(|path| path.name() != ".env");
        let mut found = out_of_sight(folder.path(), &sight).unwrap();
        found.sort();
        assert_eq!(found, [Path::new(".env"), Path::new("app/.env")]);
    }
}
