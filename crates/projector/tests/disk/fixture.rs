//! A workspace in a temporary folder, next to a folder `outside` that must stay untouched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use projector::scan::{Scan, SkipReason, scan};
use projector::workspace::{DiskError, Expected, Observed, ObservedKind, Workspace};
use shared_types::payload::file::FileNode;
use shared_types::{ContentRef, FilePath};

pub(crate) struct Home {
    base: PathBuf,
    pub(crate) workspace: Workspace,
}

impl Home {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = std::env::temp_dir().join(format!("choir-disk-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        Self::at(base)
    }

    pub(crate) fn at(base: PathBuf) -> Self {
        let root = base.join("root");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(base.join("outside")).unwrap();
        let workspace = Workspace::open(&root, &root.join(".choir/tmp")).unwrap();
        Self { base, workspace }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.base.join("outside")
    }

    pub(crate) fn on_disk(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file as another program would.
    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.on_disk(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Gives a file a second name: on many disks much quicker than a second file.
    pub(crate) fn second_name(&self, path: &str, name: &str) -> &Self {
        fs::hard_link(self.on_disk(path), self.on_disk(name)).unwrap();
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.on_disk(path)).unwrap();
        self
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) -> &Self {
        symlink(target, self.on_disk(path)).unwrap();
        self
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.on_disk(path)).unwrap()
    }

    pub(crate) fn place(&self, path: &str, text: &str, mode: u16) -> Result<Observed, DiskError> {
        let node = FileNode::file(ContentRef::of(text.as_bytes()), mode);
        self.workspace.place(&at(path), &node, Some(&mut text.as_bytes()), Expected::Anything)
    }

    pub(crate) fn place_link(&self, path: &str, target: &str) -> Result<Observed, DiskError> {
        self.workspace.place(
            &at(path),
            &FileNode::Symlink { target: target.into() },
            None,
            Expected::Anything,
        )
    }

    pub(crate) fn place_folder(&self, path: &str) -> Result<Observed, DiskError> {
        self.workspace.place(&at(path), &FileNode::Folder, None, Expected::Anything)
    }

    pub(crate) fn scan(&self) -> Scan {
        scan(&self.workspace, []).unwrap()
    }

    pub(crate) fn scan_knowing(&self, known: &[&str]) -> Scan {
        let known = known.iter().map(|path| at(path)).collect::<Vec<_>>();
        scan(&self.workspace, &known).unwrap()
    }

    /// Fails if a draft was left behind, or if anything was written outside.
    pub(crate) fn assert_clean(&self) {
        assert_eq!(names(&self.on_disk(".choir/tmp")), Vec::<String>::new(), "drafts were left behind");
        assert_eq!(names(&self.outside()), Vec::<String>::new(), "something was made outside");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

pub(crate) fn at(path: &str) -> FilePath {
    FilePath::parse(path).unwrap()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// The entries as text: a folder ends in `/`, a link shows its target.
pub(crate) fn listing(scan: &Scan) -> Vec<String> {
    let line = |(path, seen): &(FilePath, Observed)| match &seen.kind {
        ObservedKind::File { .. } => path.to_string(),
        ObservedKind::Folder => format!("{path}/"),
        ObservedKind::Symlink { target } => format!("{path} -> {target}"),
        ObservedKind::Other => format!("{path}?"),
    };
    scan.entries.iter().map(line).collect()
}

pub(crate) fn skips(scan: &Scan) -> Vec<(&str, SkipReason)> {
    scan.skipped.iter().map(|(path, reason)| (path.as_str(), *reason)).collect()
}
