//! One HTTP/1.1 connection that is kept alive.

use crate::fault::Fault;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// One connection. Dropping it closes it.
pub(super) struct Connection {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// # Errors
    /// If no server answers there.
    pub(super) async fn open(address: SocketAddr) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // If the connection breaks, the call in flight reports it.
        tokio::spawn(connection);
        Ok(Self { address, sender })
    }

    /// Posts JSON and reads the whole response.
    ///
    /// # Errors
    /// If the connection breaks.
    pub(super) async fn post(
        &mut self,
        path: &'static str,
        json: Vec<u8>,
    ) -> Result<(StatusCode, Bytes), Fault> {
        self.sender.ready().await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(json)))?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, body))
    }
}
