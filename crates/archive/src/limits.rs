//! How much memory and disk an archive may use while it is read.

/// Limits on memory and on unpacked size. Contents are streamed and not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the zip's own directory; in memory it takes a few times that.
    pub directory: u64,
    /// Bytes of the manifest.
    pub manifest: u64,
    /// Bytes of one event.
    pub line: u64,
    /// Bytes of the list of one `file.batch` event.
    pub list: u64,
    /// Events and lists may unpack to this many times their packed size …
    pub ratio: u64,
    /// … or to this many bytes, whichever is more.
    pub unpacked: u64,
}

impl Limits {
    /// The largest size to which this many packed bytes may unpack.
    pub(super) fn unpacked(&self, packed: u64) -> u64 {
        packed.saturating_mul(self.ratio).max(self.unpacked)
    }
}

impl Default for Limits {
    /// Room for a million contents and a batch of a million files.
    fn default() -> Self {
        Self {
            directory: 256 << 20,
            manifest: 64 << 20,
            line: 16 << 20,
            list: 512 << 20,
            ratio: 100,
            unpacked: 64 << 20,
        }
    }
}
