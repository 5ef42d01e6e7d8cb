//! The newest output of a terminal or command, addressed by byte offset since its start.
//!
//! A tab that was reloaded or lost its connection continues where it was. Each tab is sent only a little more than it
//! has shown, and a tab that is too slow misses the oldest output.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared_types::TerminalId;
use tokio::sync::watch;

/// How much output is kept.
const BUFFER_BYTES: usize = 1 << 20;
/// How far output may be ahead of what a tab has acknowledged.
const MAX_UNACKNOWLEDGED: u64 = 256 << 10;
/// The most output that a tab is sent at once.
const CHUNK: usize = 32 << 10;
/// After this long without an acknowledgement the program does not wait for the tabs any more.
const TAB_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether the program waits for the tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backpressure {
    /// The program waits until a tab has shown its output.
    WaitForTabs,
    /// The program never waits; the oldest output is dropped.
    DropOldest,
}

/// Whether more output may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedState {
    Open,
    /// With the exit code, if there is one.
    Ended {
        code: Option<i32>,
    },
}

/// The output of one terminal or command.
#[derive(Debug)]
pub struct OutputFeed {
    id: TerminalId,
    backpressure: Backpressure,
    state: Mutex<FeedBuffer>,
    acknowledged: Condvar,
    written: watch::Sender<u64>,
    ended: watch::Sender<FeedState>,
}

#[derive(Debug, Default)]
struct FeedBuffer {
    kept: VecDeque<u8>,
    /// Bytes since the start.
    total: u64,
    /// The highest offset that a tab has acknowledged, and the number of attached tabs.
    acknowledged: u64,
    attached: usize,
}

impl FeedBuffer {
    fn oldest(&self) -> u64 {
        self.total - self.kept.len() as u64
    }
}

/// Output from an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// A tab that follows the output. Dropping it lets the program continue.
#[derive(Debug)]
pub struct Attachment {
    feed: Arc<OutputFeed>,
    written: watch::Receiver<u64>,
    ended: watch::Receiver<FeedState>,
    sent: u64,
    acknowledged: u64,
}

impl OutputFeed {
    pub fn new(id: TerminalId, backpressure: Backpressure) -> Arc<Self> {
        let (written, ended) = (watch::Sender::new(0), watch::Sender::new(FeedState::Open));
        Arc::new(Self {
            id,
            backpressure,
            state: Mutex::default(),
            acknowledged: Condvar::new(),
            written,
            ended,
        })
    }

    pub fn id(&self) -> TerminalId {
        self.id
    }

    fn state(&self) -> MutexGuard<'_, FeedBuffer> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds output, and waits for the tabs if the feed is made so.
    pub fn add(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.kept.extend(bytes);
        let excess = state.kept.len().saturating_sub(BUFFER_BYTES);
        state.kept.drain(..excess);
        state.total += bytes.len() as u64;
        self.written.send_replace(state.total);
        if self.backpressure == Backpressure::DropOldest {
            return;
        }
        let full = |state: &mut FeedBuffer| {
            state.attached > 0 && state.total > state.acknowledged + MAX_UNACKNOWLEDGED
        };
        let waited = self.acknowledged.wait_timeout_while(state, TAB_TIMEOUT, full);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            state.acknowledged = state.total;
        }
    }

    /// Marks the end of the output.
    pub fn end(&self, code: Option<i32>) {
        self.ended.send_replace(FeedState::Ended { code });
    }

    pub fn has_ended(&self) -> bool {
        *self.ended.borrow() != FeedState::Open
    }

    pub fn attach(self: &Arc<Self>, offset: u64) -> Attachment {
        let mut state = self.state();
        let sent = offset.clamp(state.oldest(), state.total);
        state.attached += 1;
        state.acknowledged = state.acknowledged.max(sent);
        let (written, ended) = (self.written.subscribe(), self.ended.subscribe());
        drop(state);
        Attachment { feed: Arc::clone(self), written, ended, sent, acknowledged: sent }
    }
}

