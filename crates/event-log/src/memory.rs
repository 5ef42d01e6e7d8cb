//! The log in memory: the same contract without a disk, for tests and for logs that need not last.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Cursor, Read};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use shared_types::{
    ChainHash, CommandId, ContentHash, ContentRef, OpId, RunId, Seq, StoreBuffers, StoredEvent, UserId,
};

use crate::check::{check, check_early};
use crate::content::{ReadStart, read_start};
use crate::references::keep_named;
use crate::{
    Append, AppendError, Appended, ContentError, EventLog, Head, HeadListener, HeadSignal, ReadError,
    Snapshot, Staged,
};

/// A scan holds the lock for this many events at a time, so that a visitor may write.
const SCAN_CHUNK: usize = 256;

/// A log that ends with the process.
#[derive(Debug)]
pub struct MemoryLog {
    user: UserId,
    signal: HeadSignal,
    /// Held while events are added or contents collected; taken before `state`.
    writing: Mutex<()>,
    state: RwLock<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    events: Vec<Arc<StoredEvent<'static>>>,
    operations: HashMap<OpId, Vec<Seq>>,
    runs: HashMap<RunId, Vec<Seq>>,
    commands: HashMap<CommandId, Appended>,
    contents: HashMap<ContentHash, Arc<[u8]>>,
    /// Contents that were stored before the append that will name them.
    early: HashSet<ContentHash>,
    purged: HashSet<ContentHash>,
    snapshots: BTreeMap<Seq, Snapshot>,
}

impl MemoryState {
    fn head(&self) -> Head {
        self.events.last().map(|event| Head { seq: event.seq, hash: event.hash }).unwrap_or_default()
    }

    fn append(&mut self, append: &Append, buffers: &mut StoreBuffers) -> Result<Appended, AppendError> {
        if let Some(answer) = self.commands.get(&append.command) {
            return Ok(*answer);
        }
        let head = self.head();
        let answer = check(append, head.seq)?;
        let mut previous = head.hash;
        for event in &append.events {
            let stored = event.store_into(&previous, buffers).into_owned();
            previous = stored.hash;
            self.operations.entry(stored.op).or_default().push(stored.seq);
            if let Some(run) = stored.run_id {
                self.runs.entry(run).or_default().push(stored.seq);
            }
            self.events.push(Arc::new(stored));
        }
        for (hash, bytes) in &append.contents {
            self.contents.entry(*hash).or_insert_with(|| bytes.as_slice().into());
        }
        self.commands.insert(append.command, answer);
        Ok(answer)
    }

    fn at(&self, seq: Seq) -> Option<&Arc<StoredEvent<'static>>> {
        let index = usize::try_from(seq.0.checked_sub(1)?).ok()?;
        self.events.get(index)
    }

    fn all_at(&self, seqs: Option<&Vec<Seq>>) -> Vec<StoredEvent<'static>> {
        let found = seqs.into_iter().flatten().filter_map(|seq| self.at(*seq));
        found.map(|event| (**event).clone()).collect()
    }

    fn chunk(&self, from: Seq) -> Vec<Arc<StoredEvent<'static>>> {
        let start = usize::try_from(from.0.saturating_sub(1)).unwrap_or(usize::MAX).min(self.events.len());
        self.events[start..].iter().take(SCAN_CHUNK).cloned().collect()
    }
}

