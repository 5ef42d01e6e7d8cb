//! A workspace folder, a policy and a backend to run commands with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolation::{Access, Backend, Cell, Command, Container, Exit, Jail, Mount, Policy, Status, Stream};
use tempfile::TempDir;

/// Runs the same test with every backend.
macro_rules! with_every_backend {
    ($($behaviour:ident),* $(,)?) => {
        mod jail {
            $(#[test] fn $behaviour() { super::$behaviour(crate::fixture::Fixture::jail()); })*
        }
        mod container {
            $(#[test] fn $behaviour() {
                for fixture in crate::fixture::Fixture::containers() {
                    super::$behaviour(fixture);
                }
            })*
        }
    };
}
pub(crate) use with_every_backend;

pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) policy: Policy,
    pub(crate) backend: Arc<dyn Backend>,
}

/// A finished command with its output.
pub(crate) struct Finished {
    pub(crate) exit: Exit,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Fixture {
    pub(crate) fn jail() -> Self {
        Self::with(Arc::new(Jail::new(env!("CARGO_BIN_EXE_choir-cell"))))
    }

    /// One for each OCI runtime of this machine; prints a notice if there is none.
    pub(crate) fn containers() -> Vec<Self> {
        let runtimes = Container::runtimes();
        if runtimes.is_empty() {
            eprintln!("skipped: no OCI runtime");
        }
        let container = |path| Container::new(env!("CARGO_BIN_EXE_choir-cell")).with_runtime(path);
        runtimes.into_iter().map(|path| Self::with(Arc::new(container(path)))).collect()
    }

    /// The one for the default runtime.
    pub(crate) fn container() -> Option<Self> {
        Self::containers().into_iter().next()
    }

    fn with(backend: Arc<dyn Backend>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["workspace", "cell"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let cell = folder.path().join("cell");
        let access = Access::Layered { upper: cell.join("upper"), work: cell.join("work") };
        let workspace = Mount::workspace(folder.path().join("workspace"), access);
        let policy = Policy::for_workspace(Mount { hidden: vec![".choir".into()], ..workspace }, "ada");
        Self { folder, policy, backend }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.folder.path().join("cell/upper")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn start(&self) -> Arc<dyn Cell> {
        self.backend.start(&self.policy, &self.folder.path().join("cell")).unwrap()
    }

    pub(crate) fn sh(&self, script: &str) -> Finished {
        run(&*self.start(), &Command::new(["/bin/sh", "-c", script]))
    }
}

pub(crate) fn run(cell: &dyn Cell, command: &Command) -> Finished {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = cell
        .exec(command, &mut |stream, bytes| match stream {
            Stream::Out => out.extend_from_slice(bytes),
            Stream::Err => err.extend_from_slice(bytes),
        })
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Finished { exit, out: text(out), err: text(err) }
}

impl Finished {
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.exit.status, Status::Exited(0), "out: {}\nerr: {}", self.out, self.err);
        self.out.trim_end()
    }
}

pub(crate) fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
