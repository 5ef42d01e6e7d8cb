//! The bytes of an archive, read at any place by several readers at once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where an archive's bytes are: a file, or memory.
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

/// A place in a source with a buffer of its own; cheap to clone.
pub(super) struct Place {
    source: Arc<dyn Source>,
    size: u64,
    at: u64,
    chunk: Vec<u8>,
    chunk_at: u64,
    budget: Arc<AtomicU64>,
}

impl Place {
    /// The start of a source, of which at most `budget` bytes may be read unless the [`budget`](Self::budget) is raised.
    pub(super) fn start(source: Arc<dyn Source>, budget: u64) -> io::Result<Self> {
        let size = source.size()?;
        let budget = Arc::new(AtomicU64::new(budget));
        Ok(Self { source, size, at: 0, chunk: Vec::new(), chunk_at: 0, budget })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// How much may still be read here and wherever else this place was cloned to; the greatest number is no bound.
    pub(super) fn budget(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.budget)
    }

    fn spend(&self, count: usize) -> io::Result<()> {
        let spent = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| match left {
            u64::MAX => Some(left),
            left => left.checked_sub(count as u64),
        });
        spent.map(drop).map_err(|_| io::Error::other(TooMuch))
    }

    fn buffered(&self) -> &[u8] {
        let start = self.at.checked_sub(self.chunk_at).and_then(|n| usize::try_from(n).ok());
        start.and_then(|start| self.chunk.get(start..)).unwrap_or_default()
    }
}

/// The zip's directory is larger than it may be.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("its directory is larger than the limit")]
struct TooMuch;

impl Clone for Place {
    fn clone(&self) -> Self {
        let (source, budget) = (Arc::clone(&self.source), self.budget());
        Self { source, budget, size: self.size, at: self.at, chunk: Vec::new(), chunk_at: 0 }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place({} of {})", self.at, self.size)
    }
}

impl Read for Place {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.buffered().is_empty() {
            if buffer.len() >= CHUNK {
                let count = self.source.read_at(buffer, self.at)?;
                self.spend(count)?;
                self.at += count as u64;
                return Ok(count);
            }
            self.chunk.resize(CHUNK, 0);
            self.chunk_at = self.at;
            let read = self.source.read_at(&mut self.chunk, self.at);
            self.chunk.truncate(*read.as_ref().unwrap_or(&0));
            self.spend(read?)?;
        }
        let count = self.buffered().read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Place {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_a_cursor_reads() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let mut place = Place::start(Arc::new(bytes.clone()), u64::MAX).unwrap();
        for (at, count) in [(0, 10), (5, 20_000), (16_380, 10), (99_990, 10), (99_995, 5), (3, 1)] {
            let mut found = vec![0; count];
            place.seek(SeekFrom::Start(at as u64)).unwrap();
            place.clone().read_exact(&mut found).unwrap();
            assert_eq!(found, bytes[at..at + count]);
            place.read_exact(&mut found).unwrap();
            assert_eq!(found, bytes[at..at + count]);
        }
        assert_eq!(place.seek(SeekFrom::End(-1)).unwrap(), 99_999);
        assert_eq!(place.read(&mut [0; 4]).unwrap(), 1);
        assert_eq!(place.read(&mut [0; 4]).unwrap(), 0);
        assert!(place.seek(SeekFrom::Current(-200_000)).is_err());
    }

    #[test]
    fn it_reads_no_more_than_its_budget() {
        let mut place = Place::start(Arc::new(vec![0; 100_000]), 40_000).unwrap();
        let budget = place.budget();
        assert!(io::copy(&mut place, &mut io::sink()).is_err());
        budget.store(u64::MAX, Ordering::Relaxed);
        place.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(io::copy(&mut place, &mut io::sink()).unwrap(), 100_000);
    }
}
