//! Accepts connections within the bounds of a port.

use super::admission::{Admission, Admitted};
use super::io_deadline::IoDeadline;
use super::suspensions::Suspensions;
use crate::limits::HANDSHAKE_DEADLINE;
use flotilla_replica::{Accepted, Arrivals, Caller};
use futures::StreamExt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::WaitForCancellationFutureOwned;

/// The delay after a failed accept: the process may be out of file descriptors.
const ACCEPT_DELAY: Duration = Duration::from_millis(100);
/// What an HTTP/2 client sends first: the connection preface of 24 bytes, and the header of its SETTINGS frame.
const PREFACE_BYTES: usize = 24 + 9;
/// Connections that are established and wait to be served.
const ARRIVALS_MAX: usize = 64;

/// Accepts connections until the stream is dropped. `establish` performs the handshake of one, which shows who calls; it returns
/// `None` if that fails.
pub(super) fn accept<S, F>(
    listener: TcpListener,
    admission: Arc<Admission>,
    establish: impl Fn(TcpStream) -> F + Send + Sync + 'static,
) -> Arrivals
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = Option<(S, Caller)>> + Send + 'static,
{
    let suspensions = Arc::new(Suspensions::new());
    accept_unless(listener, admission, suspensions, establish)
}

/// As [`accept`], and closes the connections after each of the suspensions.
fn accept_unless<S, F>(
    listener: TcpListener,
    admission: Arc<Admission>,
    suspensions: Arc<Suspensions>,
    establish: impl Fn(TcpStream) -> F + Send + Sync + 'static,
) -> Arrivals
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = Option<(S, Caller)>> + Send + 'static,
{
    let (arrived, arrivals) = mpsc::channel(ARRIVALS_MAX);
    tokio::spawn(async move {
        let accepting = async {
            loop {
                let Some((stream, admitted)) = next(&listener, &admission).await else {
                    continue;
                };
                let age = Age::new(suspensions.clone());
                // A slow handshake blocks no other connection.
                tokio::spawn(enter((admitted, age), establish(stream), arrived.clone()));
            }
        };
        tokio::select! {
            () = accepting => {}
            () = arrived.closed() => {}
            never = suspensions.watch() => match never {},
        }
    });
    Box::pin(ReceiverStream::new(arrivals).map(Ok))
}

/// The next connection, unless it is refused.
pub(crate) async fn next(
    listener: &TcpListener,
    admission: &Arc<Admission>,
) -> Option<(TcpStream, Admitted)> {
    match listener.accept().await {
        Ok((stream, from)) => {
            let Some(admitted) = admission.admit(from.ip()) else {
                tracing::debug!(%from, "a connection was closed: there are too many");
                return None;
            };
            stream.set_nodelay(true).ok()?;
            Some((stream, admitted))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection was not accepted");
            tokio::time::sleep(ACCEPT_DELAY).await;
            None
        }
    }
}

/// Establishes a connection, unless it is stopped for another one first.
async fn enter<S>(
    (admitted, age): (Admitted, Age),
    establishing: impl Future<Output = Option<(S, Caller)>>,
    arrived: mpsc::Sender<Accepted>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let closing = admitted.closing();
    let established = tokio::select! {
        established = establishing => established,
        () = closing.cancelled() => None,
    };
    if let Some((stream, caller)) = established {
        admitted.establish();
        let caller = caller
            .with_address(admitted.address())
            .with_closing(closing.clone())
            .with_admission(admitted.admission_mark());
        let counted = Counted {
            stream,
            age,
            preface: Some(Preface::new()),
            closing: Box::pin(closing.cancelled_owned()),
            _admitted: admitted,
        };
        // The server may have ended.
        drop(arrived.send(Accepted::new(counted, caller)).await);
    }
}

/// When a connection was accepted, in suspensions of the process.
struct Age {
    suspensions: Arc<Suspensions>,
    accepted: u64,
}

