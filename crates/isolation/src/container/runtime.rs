//! The OCI runtime: found, or named in the settings.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Those we know how to call, the first that is found.
const KNOWN: [&str; 2] = ["runc", "crun"];
/// Where runtimes are, which the search path of an ordinary user may lack.
const PLACES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/usr/libexec/podman"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Runtime {
    pub(super) path: PathBuf,
}

/// The runtime that was named, or one that is there.
pub(super) fn find(named: Option<&Path>) -> Result<Runtime, String> {
    if let Some(path) = named {
        let found = path.is_file().then(|| Runtime { path: path.to_owned() });
        return found.ok_or_else(|| format!("there is no OCI runtime {}", path.display()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    search(&path).ok_or_else(|| format!("no OCI runtime is installed ({})", KNOWN.join(" or ")))
}

fn search(path: &OsStr) -> Option<Runtime> {
    let folders: Vec<PathBuf> = std::env::split_paths(path).chain(PLACES.map(PathBuf::from)).collect();
    let candidates = KNOWN.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|path| path.is_absolute() && path.is_file()).map(|path| Runtime { path })
}

impl Runtime {
    /// What it calls itself.
    pub(super) fn version(&self) -> Result<String, String> {
        let output = Command::new(&self.path).arg("--version").output();
        let output = output.map_err(|e| format!("{} does not run: {e}", self.path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let first = text.lines().next().filter(|_| output.status.success());
        first.map(str::to_owned).ok_or_else(|| format!("{} does not tell its version", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_runtime_on_the_path_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let (one, two) = (base.path().join("one"), base.path().join("two"));
        for path in [one.join("crun"), two.join("runc")] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let path = std::env::join_paths([&one, &two]).unwrap();
        assert_eq!(search(&path).unwrap().path, two.join("runc"));
    }

    #[test]
    fn a_named_runtime_that_is_not_there_is_not_replaced_by_another() {
        assert!(find(Some(Path::new("/no/such/runc"))).unwrap_err().contains("/no/such/runc"));
    }
}
