//! Where the master key comes from: `master.key` in the data folder, or `CHOIR_MASTER_KEY`.
//!
//! During a rotation there is `master.key.next` beside it. Which of the two is right is said by the store alone, by
//! its fingerprint, so a crash at any instant leaves the right key on the disk and known as such. Whatever writes
//! here holds the store's write lock ([`settle`], [`create`], [`put_next`]), so no two processes do it at once.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::entries::Standing;
use super::error::Locked;
use super::master::{Fingerprint, Master};

const KEY: &str = "master.key";
const NEXT: &str = "master.key.next";
const VARIABLE: &str = "CHOIR_MASTER_KEY";
const NEXT_VARIABLE: &str = "CHOIR_NEXT_MASTER_KEY";
/// Longer than every form of a key.
const AT_MOST: u64 = 4096;

/// Where the master key comes from.
#[derive(Clone)]
pub enum KeySource {
    /// `master.key` in this folder, made when it is first needed.
    Folder(PathBuf),
    /// Given by whoever starts the process.
    Given(Zeroizing<String>),
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => f.debug_tuple("Folder").field(folder).finish(),
            Self::Given(_) => f.write_str("Given(…)"),
        }
    }
}

impl KeySource {
    /// `CHOIR_MASTER_KEY` if it says anything, else the folder of the data.
    pub fn from_environment(data: &Path) -> Self {
        match variable(VARIABLE) {
            Some(text) => Self::Given(text),
            None => Self::Folder(data.to_owned()),
        }
    }
}

/// The key that a rotation is to end with, where the person wants to say so.
pub fn next_from_environment() -> Option<Zeroizing<String>> {
    variable(NEXT_VARIABLE)
}

fn variable(name: &str) -> Option<Zeroizing<String>> {
    // What is not UTF-8 is no key either, and is told so when it is read as one.
    let text = Zeroizing::new(std::env::var_os(name)?.to_string_lossy().into_owned());
    (!text.trim().is_empty()).then_some(text)
}

pub(super) fn given(text: &str) -> Result<Master, Locked> {
    Master::parse(text).ok_or_else(|| Locked::NotAKey(VARIABLE.into()))
}

pub(super) fn given_next(text: &str) -> Result<Master, Locked> {
    Master::parse(text).ok_or_else(|| Locked::NotAKey(NEXT_VARIABLE.into()))
}

/// The key of a fingerprint, from either file.
pub(super) fn find(folder: &Path, wanted: &Fingerprint) -> Result<Master, Locked> {
    let current = read(folder, KEY);
    let next = read(folder, NEXT);
    for found in [&current, &next] {
        if let Ok(Some(master)) = found
            && master.fingerprint() == *wanted
        {
            return Ok(master.clone());
        }
    }
    match current? {
        Some(_) => Err(wrong(folder)),
        None => Err(Locked::NoMaster(folder.join(KEY))),
    }
}

pub(super) fn current(folder: &Path) -> Result<Option<Master>, Locked> {
    read(folder, KEY)
}

pub(super) fn missing(folder: &Path) -> Locked {
    Locked::NoMaster(folder.join(KEY))
}

pub(super) fn wrong(folder: &Path) -> Locked {
    Locked::WrongMaster(folder.join(KEY).display().to_string())
}

pub(super) fn wrong_given() -> Locked {
    Locked::WrongMaster(VARIABLE.into())
}

/// Whether a rotation was begun and not settled.
pub(super) fn is_unsettled(folder: &Path) -> bool {
    folder.join(NEXT).symlink_metadata().is_ok()
}

/// Ends a rotation that a crash cut off: the next key takes its place if the store says that all is sealed with it,
/// and is dropped only where the present one is known to be right, or nothing is sealed.
pub(super) fn settle(folder: &Path, standing: &Standing) -> Result<(), Locked> {
    let next = match read(folder, NEXT) {
        Ok(None) => return Ok(()),
        Ok(Some(master)) => Some(master),
        // The crash came while it was written, and so before anything was sealed with it.
        Err(Locked::NotAKey(_)) => None,
        Err(locked) => return Err(locked),
    };
    let is_right = |master: Master| standing.fingerprint == Some(master.fingerprint());
    if next.is_some_and(is_right) {
        return promote(folder);
    }
    if standing.empty || read(folder, KEY)?.is_some_and(is_right) {
        let path = folder.join(NEXT);
        fs::remove_file(&path).map_err(failed(&path))?;
        return sync(folder);
    }
    Ok(())
}

/// Makes the first key.
pub(super) fn create(folder: &Path) -> Result<Master, Locked> {
    let master = Master::generate()?;
    put_next(folder, &master)?;
    promote(folder)?;
    Ok(master)
}

/// Writes the next key, durably, before anything is sealed with it.
pub(super) fn put_next(folder: &Path, master: &Master) -> Result<(), Locked> {
    let path = folder.join(NEXT);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(master.to_hex().as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    write().map_err(failed(&path))?;
    sync(folder)
}

fn promote(folder: &Path) -> Result<(), Locked> {
    let path = folder.join(KEY);
    fs::rename(folder.join(NEXT), &path).map_err(failed(&path))?;
    sync(folder)
}

fn sync(folder: &Path) -> Result<(), Locked> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Locked {
    move |source| Locked::File { path: path.to_owned(), source }
}

/// Reads a key, if there is one. Its rights are those of the file that was opened, so it cannot be changed between.
fn read(folder: &Path, name: &str) -> Result<Option<Master>, Locked> {
    let path = folder.join(name);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Locked::File { path, source }),
    };
    let meta = file.metadata().map_err(failed(&path))?;
    let mode = meta.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Locked::Exposed { path, mode });
    }
    let uid = meta.uid();
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return Err(Locked::Foreign { path, uid });
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(AT_MOST as usize));
    file.take(AT_MOST).read_to_end(&mut bytes).map_err(failed(&path))?;
    let master = std::str::from_utf8(&bytes).ok().and_then(Master::parse);
    master.map(Some).ok_or_else(|| Locked::NotAKey(path.display().to_string()))
}