impl Age {
    fn new(suspensions: Arc<Suspensions>) -> Self {
        Self {
            accepted: suspensions.count(),
            suspensions,
        }
    }

    /// Fails if the process was suspended since then.
    fn check(&self) -> io::Result<()> {
        if self.suspensions.count() == self.accepted {
            return Ok(());
        }
        let message = "the process was suspended: what was received before is too old";
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, message))
    }
}

/// The beginning of HTTP/2 on a connection. The server itself waits for it without a deadline.
struct Preface {
    bytes_left: usize,
    deadline: IoDeadline,
}

impl Preface {
    fn new() -> Self {
        Self {
            bytes_left: PREFACE_BYTES,
            deadline: IoDeadline::after(
                HANDSHAKE_DEADLINE,
                "the client did not send the HTTP/2 connection preface in time",
            ),
        }
    }

    /// Whether the caller has sent all of it, now that this many bytes have arrived.
    fn has_ended(&mut self, bytes: usize) -> bool {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.bytes_left == 0
    }
}

/// A connection that counts until it is dropped.
struct Counted<S> {
    stream: S,
    age: Age,
    /// `None` once the caller has begun to speak HTTP/2.
    preface: Option<Preface>,
    /// Done once the connection must be closed.
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    _admitted: Admitted,
}

