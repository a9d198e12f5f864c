//! Ends connections whose clients do not read.

use crate::limits::HTTP_WRITE_STALL_MAX;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection whose writes fail once one has made no progress for [`HTTP_WRITE_STALL_MAX`]: a client that does not read would
/// otherwise keep its response in memory for as long as it likes. HTTP/2 needs this less: such a client answers no pings.
pub(super) struct Stalling<S> {
    stream: S,
    /// Of the write that waits for the client.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            deadline: None,
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
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep(HTTP_WRITE_STALL_MAX)));
        ready!(deadline.as_mut().poll(context));
        let message = "the client read nothing of its response for too long";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
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
}
