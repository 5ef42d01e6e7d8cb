//! Our own program inside a container, whose image may lack compatible libraries: it is mounted with its loader and
//! libraries, in a folder that no image uses.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::jail::root::folder;
use crate::launch_report::{SetupError, step_failed};
use crate::sys::{self, Bind};

/// The program's folder inside the container.
pub(super) const FOLDER: &str = "/.choir";

/// Mounts this program with its libraries below `into`; returns its command line inside the container.
pub(super) fn mount_program(into: &Path) -> Result<Vec<String>, SetupError> {
    folder(into.join("lib"))?;
    mount_self(&into.join("cell"))?;
    let maps = fs::read_to_string("/proc/self/maps").map_err(step_failed("list our libraries"))?;
    let mut arguments = Vec::new();
    for library in libraries(&maps) {
        let Some(name) = library.file_name().and_then(|name| name.to_str()) else { continue };
        if name.starts_with("ld-") || name.starts_with("ld.so") {
            mount_file(&library, &into.join("ld.so"))?;
            arguments = ["/ld.so", "--library-path", "/lib"].map(in_container).to_vec();
        }
        mount_file(&library, &into.join("lib").join(name))?;
        for alias in aliases(name) {
            symlink(name, into.join("lib").join(alias)).map_err(step_failed("link a library"))?;
        }
    }
    arguments.extend([in_container("/cell"), crate::INIT.to_owned()]);
    Ok(arguments)
}

/// Re-executes this program as [`mount_program`] set it up, with another argument. Returns only on failure.
pub(super) fn reexecute(argument: &str) -> SetupError {
    // If it was started through a loader, only the command line tells how.
    let line = fs::read("/proc/self/cmdline").unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let mut program = Command::new(words.next().unwrap_or_default());
    let kept = words.take_while(|word| *word != crate::INIT);
    step_failed("restart the cell init")(program.args(kept).arg(argument).exec())
}

/// A path argument as the program sees it inside the container.
fn in_container(argument: &str) -> String {
    if argument.starts_with('/') { format!("{FOLDER}{argument}") } else { argument.to_owned() }
}

/// Mounts the running program, or copies it if its file was replaced.
fn mount_self(target: &Path) -> Result<(), SetupError> {
    let (running, step) = (Path::new("/proc/self/exe"), "mount our program");
    let now = fs::metadata(running).map_err(step_failed(step))?;
    let path = fs::read_link(running).map_err(step_failed(step))?;
    let is_same = fs::metadata(&path).is_ok_and(|file| (file.dev(), file.ino()) == (now.dev(), now.ino()));
    if is_same {
        mount_file(&path, target)
    } else {
        fs::copy(running, target).map(drop).map_err(step_failed(step))
    }
}

fn mount_file(source: &Path, target: &Path) -> Result<(), SetupError> {
    let step = format!("mount our program's {}", source.display());
    fs::File::create(target).map_err(step_failed(step.as_str()))?;
    let bind = Bind { source, target, read_only: true, devices: false, recursive: false, owners: None };
    sys::bind(bind).map_err(step_failed(step))
}

/// The shared libraries that a process has mapped, including its loader.
fn libraries(maps: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in maps.lines() {
        let Some(path) = line.find('/').map(|at| Path::new(&line[at..])) else { continue };
        let is_library = path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.ends_with(".so") || name.contains(".so.")
        });
        if is_library && !found.iter().any(|one| one == path) {
            found.push(path.to_owned());
        }
    }
    found
}

/// The shorter names of `libz.so.1.3`, by which it may be requested.
fn aliases(name: &str) -> Vec<&str> {
    let Some(start) = name.find(".so.").map(|at| at + ".so.".len()) else { return Vec::new() };
    name.match_indices('.').map(|(at, _)| at).filter(|at| *at > start).map(|at| &name[..at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_distinguished_from_programs_and_data() {
        let maps = "55-56 r--p 00 fe:00 1 /opt/bin/choir\n\
                    7f-80 r--p 00 fe:00 2 /usr/lib/libc.so.6\n7f-81 r-xp 00 fe:00 2 /usr/lib/libc.so.6\n\
                    7f-82 r--p 00 fe:00 3 /usr/lib/ld-linux-x86-64.so.2\n7f-83 rw-p 00 00:00 0 [heap]\n\
                    7f-84 r--s 00 fe:00 4 /var/data.db\n";
        assert_eq!(
            libraries(maps),
            ["/usr/lib/libc.so.6", "/usr/lib/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_library_has_aliases_for_its_versions() {
        assert_eq!(aliases("libz.so.1.3.1"), ["libz.so.1", "libz.so.1.3"]);
        assert_eq!(aliases("libc.so.6"), Vec::<&str>::new());
        assert_eq!(aliases("libfoo-1.2.so"), Vec::<&str>::new());
    }
}
