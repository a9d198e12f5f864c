//! HTTP/1 connections, bounded in number and in idle time.

use super::{HttpServices, router, starting_router};
use crate::connections::{Admission, Admitted, Bounds, next};
use crate::limits::{HTTP_BUFFER_BYTES_MAX, HTTP_HEADERS_DEADLINE, STOP_GRACE};
use crate::tls::{Port, Tls, caller_of};
use axum::Router;
use axum::extract::Request;
use flotilla_replica::Caller;
use hyper::body::Incoming;
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
use tower::util::MapRequest;

/// Serves HTTP until `shutdown` is cancelled and the requests in progress are answered. That is
/// later than `context.shutdown`: a stopping node still answers readiness probes.
pub(crate) fn serve(
    served: &HttpServices,
    listener: TcpListener,
    admission: Arc<Admission>,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    let handler = ConnectionHandler {
        router: router(served),
        tls: served.context.tls.clone(),
        port: Port::Http,
        shutdown: shutdown.clone(),
    };
    tokio::spawn(async move {
        let connections = TaskTracker::new();
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
            connections.spawn(handler.clone().serve_connection(stream, admitted));
        }
    }
}

impl ConnectionHandler {
    /// Serves one connection, over TLS if the node has certificates, until it is stopped for another one.
    async fn serve_connection(self, stream: TcpStream, admitted: Admitted) {
        let admitted = Arc::new(admitted);
        let serving = async {
            let Some(tls) = &self.tls else {
                return self.connection(stream, Caller::default(), &admitted).await;
            };
            if let Some(stream) = tls.handshake_or_log(self.port, stream).await {
                let caller = caller_of(&stream);
                self.connection(stream, caller, &admitted).await;
            }
        };
        tokio::select! {
            () = serving => {}
            () = admitted.stopped() => {}
        }
    }

    /// Serves the requests of the caller, until it reads none of its responses while others need the memory.
    async fn connection<S>(&self, stream: S, caller: Caller, admitted: &Arc<Admitted>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let closing = CancellationToken::new();
        let caller = caller.with_closing(closing.clone());
        let admitted = Arc::clone(admitted);
        let service = MapRequest::new(
            self.router.clone(),
            move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(caller.clone());
                request.extensions_mut().insert(admitted.clone());
                request
            },
        );
        tokio::select! {
            () = connection(stream, service, &self.shutdown) => {}
            () = closing.cancelled() => {}
        }
    }
}

/// Serves one connection; at shutdown it ends after the request in progress.
async fn connection<S>(
    stream: S,
    service: MapRequest<Router, impl Fn(Request<Incoming>) -> Request<Incoming> + Clone>,
    shutdown: &CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(service);
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
