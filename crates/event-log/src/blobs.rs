//! Large contents as files: `blobs/{first two digits}/{sha256}`.
//!
//! A blob gets its name only when it is complete and flushed: it is written to `tmp/`, flushed, renamed, and its folder
//! is flushed. Opening the log removes what a crash left in `tmp/`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Take, Write};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use shared_types::{ContentHash, ContentRef};

use crate::ContentError;
use crate::disk::{DiskError, at, make_private_folder, remove_file, sync_folder};
use crate::references::EarlyContents;
use crate::verified::VerifiedReader;

const CHUNK: usize = 256 * 1024;
/// How many files are remembered as checked.
const MOST_CHECKED: usize = 4096;

/// The blobs of one log.
#[derive(Debug)]
pub(crate) struct Blobs {
    root: PathBuf,
    temporary: PathBuf,
    next_temporary: AtomicU64,
    /// Folders in `blobs/` that this process knows to be durable.
    durable_folders: Box<[AtomicBool; 256]>,
    /// Files whose bytes were checked against their hash.
    checked: Mutex<HashMap<ContentHash, Identity>>,
}

/// Changes when a file is written: its inode, size, mtime and ctime.
#[derive(Debug, PartialEq, Eq)]
struct Identity([i64; 4]);

impl Identity {
    fn of(found: &fs::Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self([
            found.ino().cast_signed(),
            found.size().cast_signed(),
            nanoseconds(found.mtime(), found.mtime_nsec()),
            nanoseconds(found.ctime(), found.ctime_nsec()),
        ])
    }
}

