//! Reads and writes the master key: `master.key` in the data folder, or `CHOIR_MASTER_KEY`.
//!
//! During a rotation `master.key.next` exists beside it. The fingerprint in the store decides which of the two is the
//! right one, so after a crash at any instant the right key is on disk and can be identified. The functions that
//! write ([`finish_rotation`], [`create`], [`put_next`]) are called under the store's write lock, so no two processes
//! write at once.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::entries::SealState;
use super::error::MasterKeyError;
use super::master_key::{Fingerprint, MasterKey};

const KEY_FILE: &str = "master.key";
const NEXT_FILE: &str = "master.key.next";
const VARIABLE: &str = "CHOIR_MASTER_KEY";
const NEXT_VARIABLE: &str = "CHOIR_NEXT_MASTER_KEY";
/// More than the longest valid key file.
const MAX_FILE_BYTES: u64 = 4096;

/// Where the master key comes from.
#[derive(Clone)]
pub enum MasterKeySource {
    /// `master.key` in this folder, created when it is first needed.
    Folder(PathBuf),
    /// The key itself, from the environment.
    Value(Zeroizing<String>),
}

impl fmt::Debug for MasterKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => f.debug_tuple("Folder").field(folder).finish(),
            Self::Value(_) => f.write_str("Value(…)"),
        }
    }
}

impl MasterKeySource {
    /// `CHOIR_MASTER_KEY` if it is set and not empty, else the data folder.
    pub fn from_environment(data: &Path) -> Self {
        match variable(VARIABLE) {
            Some(text) => Self::Value(text),
            None => Self::Folder(data.to_owned()),
        }
    }
}

/// The new key for a rotation, from `CHOIR_NEXT_MASTER_KEY`.
pub fn next_from_environment() -> Option<Zeroizing<String>> {
    variable(NEXT_VARIABLE)
}

fn variable(name: &str) -> Option<Zeroizing<String>> {
    // A value that is not UTF-8 fails later, when it is parsed as a key.
    let text = Zeroizing::new(std::env::var_os(name)?.to_string_lossy().into_owned());
    (!text.trim().is_empty()).then_some(text)
}

pub(super) fn parse_value(text: &str) -> Result<MasterKey, MasterKeyError> {
    MasterKey::parse(text).ok_or_else(|| MasterKeyError::Malformed(VARIABLE.into()))
}

pub(super) fn parse_next_value(text: &str) -> Result<MasterKey, MasterKeyError> {
    MasterKey::parse(text).ok_or_else(|| MasterKeyError::Malformed(NEXT_VARIABLE.into()))
}

/// The key with this fingerprint, from either file.
pub(super) fn find(folder: &Path, wanted: &Fingerprint) -> Result<MasterKey, MasterKeyError> {
    let current = read(folder, KEY_FILE);
    let next = read(folder, NEXT_FILE);
    for found in [&current, &next] {
        if let Ok(Some(master)) = found
            && master.fingerprint() == *wanted
        {
            return Ok(master.clone());
        }
    }
    match current? {
        Some(_) => Err(wrong(folder)),
        None => Err(MasterKeyError::Missing(folder.join(KEY_FILE))),
    }
}

pub(super) fn current(folder: &Path) -> Result<Option<MasterKey>, MasterKeyError> {
    read(folder, KEY_FILE)
}

pub(super) fn missing(folder: &Path) -> MasterKeyError {
    MasterKeyError::Missing(folder.join(KEY_FILE))
}

pub(super) fn wrong(folder: &Path) -> MasterKeyError {
    MasterKeyError::Wrong(folder.join(KEY_FILE).display().to_string())
}

pub(super) fn wrong_value() -> MasterKeyError {
    MasterKeyError::Wrong(VARIABLE.into())
}

/// Whether a rotation was interrupted.
pub(super) fn is_rotation_unfinished(folder: &Path) -> bool {
    folder.join(NEXT_FILE).symlink_metadata().is_ok()
}

/// Finishes an interrupted rotation. If the store was sealed with the next key, that key becomes the current one. The
/// next key is deleted only if the current one is the right one, or if nothing is sealed.
pub(super) fn finish_rotation(folder: &Path, seal_state: &SealState) -> Result<(), MasterKeyError> {
    let next = match read(folder, NEXT_FILE) {
        Ok(None) => return Ok(()),
        Ok(Some(master)) => Some(master),
        // The crash happened while the file was written, so nothing was sealed with this key.
        Err(MasterKeyError::Malformed(_)) => None,
        Err(error) => return Err(error),
    };
    let is_right = |master: MasterKey| seal_state.fingerprint == Some(master.fingerprint());
    if next.is_some_and(is_right) {
        return promote(folder);
    }
    if seal_state.empty || read(folder, KEY_FILE)?.is_some_and(is_right) {
        let path = folder.join(NEXT_FILE);
        fs::remove_file(&path).map_err(failed(&path))?;
        return sync(folder);
    }
    Ok(())
}

/// Creates the first key.
pub(super) fn create(folder: &Path) -> Result<MasterKey, MasterKeyError> {
    let master = MasterKey::generate()?;
    put_next(folder, &master)?;
    promote(folder)?;
    Ok(master)
}

/// Writes and syncs the next key. Call it before anything is sealed with that key.
pub(super) fn put_next(folder: &Path, master: &MasterKey) -> Result<(), MasterKeyError> {
    let path = folder.join(NEXT_FILE);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(master.to_hex().as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    write().map_err(failed(&path))?;
    sync(folder)
}

fn promote(folder: &Path) -> Result<(), MasterKeyError> {
    let path = folder.join(KEY_FILE);
    fs::rename(folder.join(NEXT_FILE), &path).map_err(failed(&path))?;
    sync(folder)
}

fn sync(folder: &Path) -> Result<(), MasterKeyError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> MasterKeyError {
    move |source| MasterKeyError::Io { path: path.to_owned(), source }
}

/// Reads a key file. Returns `None` if it does not exist. Permissions are checked on the open file, so the file
/// cannot be replaced between check and read.
fn read(folder: &Path, name: &str) -> Result<Option<MasterKey>, MasterKeyError> {
    let path = folder.join(name);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(MasterKeyError::Io { path, source }),
    };
    let meta = file.metadata().map_err(failed(&path))?;
    let mode = meta.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(MasterKeyError::InsecurePermissions { path, mode });
    }
    let uid = meta.uid();
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return Err(MasterKeyError::WrongOwner { path, uid });
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE_BYTES as usize));
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed(&path))?;
    let master = std::str::from_utf8(&bytes).ok().and_then(MasterKey::parse);
    master.map(Some).ok_or_else(|| MasterKeyError::Malformed(path.display().to_string()))
}
