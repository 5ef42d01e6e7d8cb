//! The folder of the repository: creates it, and removes the leftovers of a killed process.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::CheckpointError;
use super::git::{Git, GitProcess, StdoutMode};

pub(super) const NAME: &str = "checkpoints.git";
const NEW_NAME: &str = "checkpoints.git.new";
const OWNER: &str = "choir-owner";
/// The complete configuration. Anything else in the file is not ours and is overwritten.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";
/// How long a git process whose parent was killed may take to end and release its locks.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(2);

/// Creates the repository if it is missing. It is complete before it is renamed to its final name.
pub(super) fn create(git: &Git, state_dir: &Path) -> Result<(), CheckpointError> {
    let failed = CheckpointError::io;
    match git.dir().symlink_metadata() {
        Ok(meta) if meta.is_dir() => return write_config(git.dir()).map_err(failed("open the checkpoints")),
        Ok(_) => {
            let detail = "it is not a folder".to_owned();
            return Err(CheckpointError::Damaged { path: git.dir().to_owned(), detail });
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed("open the checkpoints")(error)),
    }
    let action = "create the repository of the checkpoints";
    let draft = state_dir.join(NEW_NAME);
    match fs::remove_dir_all(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(action)(error)),
        Ok(()) | Err(_) => {}
    }
    fs::create_dir_all(&draft).map_err(failed(action))?;
    fs::set_permissions(&draft, Permissions::from_mode(0o700)).map_err(failed(action))?;
    let args = ["init", "--bare", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main"];
    let made =
        GitProcess::start(action, git.command_in(&draft, &args), StdoutMode::Collected)?.finish(action)?;
    if !made.success() {
        return Err(made.failure(action));
    }
    write_config(&draft).map_err(failed(action))?;
    match fs::rename(&draft, git.dir()) {
        // Another process created it first.
        Err(_) if git.dir().is_dir() => fs::remove_dir_all(&draft),
        other => other.and_then(|()| File::open(state_dir)?.sync_all()),
    }
    .map_err(failed(action))
}

/// Locks the repository for as long as this process has it open, and removes leftovers if no other process has it
/// open.
pub(super) fn lock_owner(dir: &Path) -> Result<Option<File>, CheckpointError> {
    let action = "open the checkpoints";
    let owner = File::options().create(true).append(true).open(dir.join(OWNER));
    let owner = owner.map_err(CheckpointError::io(action))?;
    match owner.try_lock() {
        Ok(()) => {
            remove_leftovers(dir).map_err(CheckpointError::io(action))?;
            Ok(Some(owner))
        }
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(CheckpointError::io(action)(error)),
    }
}

pub(super) fn count_packs(dir: &Path) -> Result<usize, CheckpointError> {
    let files = list(&dir.join("objects/pack")).map_err(CheckpointError::io("count the packs"))?;
    Ok(files.iter().filter(|file| file.extension().is_some_and(|e| e == "pack")).count())
}

/// Git writes its own report when an import fails; our error already says the same.
pub(super) fn remove_crash_reports(dir: &Path) {
    for file in list(dir).unwrap_or_default() {
        if named(&file, |name| name.starts_with("fast_import_crash_")) {
            let _ = fs::remove_file(file);
        }
    }
}

fn write_config(dir: &Path) -> io::Result<()> {
    let config = dir.join("config");
    if fs::read(&config).is_ok_and(|bytes| bytes == CONFIG.as_bytes()) {
        return Ok(());
    }
    let draft = dir.join("config.new");
    fs::write(&draft, CONFIG)?;
    File::open(&draft)?.sync_all()?;
    fs::rename(draft, config)
}

/// Removes locks and half-written packs of a killed git process. Otherwise a stale lock would make every later
/// checkpoint fail.
fn remove_leftovers(dir: &Path) -> io::Result<()> {
    remove_crash_reports(dir);
    let start = Instant::now();
    while !leftovers(dir)?.is_empty() && start.elapsed() < ORPHAN_TIMEOUT {
        thread::sleep(Duration::from_millis(50));
    }
    for file in leftovers(dir)? {
        match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn leftovers(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = list(dir)?;
    found.extend(list(&dir.join("objects/info"))?);
    found.extend(list(&dir.join("refs/heads"))?);
    found.extend(list(&dir.join("refs/backups"))?);
    found.retain(|file| named(file, |name| name.ends_with(".lock")));
    let packs = list(&dir.join("objects/pack"))?;
    let unfinished = |name: &str| {
        name.starts_with("tmp_")
            || name.starts_with(".tmp-")
            || name.ends_with(".keep")
            || name.ends_with(".lock")
    };
    found.extend(packs.into_iter().filter(|file| named(file, unfinished)));
    Ok(found)
}

fn named(file: &Path, test: impl Fn(&str) -> bool) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(test)
}

fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