impl Attachment {
    pub fn id(&self) -> TerminalId {
        self.feed.id
    }

    /// Where the next output starts.
    pub fn offset(&self) -> u64 {
        self.sent
    }

    /// Bytes since the start, as of now.
    pub fn written(&self) -> u64 {
        *self.written.borrow()
    }

    /// The tab has shown this many more bytes.
    pub fn acknowledge(&mut self, bytes: u64) {
        self.acknowledged = self.acknowledged.saturating_add(bytes).min(self.sent);
        let mut state = self.feed.state();
        state.acknowledged = state.acknowledged.max(self.acknowledged);
        drop(state);
        self.feed.acknowledged.notify_one();
    }

    /// The next output to send; `None` while the tab has too much unacknowledged output.
    pub fn next_chunk(&mut self) -> Option<Output> {
        if self.sent >= self.acknowledged + MAX_UNACKNOWLEDGED {
            return None;
        }
        let state = self.feed.state();
        // A tab that fell behind the buffer continues with the oldest output in it.
        let offset = self.sent.max(state.oldest());
        let start = usize::try_from(offset - state.oldest()).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = state.kept.iter().skip(start).take(CHUNK).copied().collect();
        drop(state);
        if bytes.is_empty() {
            return None;
        }
        self.acknowledged += offset - self.sent;
        self.sent = offset + bytes.len() as u64;
        Some(Output { offset, bytes })
    }

    /// Waits until there is more output or the end. The end is reported only when everything was sent.
    pub async fn changed(&mut self) -> FeedState {
        loop {
            let state = *self.ended.borrow_and_update();
            let written = *self.written.borrow_and_update();
            let is_all_sent = self.sent >= written;
            if is_all_sent && state != FeedState::Open {
                return state;
            }
            if !is_all_sent && self.sent < self.acknowledged + MAX_UNACKNOWLEDGED {
                return FeedState::Open;
            }
            tokio::select! {
                changed = self.written.changed() => if changed.is_err() { return FeedState::Ended { code: None } },
                changed = self.ended.changed() => if changed.is_err() { return FeedState::Ended { code: None } },
            }
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut state = self.feed.state();
        state.attached = state.attached.saturating_sub(1);
        drop(state);
        self.feed.acknowledged.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed() -> Arc<OutputFeed> {
        OutputFeed::new(TerminalId::from_bytes([1; 16]), Backpressure::DropOldest)
    }

    #[tokio::test]
    async fn a_tab_that_is_too_slow_gets_the_tail_and_does_not_delay_the_program() {
        let feed = feed();
        let mut slow = feed.attach(0);
        for _ in 0..3 * BUFFER_BYTES / 1024 {
            feed.add(&[b'x'; 1024]);
        }
        feed.add(b"the end");
        feed.end(Some(0));
        let mut last = Vec::new();
        while slow.changed().await == FeedState::Open {
            let output = slow.next_chunk().expect("there is more");
            slow.acknowledge(output.bytes.len() as u64);
            assert!(output.offset >= 2 * BUFFER_BYTES as u64, "the oldest was left out");
            last = output.bytes;
        }
        assert!(last.ends_with(b"the end"));
    }

    #[tokio::test]
    async fn a_tab_that_shows_nothing_is_sent_a_window_and_no_more() {
        let feed = feed();
        let mut tab = feed.attach(0);
        feed.add(&[b'x'; BUFFER_BYTES]);
        let mut sent = 0;
        while let Some(output) = tab.next_chunk() {
            sent += output.bytes.len() as u64;
        }
        assert!((MAX_UNACKNOWLEDGED..MAX_UNACKNOWLEDGED + CHUNK as u64).contains(&sent), "{sent}");
        tab.acknowledge(CHUNK as u64);
        assert!(tab.next_chunk().is_some(), "then it goes on");
    }
}
