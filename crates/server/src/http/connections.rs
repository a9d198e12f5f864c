//! HTTP/1 connections, bounded in number and in idle time.

use super::{router, starting_router};
use crate::connections::{Admission, Bounds, next};
use crate::context::Context;
use crate::limits::{HTTP_BUFFER_BYTES_MAX, HTTP_HEADERS_DEADLINE, STOP_GRACE};
use crate::tls::{Port, Tls};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Serves HTTP until `shutdown` is cancelled and the requests in progress are answered. That is
/// later than `context.shutdown`: a stopping node still answers readiness probes.
pub(crate) fn serve(
    context: Arc<Context>,
    listener: TcpListener,
    admission: Arc<Admission>,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let connections = TaskTracker::new();
        let tls = context.tls.clone();
        let handler = ConnectionHandler {
            router: router(context),
            tls,
            port: Port::Http,
            shutdown: shutdown.clone(),
        };
        let accepting = accept(&listener, &handler, &admission, &connections);
        tokio::select! {
            never = accepting => match never {},
            () = shutdown.cancelled() => {}
        }
        connections.close();
        connections.wait().await;
    })
}

/// Serves HTTP at a port while the node starts, until it is dropped: a start may take long, and a
/// liveness probe must not end it.
pub(crate) async fn serve_start(
    listener: &TcpListener,
    tls: Option<Arc<Tls>>,
    port: Port,
) -> Infallible {
    let started = CancellationToken::new();
    let _started = started.clone().drop_guard();
    let handler = ConnectionHandler {
        router: starting_router(),
        tls,
        port,
        shutdown: started,
    };
    let admission = Admission::new(Bounds::of(Port::Http));
    accept(listener, &handler, &admission, &TaskTracker::new()).await
}

/// Serves one connection.
#[derive(Clone)]
struct ConnectionHandler {
    router: Router,
    tls: Option<Arc<Tls>>,
    port: Port,
    shutdown: CancellationToken,
}

async fn accept(
    listener: &TcpListener,
    handler: &ConnectionHandler,
    admission: &Arc<Admission>,
    connections: &TaskTracker,
) -> Infallible {
    loop {
        if let Some((stream, admitted)) = next(listener, admission).await {
            let serving = handler.clone().serve_connection(stream);
            connections.spawn(async move {
                tokio::select! {
                    () = serving => {}
                    () = admitted.stopped() => {}
                }
            });
        }
    }
}

impl ConnectionHandler {
    /// Serves one connection, over TLS if the node has certificates.
    async fn serve_connection(self, stream: TcpStream) {
        let Some(tls) = &self.tls else {
            return connection(stream, self.router, self.shutdown).await;
        };
        if let Some(stream) = tls.handshake_or_log(self.port, stream).await {
            connection(stream, self.router, self.shutdown).await;
        }
    }
}

/// Serves one connection; at shutdown it ends after the request in progress.
async fn connection<S>(stream: S, router: Router, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP_HEADERS_DEADLINE)
        .max_buf_size(HTTP_BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(STOP_GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection broke");
    }
}
