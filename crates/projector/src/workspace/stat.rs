//! What stands at a path, as the file system tells it without reading a byte of content.

use rustix::fs::FileType;
use shared_types::payload::file::FileNode;

/// The facts that a stat cache keeps: if all of them are the same, so is the content (see `scan::stat_cache`).
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

    /// True if it is the same thing: a rename moves only the change time.
    pub(crate) fn is_same_but_moved(&self, now: &Self) -> bool {
        Self { ctime_ns: now.ctime_ns, ..*self } == *now
    }

    /// What this is, if it is not a link: a link's target takes a second look at the disk.
    pub(crate) fn kind(&self) -> Kind {
        match self.file_type() {
            FileType::RegularFile => Kind::File { size: self.size, mode: self.permissions() },
            FileType::Directory => Kind::Folder,
            FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Kind::Other,
        }
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// What kind of thing stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    File {
        size: u64,
        mode: u16,
    },
    Symlink {
        target: Box<str>,
    },
    Folder,
    /// A socket, a fifo, a device, or a link whose target is not UTF-8: nothing that the log can hold.
    Other,
}

/// What was seen at a path at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub stat: Stat,
    pub kind: Kind,
}

impl Observed {
    /// True if what was seen can be this node, as far as that shows without reading content.
    pub fn may_be(&self, node: &FileNode) -> bool {
        match (&self.kind, node) {
            (Kind::File { size, mode }, FileNode::File { size: expected, mode: bits, .. }) => {
                size == expected && mode == bits
            }
            (Kind::Symlink { target }, FileNode::Symlink { target: expected }) => target == expected,
            (Kind::Folder, FileNode::Folder) => true,
            (Kind::File { .. } | Kind::Symlink { .. } | Kind::Folder | Kind::Other, _) => false,
        }
    }
}
