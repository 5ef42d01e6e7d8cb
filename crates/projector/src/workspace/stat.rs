//! What is at a path, as far as the file system reports it without reading content.

use rustix::fs::FileType;
use shared_types::payload::file::FileNode;

/// The fields that a stat cache compares: if all are equal, the content is too (see `scan::stat_cache`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stat {
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub ino: u64,
    /// The whole `st_mode`: kind and permission bits.
    pub mode: u32,
}

impl Stat {
    pub(crate) fn of(raw: &rustix::fs::Stat) -> Self {
        Self {
            size: raw.st_size as u64,
            mtime_ns: nanoseconds(raw.st_mtime, raw.st_mtime_nsec as i64),
            ctime_ns: nanoseconds(raw.st_ctime, raw.st_ctime_nsec as i64),
            ino: raw.st_ino,
            mode: raw.st_mode,
        }
    }

    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// The bits that events record.
    pub fn permissions(&self) -> u16 {
        (self.mode & 0o777) as u16
    }

    /// Whether it is the same file, perhaps renamed: a rename changes only the ctime.
    pub(crate) fn is_same_but_moved(&self, now: &Self) -> bool {
        Self { ctime_ns: now.ctime_ns, ..*self } == *now
    }

    /// The kind, unless it is a link, whose target must be read from the disk.
    pub(crate) fn kind(&self) -> ObservedKind {
        match self.file_type() {
            FileType::RegularFile => ObservedKind::File { size: self.size, mode: self.permissions() },
            FileType::Directory => ObservedKind::Folder,
            FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => ObservedKind::Other,
        }
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// The kind of node at a path on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedKind {
    File {
        size: u64,
        mode: u16,
    },
    Symlink {
        target: Box<str>,
    },
    Folder,
    /// A socket, a fifo, a device, or a link whose target is not UTF-8: the log cannot hold it.
    Other,
}

/// An observation of a path at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub stat: Stat,
    pub kind: ObservedKind,
}

impl Observed {
    /// Whether this may be the given node, judged without reading content.
    pub fn may_be(&self, node: &FileNode) -> bool {
        match (&self.kind, node) {
            (ObservedKind::File { size, mode }, FileNode::File { size: expected, mode: bits, .. }) => {
                size == expected && mode == bits
            }
            (ObservedKind::Symlink { target }, FileNode::Symlink { target: expected }) => target == expected,
            (ObservedKind::Folder, FileNode::Folder) => true,
            (
                ObservedKind::File { .. }
                | ObservedKind::Symlink { .. }
                | ObservedKind::Folder
                | ObservedKind::Other,
                _,
            ) => false,
        }
    }
}
