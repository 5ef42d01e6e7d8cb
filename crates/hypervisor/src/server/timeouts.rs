//! Timeouts for slow clients.
//!
//! They limit how long the server waits for progress, never the length of a connection: a large file over a slow line
//! arrives, and a WebSocket stays open.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long the server waits for a client.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For the TLS handshake, and for the complete head of each request.
    pub head: Duration,
    /// For the next chunk of a request body.
    pub body: Duration,
    /// For the client to read more of the response.
    pub response: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { head: minute / 2, body: minute, response: minute }
    }
}

/// Runs while the server waits for the client.
#[derive(Debug)]
struct ProgressTimer {
    timeout: Duration,
    running: Option<Pin<Box<Sleep>>>,
}

impl ProgressTimer {
    fn new(timeout: Duration) -> Self {
        Self { timeout, running: None }
    }

    /// Passes on a result that is ready, and fails if none was ready for the length of the timeout.
    fn check<T>(&mut self, context: &mut Context<'_>, polled: Poll<T>) -> Poll<Result<T, io::Error>> {
        if let Poll::Ready(value) = polled {
            self.running = None;
            return Poll::Ready(Ok(value));
        }
        let timeout = self.timeout;
        let running = self.running.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(running.as_mut().poll(context));
        self.running = None;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// A connection that fails if the client does not read what it is sent. It owns `held` until the connection ends, also
/// after an upgrade to a WebSocket.
#[derive(Debug)]
pub(super) struct TimeoutStream<S, H> {
    stream: S,
    timer: ProgressTimer,
    _held: H,
}

impl<S, H> TimeoutStream<S, H> {
    pub(super) fn new(stream: S, timeouts: &Timeouts, held: H) -> Self {
        Self { stream, timer: ProgressTimer::new(timeouts.response), _held: held }
    }
}

impl<S: AsyncRead + Unpin, H: Unpin> AsyncRead for TimeoutStream<S, H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin, H: Unpin> AsyncWrite for TimeoutStream<S, H> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timer.check(context, written).map(Result::flatten)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.timer.check(context, written).map(Result::flatten)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.timer.check(context, flushed).map(Result::flatten)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timer.check(context, closed).map(Result::flatten)
    }
}

/// A request body that fails if its next chunk does not arrive in time.
#[derive(Debug)]
pub(super) struct TimeoutBody {
    body: Incoming,
    timer: ProgressTimer,
}

impl TimeoutBody {
    pub(super) fn new(body: Incoming, timeouts: &Timeouts) -> Self {
        Self { body, timer: ProgressTimer::new(timeouts.body) }
    }
}

impl Body for TimeoutBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match ready!(self.timer.check(context, frame)) {
            Ok(frame) => Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other))),
            Err(timed_out) => Poll::Ready(Some(Err(timed_out))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
