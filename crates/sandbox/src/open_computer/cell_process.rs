//! A shell in a cell of its own, over the workspace itself. The cell ends with the shell, and the shell with the cell.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event_log::EventLog;
use isolation::{Access, Cell, Command, Mount, PtyControl, Status};
use tempfile::TempDir;

use super::process::{Process, ProcessControl, Size};
use super::shell_process::BASHRC;
use computer::Computer;
use computer::error::{ComputerError, ErrorCode};

/// The path of bash's startup file in the cell.
const SHOWN_AT: &str = "/choir";
const BASHRC_NAME: &str = "bashrc";
/// A prompt that shows that this is a cell.
const PROMPT: &str = "PS1='\\[\\e[2m\\]cell\\[\\e[0m\\] \\w \\$ '\n";

/// Starts bash, or the plain shell where there is none.
pub(super) fn start(computer: &Computer, size: Size) -> Result<Process, ComputerError> {
    let cells = computer.paths.state.join("cells");
    std::fs::create_dir_all(&cells)?;
    let scratch = tempfile::Builder::new().prefix("terminal-").tempdir_in(cells)?;
    let shown = show_bashrc(scratch.path())?;
    let rest = scratch.path().join("cell");
    std::fs::create_dir(&rest)?;
    let owner = computer.log().user().to_string();
    let workspace = computer.paths.workspace.clone();
    let cell = computer.cells().start_terminal(&owner, workspace, shown, &rest).map_err(no_cell)?;
    let mut command = shell_command();
    command.environment.push(("TERM".into(), "xterm-256color".into()));
    command.environment.push(("COLORTERM".into(), "truecolor".into()));
    let pty = cell.pty(&command, size.into()).map_err(|e| {
        cell.stop();
        ComputerError::new(ErrorCode::Failed, format!("no shell could be started in the cell: {e}"))
    })?;
    let control: Arc<dyn PtyControl> = Arc::from(pty.control);
    let inside = CellControl { control: Arc::clone(&control), cell: Arc::clone(&cell) };
    let wait = Box::new(move || {
        let status = control.wait();
        cell.stop();
        remove(scratch);
        match status {
            Status::Exited(code) => Some(code),
            Status::Signaled(_) | Status::Limited(_) | Status::Stopped => None,
        }
    });
    Ok(Process { output: pty.output, input: pty.input, control: Arc::new(inside), wait })
}

/// Explains why no cell can be started.
fn no_cell(error: isolation::StartError) -> ComputerError {
    let says_so = matches!(error, isolation::StartError::Unprotected(_));
    let mut failure = ComputerError::from(error);
    if failure.code == ErrorCode::Failed {
        failure.code = ErrorCode::Refused;
    }
    if !says_so {
        failure.message.push_str(". Commands never run without isolation.");
    }
    failure.message.push_str(" `choir doctor` says what this machine can do.");
    failure
}

fn shell_command() -> Command {
    if Path::new("/bin/bash").exists() {
        Command::new(["/bin/bash", "--rcfile", &format!("{SHOWN_AT}/{BASHRC_NAME}")])
    } else {
        Command::new(["/bin/sh"])
    }
}

/// A folder with bash's startup file, shown read-only in the cell.
fn show_bashrc(scratch: &Path) -> io::Result<Mount> {
    use std::os::unix::fs::PermissionsExt;
    let source: PathBuf = scratch.join("shown");
    std::fs::create_dir(&source)?;
    let file = source.join(BASHRC_NAME);
    std::fs::write(&file, format!("{BASHRC}\n{PROMPT}"))?;
    // In the cell it is read by another user.
    std::fs::set_permissions(&source, std::fs::Permissions::from_mode(0o755))?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
    Ok(Mount {
        source,
        target: SHOWN_AT.into(),
        access: Access::ReadOnly,
        hidden: Vec::new(),
        covered: Vec::new(),
    })
}

fn remove(scratch: TempDir) {
    let path = scratch.keep();
    if let Err(error) = isolation::layer::remove(&path) {
        tracing::warn!(%error, "the files of a terminal's cell could not be removed");
    }
}

/// Controls a shell in a cell.
struct CellControl {
    control: Arc<dyn PtyControl>,
    cell: Arc<dyn Cell>,
}

impl ProcessControl for CellControl {
    fn resize(&self, size: Size) -> io::Result<()> {
        self.control.resize(size.into())
    }

    fn end(&self) {
        self.cell.stop();
    }
}

impl From<Size> for isolation::Size {
    fn from(Size { columns, rows }: Size) -> Self {
        Self { columns, rows }
    }
}
