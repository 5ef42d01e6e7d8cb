//! Clients that keep us waiting: how long each may, and what they are cut off by.
//!
//! Only a wait ends a connection, never its length: a large file over a slow line arrives, and a WebSocket stays.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a client may keep us waiting.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For the handshake, for the head of its first request to be complete, and for that of each that follows.
    pub head: Duration,
    /// For the next piece of a body.
    pub body: Duration,
    /// For it to take more of what it is sent.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { head: minute / 2, body: minute, answer: minute }
    }
}

/// Runs while the client is waited for.
#[derive(Debug)]
struct Timer {
    patience: Duration,
    running: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    fn new(patience: Duration) -> Self {
        Self { patience, running: None }
    }

    /// Passes on what is ready; where nothing has been for too long, that is an error.
    fn judge<T>(&mut self, context: &mut Context<'_>, found: Poll<T>) -> Poll<Result<T, io::Error>> {
        if let Poll::Ready(found) = found {
            self.running = None;
            return Poll::Ready(Ok(found));
        }
        let patience = self.patience;
        let running = self.running.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(running.as_mut().poll(context));
        self.running = None;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// The bytes of a connection, which is given up if the other side does not take what it is sent. What it holds is
/// let go with it, also when a WebSocket has taken it over.
#[derive(Debug)]
pub(super) struct Paced<S, H> {
    stream: S,
    timer: Timer,
    _held: H,
}

impl<S, H> Paced<S, H> {
    pub(super) fn new(stream: S, patience: &Patience, held: H) -> Self {
        Self { stream, timer: Timer::new(patience.answer), _held: held }
    }
}

impl<S: AsyncRead + Unpin, H: Unpin> AsyncRead for Paced<S, H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin, H: Unpin> AsyncWrite for Paced<S, H> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timer.judge(context, written).map(Result::flatten)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.timer.judge(context, written).map(Result::flatten)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.timer.judge(context, flushed).map(Result::flatten)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timer.judge(context, closed).map(Result::flatten)
    }
}

/// A body that ends with an error when its next piece does not come.
#[derive(Debug)]
pub(super) struct PacedBody {
    body: Incoming,
    timer: Timer,
}

impl PacedBody {
    pub(super) fn new(body: Incoming, patience: &Patience) -> Self {
        Self { body, timer: Timer::new(patience.body) }
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match ready!(self.timer.judge(context, frame)) {
            Ok(frame) => Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other))),
            Err(late) => Poll::Ready(Some(Err(late))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
