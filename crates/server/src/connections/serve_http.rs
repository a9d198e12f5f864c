//! Serves a connection over HTTP/1.1 or HTTP/2, as its client chooses.

use super::stalling::Stalling;
use crate::limits::{
    HTTP_BUFFER_BYTES_MAX, HTTP_HEADERS_BYTES_MAX, HTTP_HEADERS_DEADLINE, KEEPALIVE, STOP_GRACE,
};
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequest;

/// The bounds of a connection over HTTP/2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http2Bounds {
    /// Concurrent streams.
    pub(crate) streams_max: u32,
    /// The unread bytes that a client may send on one stream.
    pub(crate) stream_window_bytes: u32,
    /// The unread bytes on all streams.
    pub(crate) connection_window_bytes: u32,
}

/// Serves the requests of one connection; after `shutdown`, those in progress.
pub(crate) async fn serve_http<S>(
    stream: S,
    service: MapRequest<
        Router,
        impl Fn(Request<Incoming>) -> Request<Incoming> + Clone + Send + 'static,
    >,
    bounds: Http2Bounds,
    shutdown: &CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(service);
    let builder = builder(bounds);
    let connection = builder.serve_connection(TokioIo::new(Stalling::new(stream)), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            // One that does not end in time is cut.
            timeout(STOP_GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection broke");
    }
}

fn builder(bounds: Http2Bounds) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP_HEADERS_DEADLINE)
        .max_buf_size(HTTP_BUFFER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .initial_stream_window_size(bounds.stream_window_bytes)
        .initial_connection_window_size(bounds.connection_window_bytes)
        .max_concurrent_streams(bounds.streams_max)
        .max_header_list_size(HTTP_HEADERS_BYTES_MAX)
        .max_send_buf_size(HTTP_BUFFER_BYTES_MAX);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HTTP_WRITE_STALL_MAX;
    use axum::routing::get;
    use std::collections::BTreeMap;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::task::JoinHandle;

    const BOUNDS: Http2Bounds = Http2Bounds {
        streams_max: 12,
        stream_window_bytes: 3_000,
        connection_window_bytes: 70_000,
    };

    /// A connection to a server whose only response has this size in bytes, with a buffer of that size.
    fn connect(size: usize, shutdown: &CancellationToken) -> (DuplexStream, JoinHandle<()>) {
        let (client, server) = duplex(1 << 20);
        let router = Router::new().route("/", get(async move || vec![0; size]));
        let shutdown = shutdown.clone();
        let serving = tokio::spawn(async move {
            let service = MapRequest::new(router, |request| request);
            serve_http(server, service, BOUNDS, &shutdown).await;
        });
        (client, serving)
    }

    #[tokio::test]
    async fn the_head_of_a_request_over_http_1_is_bounded_and_a_connection_ends_with_the_node() {
        let shutdown = CancellationToken::new();
        let (mut client, serving) = connect(1, &shutdown);
        let endless = format!(
            "GET / HTTP/1.1\r\nx: {}",
            "x".repeat(2 * HTTP_BUFFER_BYTES_MAX)
        );
        client
            .write_all(endless.as_bytes())
            .await
            .expect("it is read");
        let mut response = String::new();
        client.read_to_string(&mut response).await.expect("it ends");
        assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
        serving.await.expect("it ends");

        let (mut client, serving) = connect(1, &shutdown);
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: node\r\n\r\n")
            .await
            .expect("it is open");
        let mut status = [0; 12];
        client.read_exact(&mut status).await.expect("it answers");
        assert_eq!(&status, b"HTTP/1.1 200");
        shutdown.cancel();
        serving.await.expect("it ends");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_over_http_1_that_does_not_begin_ends_its_connection() {
        let (mut client, serving) = connect(1, &CancellationToken::new());
        client
            .write_all(b"GET / HTTP/1.1\r\n")
            .await
            .expect("it is open");
        let ended = timeout(HTTP_HEADERS_DEADLINE * 3 / 2, serving).await;
        ended.expect("it does not wait for more").expect("it ends");
    }

    #[tokio::test]
    async fn the_streams_and_the_unread_bytes_of_a_connection_over_http_2_are_bounded() {
        let (mut client, _serving) = connect(1, &CancellationToken::new());
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        client.write_all(preface).await.expect("it is open");
        // The first frame is SETTINGS: its header of 9 bytes, which begins with its length, and pairs of a key and a value.
        let mut header = [0; 9];
        client.read_exact(&mut header).await.expect("a frame");
        assert_eq!(header[3], 4, "SETTINGS");
        let mut pairs = vec![0; usize::from(header[2])];
        client.read_exact(&mut pairs).await.expect("a whole frame");
        let settings: BTreeMap<u16, u32> = pairs
            .chunks_exact(6)
            .map(|pair| {
                let key = u16::from_be_bytes([pair[0], pair[1]]);
                (
                    key,
                    u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]),
                )
            })
            .collect();
        assert_eq!(settings.get(&3), Some(&BOUNDS.streams_max), "{settings:?}");
        assert_eq!(
            settings.get(&4),
            Some(&BOUNDS.stream_window_bytes),
            "{settings:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_response_is_disconnected() {
        let (mut client, serving) = connect(4 << 20, &CancellationToken::new());
        let request = b"GET / HTTP/1.1\r\nhost: node\r\n\r\n";
        client.write_all(request).await.expect("it is open");
        let ended = timeout(2 * HTTP_WRITE_STALL_MAX, serving).await;
        ended
            .expect("it would wait as long as the client")
            .expect("it ends");
    }
}