impl MemoryLog {
    pub fn new(user: UserId) -> Self {
        Self { user, signal: HeadSignal::default(), writing: Mutex::default(), state: RwLock::default() }
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, MemoryState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, MemoryState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventLog for MemoryLog {
    fn user(&self) -> &UserId {
        &self.user
    }

    fn head(&self) -> Head {
        self.signal.get()
    }

    fn append(&self, group: &[Append]) -> Vec<Result<Appended, AppendError>> {
        let _writing = self.writing();
        let mut state = self.write();
        let mut buffers = StoreBuffers::default();
        let answers = group.iter().map(|append| state.append(append, &mut buffers)).collect();
        let head = state.head();
        drop(state);
        self.signal.set(head);
        answers
    }

    fn answer(&self, command: CommandId) -> Result<Option<Appended>, ReadError> {
        Ok(self.read().commands.get(&command).copied())
    }

    fn scan(
        &self,
        from: Seq,
        visit: &mut dyn FnMut(&StoredEvent<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let mut next = from.max(Seq(1));
        let mut previous = match self.read().at(Seq(next.0 - 1)) {
            Some(event) => event.hash,
            None if next == Seq(1) => ChainHash::default(),
            None => return Ok(()),
        };
        let mut buffer = Vec::new();
        loop {
            let chunk = self.read().chunk(next);
            if chunk.is_empty() {
                return Ok(());
            }
            for event in chunk {
                if event.seq != next || event.link_into(&previous, &mut buffer) != event.hash {
                    let reason = "its hash does not follow from the event before it".to_owned();
                    return Err(ReadError::Broken { seq: next, reason });
                }
                if visit(&event).is_break() {
                    return Ok(());
                }
                previous = event.hash;
                next = next.next();
            }
        }
    }

    fn operation(&self, op: OpId) -> Result<Vec<StoredEvent<'static>>, ReadError> {
        let state = self.read();
        Ok(state.all_at(state.operations.get(&op)))
    }

    fn run(&self, run: RunId) -> Result<Vec<StoredEvent<'static>>, ReadError> {
        let state = self.read();
        Ok(state.all_at(state.runs.get(&run)))
    }

    fn wait(&self, after: Seq, timeout: Duration) -> Seq {
        self.signal.wait(after, timeout)
    }

    fn on_append(&self, listener: HeadListener) {
        self.signal.listen(listener);
    }

    fn release(&self) {
        self.signal.release();
    }

    fn stage(&self, bytes: &mut dyn Read) -> Result<Staged, ContentError> {
        match read_start(bytes).map_err(ContentError::from_read)? {
            ReadStart::Small(bytes) => Ok(Staged::Inline { content: ContentRef::of(&bytes), bytes }),
            ReadStart::Large(mut all) => {
                bytes.read_to_end(&mut all).map_err(ContentError::from_read)?;
                let content = ContentRef::of(&all);
                let mut state = self.write();
                state.early.insert(content.hash);
                state.contents.insert(content.hash, all.into());
                Ok(Staged::Blob { content })
            }
        }
    }

    fn store(&self, contents: Vec<(ContentHash, Vec<u8>)>) -> Result<(), ContentError> {
        check_early(&contents)?;
        let mut state = self.write();
        for (hash, bytes) in contents {
            state.early.insert(hash);
            state.contents.entry(hash).or_insert_with(|| bytes.into());
        }
        Ok(())
    }

    fn content(&self, hash: &ContentHash) -> Result<Box<dyn Read + Send>, ContentError> {
        let state = self.read();
        match state.contents.get(hash) {
            Some(bytes) if ContentHash::of(bytes) == *hash => Ok(Box::new(Cursor::new(Arc::clone(bytes)))),
            Some(_) => Err(ContentError::Damaged(*hash)),
            None if state.purged.contains(hash) => Err(ContentError::Purged(*hash)),
            None => Err(ContentError::Missing(*hash)),
        }
    }

    fn content_range(
        &self,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, ContentError> {
        let mut whole = self.content(hash)?;
        std::io::copy(&mut (&mut whole).take(range.start), &mut std::io::sink())
            .map_err(ContentError::from_read)?;
        Ok(Box::new(whole.take(range.end.saturating_sub(range.start))))
    }

    fn content_size(&self, hash: &ContentHash) -> Result<u64, ContentError> {
        let state = self.read();
        match state.contents.get(hash) {
            Some(bytes) => Ok(bytes.len() as u64),
            None if state.purged.contains(hash) => Err(ContentError::Purged(*hash)),
            None => Err(ContentError::Missing(*hash)),
        }
    }

    fn has_content(&self, hash: &ContentHash) -> Result<bool, ContentError> {
        Ok(self.read().contents.contains_key(hash))
    }

    fn purge(&self, hashes: &[ContentHash]) -> Result<u64, ContentError> {
        let mut state = self.write();
        let mut count = 0;
        for hash in hashes {
            count += u64::from(state.contents.remove(hash).is_some());
            state.purged.insert(*hash);
        }
        Ok(count)
    }

    fn collect(&self) -> Result<(u64, u64), ContentError> {
        let mut unnamed = HashMap::new();
        self.each_content(&mut |hash, size| {
            unnamed.insert(hash, size);
        })?;
        let next = keep_named(self, Seq(1), &mut unnamed)?;
        let _writing = self.writing();
        keep_named(self, next, &mut unnamed)?;
        let mut state = self.write();
        unnamed.retain(|hash, _| !state.early.contains(hash) && state.contents.remove(hash).is_some());
        Ok((unnamed.len() as u64, unnamed.values().sum()))
    }

    fn each_content(&self, visit: &mut dyn FnMut(ContentHash, u64)) -> Result<(), ContentError> {
        let sizes: Vec<_> = self.read().contents.iter().map(|(hash, b)| (*hash, b.len() as u64)).collect();
        sizes.into_iter().for_each(|(hash, size)| visit(hash, size));
        Ok(())
    }

    fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), AppendError> {
        let mut state = self.write();
        let actual = state.head().seq;
        if snapshot.seq > actual {
            return Err(AppendError::WrongSeq { expected: snapshot.seq, actual });
        }
        state.snapshots.insert(snapshot.seq, snapshot.clone());
        Ok(())
    }

    fn snapshot(&self, at: Seq) -> Result<Option<Snapshot>, ReadError> {
        Ok(self.read().snapshots.range(..=at).next_back().map(|(_, snapshot)| snapshot.clone()))
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, ReadError> {
        let bare = |whole: &Snapshot| Snapshot { slices: Vec::new(), ..*whole };
        Ok(self.read().snapshots.values().map(bare).collect())
    }
}