impl Blobs {
    /// The blobs of a `.choir` folder. Does not touch the disk.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            root: folder.join("blobs"),
            temporary: folder.join("tmp"),
            next_temporary: AtomicU64::new(0),
            durable_folders: Box::new([const { AtomicBool::new(false) }; 256]),
            checked: Mutex::default(),
        }
    }

    /// Makes the folders and removes leftovers of a crash. Only the writer may call this.
    pub(crate) fn prepare(&self) -> Result<(), DiskError> {
        make_private_folder(&self.root)?;
        make_private_folder(&self.temporary)?;
        for entry in fs::read_dir(&self.temporary).map_err(at("list", &self.temporary))? {
            let path = entry.map_err(at("list", &self.temporary))?.path();
            if path.is_file() {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Stores bytes that an append will name. `start` holds what was read already.
    pub(crate) fn put(
        &self,
        start: Vec<u8>,
        rest: &mut dyn Read,
        expected: &EarlyContents,
    ) -> Result<ContentRef, ContentError> {
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = self.temporary.join(format!("blob-{number}"));
        let stored = self.write(&temporary, start, rest).and_then(|content| {
            // Registered before the check whether it is stored, so that a collection in between cannot remove it.
            expected.lock().insert(content.hash);
            self.settle(&temporary, content)?;
            Ok(content)
        });
        if stored.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        stored
    }

    fn write(&self, path: &Path, start: Vec<u8>, rest: &mut dyn Read) -> Result<ContentRef, ContentError> {
        let disk = |e| ContentError::storage(at("write", path)(e));
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(disk)?;
        let mut hasher = Sha256::new();
        let mut size = 0;
        let mut chunk = start;
        let mut count = chunk.len();
        while count > 0 {
            hasher.update(&chunk[..count]);
            file.write_all(&chunk[..count]).map_err(disk)?;
            size += count as u64;
            chunk.resize(CHUNK, 0);
            count = read_some(rest, &mut chunk).map_err(ContentError::from_read)?;
        }
        file.sync_all().map_err(disk)?;
        Ok(ContentRef { hash: ContentHash(hasher.finalize().into()), size })
    }

    /// Gives a flushed file its name, or drops it if the same blob is stored already.
    fn settle(&self, temporary: &Path, content: ContentRef) -> Result<(), ContentError> {
        let path = self.path(&content.hash);
        let folder = self.folder(&content.hash).map_err(ContentError::storage)?;
        let here = fs::metadata(&path).is_ok_and(|found| found.len() == content.size);
        let settled = if here { fs::remove_file(temporary) } else { fs::rename(temporary, &path) };
        settled.map_err(at("settle", &path)).map_err(ContentError::storage)?;
        // An earlier writer may have crashed before it flushed the folder, so it is flushed in both cases.
        sync_folder(&folder).map_err(ContentError::storage)
    }

    /// The folder of a blob, made durable first.
    fn folder(&self, hash: &ContentHash) -> Result<PathBuf, DiskError> {
        let first = hash.as_bytes()[0];
        let folder = self.root.join(format!("{first:02x}"));
        let durable = &self.durable_folders[usize::from(first)];
        if !durable.load(Ordering::Acquire) {
            make_private_folder(&folder)?;
            sync_folder(&self.root)?;
            durable.store(true, Ordering::Release);
        }
        Ok(folder)
    }

    fn path(&self, hash: &ContentHash) -> PathBuf {
        self.root.join(format!("{:02x}", hash.as_bytes()[0])).join(hash.to_string())
    }

    pub(crate) fn has(&self, hash: &ContentHash) -> Result<bool, ContentError> {
        let path = self.path(hash);
        path.try_exists().map_err(|e| ContentError::storage(at("look for", &path)(e)))
    }

    /// A checking reader, if the blob exists.
    pub(crate) fn open(&self, hash: &ContentHash) -> Result<Option<VerifiedReader<File>>, ContentError> {
        let path = self.path(hash);
        let opened = File::open(&path).and_then(|file| file.metadata().map(|found| (file, found.len())));
        match opened {
            Ok((file, size)) => Ok(Some(VerifiedReader::new(file, size, *hash))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(ContentError::storage(at("open", &path)(e))),
        }
    }

    /// A range of a blob, if it exists. The whole blob is checked first, once per version of its file.
    pub(crate) fn open_range(
        &self,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<Option<Take<File>>, ContentError> {
        let path = self.path(hash);
        let disk = |e| ContentError::storage(at("read", &path)(e));
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(disk(e)),
        };
        let found = file.metadata().map_err(disk)?;
        let identity = Identity::of(&found);
        if self.checked().get(hash) != Some(&identity) {
            let mut whole = VerifiedReader::new(&file, found.len(), *hash);
            io::copy(&mut whole, &mut io::sink()).map_err(ContentError::from_read)?;
            let mut checked = self.checked();
            if checked.len() >= MOST_CHECKED {
                checked.clear();
            }
            checked.insert(*hash, identity);
        }
        file.seek(SeekFrom::Start(range.start)).map_err(disk)?;
        Ok(Some(file.take(range.end.saturating_sub(range.start))))
    }

    fn checked(&self) -> MutexGuard<'_, HashMap<ContentHash, Identity>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn size(&self, hash: &ContentHash) -> Result<Option<u64>, ContentError> {
        let path = self.path(hash);
        match fs::metadata(&path) {
            Ok(found) => Ok(Some(found.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(ContentError::storage(at("measure", &path)(e))),
        }
    }

    /// Removes a blob. Returns whether it existed.
    pub(crate) fn remove(&self, hash: &ContentHash) -> Result<bool, ContentError> {
        let path = self.path(hash);
        let removed = remove_file(&path).map_err(ContentError::storage)?;
        if let (true, Some(folder)) = (removed, path.parent()) {
            sync_folder(folder).map_err(ContentError::storage)?;
        }
        Ok(removed)
    }

    pub(crate) fn each(&self, visit: &mut dyn FnMut(ContentHash, u64)) -> Result<(), ContentError> {
        for folder in entries(&self.root)? {
            if !folder.is_dir() {
                continue;
            }
            for path in entries(&folder)? {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if let Ok(hash) = ContentHash::parse(name) {
                    let found =
                        fs::metadata(&path).map_err(|e| ContentError::storage(at("measure", &path)(e)))?;
                    visit(hash, found.len());
                }
            }
        }
        Ok(())
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ContentError> {
    let listed = fs::read_dir(folder).and_then(|all| all.map(|entry| entry.map(|e| e.path())).collect());
    match listed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(|e| ContentError::storage(at("list", folder)(e))),
    }
}

fn read_some(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
