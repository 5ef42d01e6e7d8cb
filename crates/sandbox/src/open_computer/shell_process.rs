//! The person's own shell, on this machine. Bash is started with marks between its commands (`shell_process/bashrc`),
//! without changing the person's files; other shells have their own marks or none.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use portable_pty::{ChildKiller, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::process::{Process, ProcessControl, Size};
use computer::paths::ComputerPaths;

/// What bash reads at its start in place of `~/.bashrc`: the person's files, then the marks.
pub(crate) const BASHRC: &str = include_str!("shell_process/bashrc");
const BASHRC_NAME: &str = "bashrc";

/// Starts the shell in the workspace.
pub(super) fn start(paths: &ComputerPaths, size: Size) -> io::Result<Process> {
    let pair = native_pty_system().openpty(pty_size(size)).map_err(other)?;
    let mut command = command(paths);
    command.cwd(&paths.workspace);
    command.env("TERM", "xterm-256color");
    command.env("COLORTERM", "truecolor");
    // The shell must not inherit the configuration of this server.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CHOIR_") {
            command.env_remove(name);
        }
    }
    let mut child = pair.slave.spawn_command(command).map_err(other)?;
    drop(pair.slave);
    let output = pair.master.try_clone_reader().map_err(other)?;
    let input = pair.master.take_writer().map_err(other)?;
    let control =
        Arc::new(LocalControl { killer: Mutex::new(child.clone_killer()), master: Mutex::new(pair.master) });
    let wait = Box::new(move || child.wait().ok().and_then(|status| i32::try_from(status.exit_code()).ok()));
    Ok(Process { output, input, control, wait })
}

fn command(paths: &ComputerPaths) -> CommandBuilder {
    let login = CommandBuilder::new_default_prog();
    let shell = login.get_shell();
    if Path::new(&shell).file_name() != Some(OsStr::new("bash")) {
        return login;
    }
    match write_bashrc(&paths.state) {
        Ok(path) => {
            let mut command = CommandBuilder::new(shell);
            command.arg("--rcfile");
            command.arg(path);
            command
        }
        Err(error) => {
            tracing::warn!(%error, "bash starts without marks between its commands");
            login
        }
    }
}

fn write_bashrc(state: &Path) -> io::Result<PathBuf> {
    let path = state.join(BASHRC_NAME);
    if !std::fs::read(&path).is_ok_and(|there| there == BASHRC.as_bytes()) {
        std::fs::write(&path, BASHRC)?;
    }
    Ok(path)
}

/// A pseudo terminal and the process on it.
struct LocalControl {
    master: Mutex<Box<dyn MasterPty + Send>>,
    killer: Mutex<Box<dyn ChildKiller + Send + Sync>>,
}

impl ProcessControl for LocalControl {
    fn resize(&self, size: Size) -> io::Result<()> {
        self.master.lock().unwrap_or_else(PoisonError::into_inner).resize(pty_size(size)).map_err(other)
    }

    fn end(&self) {
        let _ = self.killer.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }
}

fn pty_size(Size { columns, rows }: Size) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}
