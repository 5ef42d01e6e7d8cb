//! A computer in a temporary folder, whose commands really run in cells.

use std::io::Read;
use std::path::PathBuf;

use computer::Computer;
use computer::error::ComputerError;
use computer::paths::ComputerPaths;
use computer::protocol::{Answer, ChangeResult, Choices, Envelope, Request};
use shared_types::payload::tool::ToolStatus;
use shared_types::wire::{CellCommand, CommandResult};
use shared_types::{OpId, UserId};
use tempfile::TempDir;

pub(crate) struct TestComputer {
    pub(crate) folder: TempDir,
    pub(crate) inner: Option<Computer>,
}

impl TestComputer {
    pub(crate) fn new() -> Self {
        isolation::set_launcher(env!("CARGO_BIN_EXE_sandbox"));
        let folder = tempfile::tempdir().unwrap();
        let paths = ComputerPaths::at(folder.path());
        let (computer, _) =
            Computer::create(&paths, UserId::parse("ada").unwrap(), "Ada", &|_, _, _| ()).unwrap();
        Self { folder, inner: Some(computer) }
    }

    pub(crate) fn inner(&self) -> &Computer {
        self.inner.as_ref().unwrap()
    }

    /// Closes the computer and opens it again, as after a restart.
    pub(crate) fn reopen(&mut self) {
        self.inner = None;
        self.inner = Some(Computer::open(&ComputerPaths::at(self.folder.path())).unwrap());
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        let mut text = String::new();
        std::fs::File::open(self.path(path)).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        std::fs::symlink_metadata(self.path(path)).is_ok()
    }

    /// A file that is in the log.
    pub(crate) fn write(&self, path: &str, text: &str) -> ChangeResult {
        let path = shared_types::FilePath::parse(path).unwrap();
        let request = Request::Write { path, mode: None, base: kernel::Base::Any };
        self.ask(request, text.as_bytes()).into_done().unwrap()
    }

    pub(crate) fn ask(&self, request: Request, mut body: &[u8]) -> Answer {
        self.inner().handle(&Envelope::new(request), &mut body, &|_, _, _| ())
    }

    pub(crate) fn run(&self, command: CellCommand) -> Result<CommandResult, ComputerError> {
        let answer = self.ask(Request::RunCommand(command), &[]);
        if let Answer::CommandResult(ran) = answer { Ok(*ran) } else { Err(answer.into_done().unwrap_err()) }
    }

    /// Runs a line of shell that must end well.
    pub(crate) fn sh(&self, script: &str) -> CommandResult {
        let ran = self.run(shell(script)).unwrap();
        assert_eq!(ran.status, Some(ToolStatus::Exited { code: 0 }), "{}", self.output(&ran));
        ran
    }

    pub(crate) fn output(&self, ran: &CommandResult) -> String {
        let Some(output) = ran.report.output else { return String::new() };
        let bytes = event_log::read_content(&**self.inner().log(), &output.hash).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn undo(&self, op: OpId) -> ChangeResult {
        let choices = Choices::default();
        self.ask(Request::Undo { target: Some(op.to_string()), choices, preview: false }, &[])
            .into_done()
            .unwrap()
    }

    pub(crate) fn redo(&self, op: OpId) -> ChangeResult {
        let choices = Choices::default();
        self.ask(Request::Redo { target: Some(op.to_string()), choices, preview: false }, &[])
            .into_done()
            .unwrap()
    }

    /// A hash of all that is in the log's view of the files.
    pub(crate) fn tree(&self) -> String {
        let roots = self.inner().writer().inspect(|view| view.roots()).unwrap();
        roots.into_iter().find(|(name, _)| *name == "files").unwrap().1.to_string()
    }

    /// The workspace is what the log says, and nothing of a command is left over.
    pub(crate) fn assert_settled(&self) {
        let Answer::Status(status) = self.ask(Request::Status, &[]) else { panic!("no status") };
        assert_eq!(status.captured, 0, "the disk differs from the log");
        assert_eq!(status.blocked, Vec::<String>::new());
        let left: Vec<_> =
            std::fs::read_dir(self.path(".choir/cells")).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

pub(crate) fn shell(script: &str) -> CellCommand {
    CellCommand { argv: vec!["/bin/sh".into(), "-c".into(), script.into()], ..CellCommand::default() }
}