impl<S> Counted<S> {
    /// Fails once the connection must be closed. Reads and writes check it: a connection may wait for one of them only.
    fn check_closing(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.closing.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        let message = "the connection was closed for another one, or because its caller did not read its responses";
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, message))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.age.check()?;
        self.check_closing(context)?;
        let bytes_before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - bytes_before;
        if let Some(preface) = &mut self.preface {
            if preface.has_ended(bytes) {
                self.preface = None;
            } else if read.is_pending() {
                preface.deadline.check(context)?;
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_closing(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_closing(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check_closing(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::Bounds;
    use crate::limits::SUSPENSION_MIN;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tonic::transport::server::Connected;

    /// A port whose connections are established once the other end has sent a byte.
    async fn port(handshakes_max: usize, total_max: usize) -> (SocketAddr, Arrivals) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let admission = Admission::new(Bounds {
            total_max,
            address_max: total_max,
            handshakes_max,
        });
        let arrivals = accept(listener, admission, |mut stream: TcpStream| async move {
            stream
                .read_u8()
                .await
                .ok()
                .map(|_| (stream, Caller::default()))
        });
        (address, arrivals)
    }

    /// Waits until the other end has closed a connection.
    async fn expect_closed(mut stream: TcpStream) {
        let read = stream.read(&mut [0]).await;
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_out_others() {
        let (address, mut arrivals) = port(4, 100).await;
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(TcpStream::connect(address).await.expect("a connection"));
        }
        for stream in silent.drain(..4) {
            expect_closed(stream).await;
        }
        let honest = TcpStream::connect(address).await.expect("a connection");
        honest.writable().await.expect("it is open");
        honest.try_write(&[1]).expect("a byte is sent");
        let arrived = arrivals.next().await.expect("it runs");
        assert!(arrived.is_ok());
        drop(silent);
    }

    /// A connection that is established, and its two ends.
    async fn establish(address: SocketAddr, arrivals: &mut Arrivals) -> (TcpStream, Accepted) {
        let mut caller = TcpStream::connect(address).await.expect("a connection");
        let begin = vec![1; 1 + PREFACE_BYTES];
        caller.write_all(&begin).await.expect("it is open");
        let accepted = arrivals.next().await.expect("it runs");
        (caller, accepted.expect("it is established"))
    }

    #[tokio::test]
    async fn strangers_that_keep_sending_do_not_keep_out_a_member() {
        let (address, mut arrivals) = port(4, 4).await;
        let mut open = Vec::new();
        for _ in 0..4 {
            open.push(establish(address, &mut arrivals).await);
        }
        let (mut member, mut accepted) = establish(address, &mut arrivals).await;
        accepted.connect_info().mark_admitted();
        let (oldest, mut ended) = open.remove(0);
        let read = ended.read_exact(&mut [0; 64]).await;
        let kind = read.map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::ConnectionAborted));
        drop(ended);
        expect_closed(oldest).await;
        // Any number of further strangers only replace each other.
        for _ in 0..8 {
            for (stranger, _) in &mut open {
                // The oldest ones are closed already.
                drop(stranger.write_all(&[1]).await);
            }
            open.push(establish(address, &mut arrivals).await);
        }
        member.write_all(&[2]).await.expect("it is open");
        // The first byte was read to establish it.
        let mut received = [0; PREFACE_BYTES + 1];
        accepted
            .read_exact(&mut received)
            .await
            .expect("it is open");
        assert_eq!(received[PREFACE_BYTES], 2);
    }

    #[tokio::test]
    async fn connections_beyond_those_of_admitted_callers_are_closed() {
        let (address, mut arrivals) = port(4, 2).await;
        let mut open = Vec::new();
        for _ in 0..2 {
            let (stream, accepted) = establish(address, &mut arrivals).await;
            accepted.connect_info().mark_admitted();
            open.push((stream, accepted));
        }
        expect_closed(TcpStream::connect(address).await.expect("a connection")).await;
        // The place is free once the server has dropped its end.
        open.pop();
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.writable().await.expect("it is open");
        stream.try_write(&[1]).expect("a byte is sent");
        assert!(arrivals.next().await.expect("it runs").is_ok());
    }

    #[tokio::test]
    async fn a_connection_without_a_preface_is_closed_and_one_with_it_is_kept() {
        let (address, mut arrivals) = port(4, 4).await;
        let mut connect = async |bytes: usize| {
            let mut caller = TcpStream::connect(address).await.expect("a connection");
            caller.write_all(&vec![1; bytes]).await.expect("it is open");
            let accepted = arrivals.next().await.expect("it runs");
            (caller, accepted.expect("it is established"))
        };
        // The first byte establishes the connection.
        let (_slow_caller, mut slow) = connect(PREFACE_BYTES).await;
        let (_caller, mut complete) = connect(1 + PREFACE_BYTES).await;
        let read_all = async |accepted: &mut Accepted| {
            let mut received = vec![0; PREFACE_BYTES];
            accepted.read_exact(&mut received).await.map(drop)
        };
        read_all(&mut complete).await.expect("it has all of it");
        tokio::time::pause();
        let read = read_all(&mut slow).await.map_err(|error| error.kind());
        assert_eq!(read, Err(io::ErrorKind::TimedOut));
        let later = tokio::time::timeout(2 * HANDSHAKE_DEADLINE, complete.read_u8()).await;
        assert!(later.is_err(), "it stays open");
    }

    #[tokio::test]
    async fn what_arrived_before_a_suspension_is_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let admission = Admission::new(Bounds {
            total_max: 2,
            address_max: 2,
            handshakes_max: 2,
        });
        let suspensions = Arc::new(Suspensions::new());
        let establish = |stream: TcpStream| async { Some((stream, Caller::default())) };
        let mut arrivals = accept_unless(listener, admission, suspensions.clone(), establish);
        let mut connect = async || {
            let stream = TcpStream::connect(address).await.expect("a connection");
            let accepted = arrivals.next().await.expect("it runs");
            (stream, accepted.expect("it is established"))
        };
        let (mut caller, mut accepted) = connect().await;
        caller.write_all(&[1, 2]).await.expect("it is open");
        assert_eq!(accepted.read_u8().await.expect("it is read"), 1);
        suspensions.pretend(SUSPENSION_MIN);
        let read = accepted.read_u8().await.map_err(|error| error.kind());
        assert_eq!(read, Err(io::ErrorKind::ConnectionAborted));
        drop(accepted);
        expect_closed(caller).await;

        let (mut caller, mut accepted) = connect().await;
        caller.write_all(&[3]).await.expect("it is open");
        assert_eq!(accepted.read_u8().await.expect("it is read"), 3);
    }
}
