//! Finds the OCI runtime, or uses the configured one. Podman is not a runtime, but uses one: where only podman is
//! found or configured, its runtime is used.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The supported runtimes, in order of preference.
const KNOWN: [&str; 2] = ["runc", "crun"];
/// A container engine that uses one of them.
const PODMAN: &str = "podman";
/// Folders of runtimes that an ordinary user's search path may lack.
const PLACES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/usr/libexec/podman"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Runtime {
    pub(super) path: PathBuf,
}

/// The configured runtime, or an installed one.
pub(super) fn find(named: Option<&Path>) -> Result<Runtime, String> {
    match named {
        Some(path) if !path.is_file() => Err(format!("there is no OCI runtime {}", path.display())),
        Some(path) if path.file_name() == Some(OsStr::new(PODMAN)) => of_podman(path),
        Some(path) => Ok(Runtime { path: path.to_owned() }),
        None => {
            let none = || format!("no OCI runtime is installed ({}, or podman with one)", KNOWN.join(" or "));
            let path = std::env::var_os("PATH").unwrap_or_default();
            let podman = || search(&path, PODMAN).and_then(|podman| of_podman(&podman).ok());
            all(&path).into_iter().next().or_else(podman).ok_or_else(none)
        }
    }
}

/// The installed runtimes, one of each kind.
pub(super) fn all(path: &OsStr) -> Vec<Runtime> {
    KNOWN.iter().filter_map(|name| search(path, name)).map(|path| Runtime { path }).collect()
}

fn search(path: &OsStr, name: &str) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).chain(PLACES.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.is_absolute() && path.is_file())
}

/// The runtime that podman itself uses.
fn of_podman(podman: &Path) -> Result<Runtime, String> {
    let asked = Command::new(podman).args(["info", "--format", "{{.Host.OCIRuntime.Path}}"]).output();
    let asked = asked.map_err(|e| format!("{} does not run: {e}", podman.display()))?;
    let path = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    let is_known = path.file_name().is_some_and(|name| KNOWN.iter().any(|known| name == *known));
    if is_known && path.is_file() {
        return Ok(Runtime { path });
    }
    let stderr = String::from_utf8_lossy(&asked.stderr);
    let why = stderr.lines().last().map_or_else(|| format!("it names {}", path.display()), str::to_owned);
    Err(format!("{} has no supported runtime ({}): {why}", podman.display(), KNOWN.join(" or ")))
}

impl Runtime {
    /// crun handles control groups differently from runc.
    pub(super) fn is_crun(&self) -> bool {
        self.path.file_name().is_some_and(|name| name == "crun")
    }

    /// The version that the runtime reports.
    pub(super) fn version(&self) -> Result<String, String> {
        let output = Command::new(&self.path).arg("--version").output();
        let output = output.map_err(|e| format!("{} does not run: {e}", self.path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let first = text.lines().next().filter(|_| output.status.success());
        first.map(str::to_owned).ok_or_else(|| format!("{} does not report its version", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_runtime_on_the_path_comes_first() {
        let base = tempfile::tempdir().unwrap();
        let (one, two) = (base.path().join("one"), base.path().join("two"));
        for path in [one.join("crun"), two.join("runc")] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let path = std::env::join_paths([&one, &two]).unwrap();
        let found: Vec<PathBuf> = all(&path).into_iter().map(|runtime| runtime.path).collect();
        assert_eq!(found, [two.join("runc"), one.join("crun")]);
    }

    #[test]
    fn podmans_runtime_is_used() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let (podman, crun) = (base.path().join("podman"), base.path().join("crun"));
        let says = |line: &str| {
            std::fs::write(&podman, format!("#!/bin/sh\n{line}\n")).unwrap();
            std::fs::set_permissions(&podman, PermissionsExt::from_mode(0o755)).unwrap();
            find(Some(&podman))
        };
        let tells = format!("[ \"$1\" = info ] && echo {}", crun.display());
        assert!(says(&tells).unwrap_err().contains("no supported runtime"), "what it names is not there");
        std::fs::write(&crun, "").unwrap();
        assert_eq!(says(&tells).unwrap().path, crun);
        assert!(says("echo no storage >&2; exit 125").unwrap_err().contains("no storage"));
    }

    #[test]
    fn a_missing_configured_runtime_is_not_replaced() {
        assert!(find(Some(Path::new("/no/such/runc"))).unwrap_err().contains("/no/such/runc"));
    }
}
