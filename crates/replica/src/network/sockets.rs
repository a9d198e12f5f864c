//! The sockets under the gRPC of members, which a host can replace to add TLS.

use crate::network::caller::Caller;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tonic::transport::server::{Connected, TcpIncoming};
use tonic::transport::{Channel, Endpoint};

/// Opens and accepts connections.
pub trait Sockets: Send + Sync + 'static {
    /// A channel to the endpoint. It connects on first use, and again after failures.
    fn channel(&self, endpoint: &Endpoint) -> Channel;

    /// The incoming connections, each once it is established; failed ones are omitted.
    fn accept(&self, listener: TcpListener) -> Arrivals;
}

/// A stream of incoming connections.
pub type Arrivals = BoxStream<'static, io::Result<Accepted>>;

/// Plain TCP, without TLS.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainSockets;

impl Sockets for PlainSockets {
    fn channel(&self, endpoint: &Endpoint) -> Channel {
        endpoint.connect_lazy()
    }

    fn accept(&self, listener: TcpListener) -> Arrivals {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        Box::pin(incoming.map(|stream| Ok(Accepted::new(stream?, Caller::default()))))
    }
}

/// An accepted connection.
pub struct Accepted {
    stream: Pin<Box<dyn Duplex>>,
    caller: Caller,
}

trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Duplex for S {}

impl Accepted {
    /// Wraps any byte stream as a connection of `caller`.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static, caller: Caller) -> Self {
        Self {
            stream: Box::pin(stream),
            caller,
        }
    }
}

impl Connected for Accepted {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
