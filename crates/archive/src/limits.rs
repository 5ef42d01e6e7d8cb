//! How much an archive may ask of the machine that reads it.

/// Bounds on what is held in memory or unpacked at once. Contents themselves are streamed and have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the zip's own directory; what is held of it in memory is a few times that.
    pub directory: u64,
    /// Bytes of the manifest.
    pub manifest: u64,
    /// Bytes of one event.
    pub line: u64,
    /// Bytes of the list of one `file.batch` event.
    pub list: u64,
    /// Events and lists may unpack to this many times what is in the file …
    pub ratio: u64,
    /// … or to this many bytes, whichever is more.
    pub unpacked: u64,
}

impl Limits {
    /// How far something packed into so many bytes may unpack.
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
