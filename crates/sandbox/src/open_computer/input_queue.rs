//! The input of a terminal: a bounded queue, and the only thread that may wait for a program that does not read.
//!
//! Nothing else ever blocks on a terminal's input. A tab whose terminal does not read gets an error; the server and
//! every other tab continue.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::process::{ProcessControl, Size};

/// The most bytes that may wait. A message of a tab is at most a quarter of this.
const CAPACITY: usize = 1 << 20;
/// How long a tab waits for room before its input is refused.
const INPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// The input was refused because the program has not read the earlier input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The pending input of one terminal. Of several resizes only the last is applied.
#[derive(Debug, Default)]
pub(super) struct InputQueue {
    state: Mutex<QueueState>,
    /// Wakes the thread.
    added: Condvar,
    /// Wakes tabs that wait for room.
    taken: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    bytes: VecDeque<u8>,
    size: Option<Size>,
    closed: bool,
}

impl InputQueue {
    /// Starts the thread. It ends after [`close`](Self::close), as soon as a write under way returns.
    pub(super) fn start(
        input: Box<dyn Write + Send>,
        control: Arc<dyn ProcessControl>,
    ) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Self::default());
        let own = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("terminal input".into())
            .spawn(move || own.write_to(input, &*control))?;
        Ok(queue)
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_to(&self, mut input: Box<dyn Write + Send>, control: &dyn ProcessControl) {
        loop {
            let idle =
                |state: &mut QueueState| !state.closed && state.size.is_none() && state.bytes.is_empty();
            let waited = self.added.wait_while(self.state(), idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return;
            }
            let (size, bytes) = (state.size.take(), std::mem::take(&mut state.bytes));
            drop(state);
            self.taken.notify_waiters();
            if let Some(size) = size {
                // The terminal remains usable if the resize fails.
                let _ = control.resize(size);
            }
            let bytes = Vec::from(bytes);
            if !bytes.is_empty() && input.write_all(&bytes).and_then(|()| input.flush()).is_err() {
                // The program has ended, which the reader of its output reports.
                return self.close();
            }
        }
    }

    /// Adds input, all or nothing. Waits a little for room.
    pub(super) async fn push(&self, bytes: &[u8]) -> Result<(), Full> {
        let deadline = tokio::time::Instant::now() + INPUT_TIMEOUT;
        loop {
            // Created before the check, so that a notification right after it is not missed.
            let taken = self.taken.notified();
            {
                let mut state = self.state();
                if state.closed {
                    return Ok(());
                }
                if state.bytes.len() + bytes.len() <= CAPACITY {
                    state.bytes.extend(bytes);
                    self.added.notify_one();
                    return Ok(());
                }
            }
            if tokio::time::timeout_at(deadline, taken).await.is_err() {
                return Err(Full);
            }
        }
    }

    pub(super) fn resize(&self, size: Size) {
        self.state().size = Some(size);
        self.added.notify_one();
    }

    /// Drops the pending input and ignores further input.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.bytes = VecDeque::new();
        drop(state);
        self.added.notify_one();
        self.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc;

    use super::*;

    /// A program that reads only when it is allowed to.
    struct Stalled(mpsc::Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Default)]
    struct Sizes(Mutex<Vec<Size>>);

    impl ProcessControl for Sizes {
        fn resize(&self, size: Size) -> io::Result<()> {
            self.0.lock().unwrap().push(size);
            Ok(())
        }

        fn end(&self) {}
    }

    #[tokio::test]
    async fn input_that_is_not_read_is_refused_and_taken_again_once_it_is() {
        let (read, gate) = mpsc::channel();
        let queue = InputQueue::start(Box::new(Stalled(gate)), Arc::new(Sizes::default())).unwrap();
        let piece = vec![b'x'; CAPACITY / 2];
        // Two pieces may be with the thread already, and two fit the queue.
        let mut taken = 0;
        while queue.push(&piece).await.is_ok() {
            taken += 1;
            assert!(taken <= 4, "the queue has no bound");
        }
        assert!(taken >= 2, "{taken}");
        for _ in 0..taken + 1 {
            let _ = read.send(());
        }
        while queue.push(b"y").await.is_err() {}
    }

    #[tokio::test]
    async fn only_the_newest_size_is_applied() {
        let (read, gate) = mpsc::channel();
        let sizes = Arc::new(Sizes::default());
        let queue = InputQueue::start(Box::new(Stalled(gate)), Arc::clone(&sizes) as Arc<dyn ProcessControl>)
            .unwrap();
        queue.push(b"x").await.unwrap();
        let last = Size { columns: 100, rows: 40 };
        // A resize does not wait while the thread waits for the program.
        (2..40).for_each(|rows| queue.resize(Size { columns: 100, rows }));
        queue.resize(last);
        read.send(()).unwrap();
        while sizes.0.lock().unwrap().last() != Some(&last) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(sizes.0.lock().unwrap().len() <= 3, "{:?}", sizes.0.lock().unwrap());
        queue.close();
    }
}
