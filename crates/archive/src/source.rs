//! The bytes of an archive, read at any offset by several readers at once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Holds an archive's bytes: a file, or memory.
pub trait Source: Send + Sync {
    fn size(&self) -> io::Result<u64>;
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;
}

impl Source for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, at)
    }
}

impl Source for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let start = usize::try_from(at).unwrap_or(usize::MAX).min(self.len());
        (&self[start..]).read(buffer)
    }
}

const CHUNK: usize = 16 * 1024;

/// Reads a source from its own position through its own buffer; cheap to clone.
pub(super) struct SourceReader {
    source: Arc<dyn Source>,
    size: u64,
    position: u64,
    chunk: Vec<u8>,
    chunk_start: u64,
    budget: Arc<AtomicU64>,
}

impl SourceReader {
    /// Reads from the start. At most `budget` bytes may be read unless the [`budget`](Self::budget) is raised.
    pub(super) fn start(source: Arc<dyn Source>, budget: u64) -> io::Result<Self> {
        let size = source.size()?;
        let budget = Arc::new(AtomicU64::new(budget));
        Ok(Self { source, size, position: 0, chunk: Vec::new(), chunk_start: 0, budget })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that this reader and its clones may still read; `u64::MAX` means no limit.
    pub(super) fn budget(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.budget)
    }

    fn spend(&self, count: usize) -> io::Result<()> {
        let spent = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| match left {
            u64::MAX => Some(left),
            left => left.checked_sub(count as u64),
        });
        spent.map(drop).map_err(|_| io::Error::other(DirectoryTooLarge))
    }

    fn buffered(&self) -> &[u8] {
        let start = self.position.checked_sub(self.chunk_start).and_then(|n| usize::try_from(n).ok());
        start.and_then(|start| self.chunk.get(start..)).unwrap_or_default()
    }
}

/// The zip's directory exceeds its limit.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("its directory is larger than the limit")]
struct DirectoryTooLarge;

impl Clone for SourceReader {
    fn clone(&self) -> Self {
        let (source, budget) = (Arc::clone(&self.source), self.budget());
        Self { source, budget, size: self.size, position: self.position, chunk: Vec::new(), chunk_start: 0 }
    }
}

impl std::fmt::Debug for SourceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SourceReader({} of {})", self.position, self.size)
    }
}

impl Read for SourceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.buffered().is_empty() {
            if buffer.len() >= CHUNK {
                let count = self.source.read_at(buffer, self.position)?;
                self.spend(count)?;
                self.position += count as u64;
                return Ok(count);
            }
            self.chunk.resize(CHUNK, 0);
            self.chunk_start = self.position;
            let read = self.source.read_at(&mut self.chunk, self.position);
            self.chunk.truncate(*read.as_ref().unwrap_or(&0));
            self.spend(read?)?;
        }
        let count = self.buffered().read(buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for SourceReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_the_same_bytes_as_a_cursor() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let mut reader = SourceReader::start(Arc::new(bytes.clone()), u64::MAX).unwrap();
        for (at, count) in [(0, 10), (5, 20_000), (16_380, 10), (99_990, 10), (99_995, 5), (3, 1)] {
            let mut found = vec![0; count];
            reader.seek(SeekFrom::Start(at as u64)).unwrap();
            reader.clone().read_exact(&mut found).unwrap();
            assert_eq!(found, bytes[at..at + count]);
            reader.read_exact(&mut found).unwrap();
            assert_eq!(found, bytes[at..at + count]);
        }
        assert_eq!(reader.seek(SeekFrom::End(-1)).unwrap(), 99_999);
        assert_eq!(reader.read(&mut [0; 4]).unwrap(), 1);
        assert_eq!(reader.read(&mut [0; 4]).unwrap(), 0);
        assert!(reader.seek(SeekFrom::Current(-200_000)).is_err());
    }

    #[test]
    fn it_reads_no_more_than_its_budget() {
        let mut reader = SourceReader::start(Arc::new(vec![0; 100_000]), 40_000).unwrap();
        let budget = reader.budget();
        assert!(io::copy(&mut reader, &mut io::sink()).is_err());
        budget.store(u64::MAX, Ordering::Relaxed);
        reader.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(io::copy(&mut reader, &mut io::sink()).unwrap(), 100_000);
    }
}
