//! Ends connections whose clients do not read, or do not begin.

use super::io_deadline::IoDeadline;
use crate::limits::{HTTP_HEADERS_DEADLINE, HTTP_WRITE_STALL_MAX};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose writes fail once one has made no progress for [`HTTP_WRITE_STALL_MAX`]: a client that does not read would
/// otherwise keep its response in memory indefinitely. With HTTP/2, pings usually detect such a client earlier.
///
/// A read fails if the client has not begun to speak a version of HTTP within [`HTTP_HEADERS_DEADLINE`]: until then, the server
/// has no other deadline.
pub(super) struct Stalling<S> {
    stream: S,
    /// The deadline of the write that waits for the client.
    deadline: Option<IoDeadline>,
    /// `None` once the client has chosen a version of HTTP.
    beginning: Option<Beginning>,
}

/// What a client over HTTP/2 sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A client that has not shown yet which version of HTTP it speaks.
struct Beginning {
    /// The bytes of the preface that have arrived.
    matched: usize,
    deadline: IoDeadline,
}

impl Beginning {
    fn new() -> Self {
        Self {
            matched: 0,
            deadline: IoDeadline::after(
                HTTP_HEADERS_DEADLINE,
                "the client did not begin a request in time",
            ),
        }
    }

    /// Whether the version is known, now that these bytes have arrived.
    fn has_ended(&mut self, bytes: &[u8]) -> bool {
        let rest = &PREFACE[self.matched..];
        let count = bytes.len().min(rest.len());
        let is_http_1 = bytes[..count] != rest[..count];
        self.matched += count;
        is_http_1 || self.matched == PREFACE.len()
    }
}

impl<S> Stalling<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            deadline: None,
            beginning: Some(Beginning::new()),
        }
    }

    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let deadline = self.deadline.get_or_insert_with(|| {
            IoDeadline::after(
                HTTP_WRITE_STALL_MAX,
                "the client read nothing of its response for too long",
            )
        });
        deadline.check(context)?;
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes_before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(beginning) = &mut self.beginning {
            if beginning.has_ended(&buffer.filled()[bytes_before..]) {
                self.beginning = None;
            } else if read.is_pending() {
                beginning.deadline.check(context)?;
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded(context, closed)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bounded(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn only_a_client_that_reads_nothing_is_disconnected() {
        let (mut client, server) = duplex(8);
        let mut server = Stalling::new(server);
        let writing = tokio::spawn(async move { server.write_all(&[0; 32]).await });
        for _ in 0..3 {
            let pause = timeout(HTTP_WRITE_STALL_MAX * 2 / 3, std::future::pending::<()>());
            pause.await.expect_err("nothing else ends it");
            client.read_exact(&mut [0; 8]).await.expect("it is open");
        }
        assert!(writing.await.expect("it runs").is_ok());

        let (_client, server) = duplex(8);
        let mut server = Stalling::new(server);
        let written = timeout(2 * HTTP_WRITE_STALL_MAX, server.write_all(&[0; 32])).await;
        let kind = written.expect("it ends").map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::TimedOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_begin_is_disconnected() {
        for sent in [&b""[..], b"PRI * HTT"] {
            let (mut client, server) = duplex(64);
            client.write_all(sent).await.expect("it is open");
            let mut server = Stalling::new(server);
            let mut received = Vec::new();
            let read = timeout(2 * HTTP_HEADERS_DEADLINE, server.read_to_end(&mut received)).await;
            let kind = read.expect("it ends").map_err(|error| error.kind());
            assert_eq!(kind, Err(io::ErrorKind::TimedOut), "{sent:?}");
        }
        // From then on, the protocols have their own deadlines.
        for sent in [&b"GET"[..], PREFACE, b"PRI / HTTP/1.1"] {
            let (mut client, server) = duplex(64);
            client.write_all(sent).await.expect("it is open");
            let mut server = Stalling::new(server);
            let mut received = Vec::new();
            let read = timeout(2 * HTTP_HEADERS_DEADLINE, server.read_to_end(&mut received)).await;
            assert!(read.is_err(), "{sent:?}");
        }
    }
}
