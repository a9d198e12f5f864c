//! Connections over HTTP, bounded in number and in idle time.

use super::{HttpServices, router, starting_router};
use crate::connections::{Admission, Admitted, Bounds, Http2Bounds, next, serve_http};
use crate::limits::{HTTP_CONNECTION_WINDOW_BYTES, HTTP_STREAM_WINDOW_BYTES, HTTP_STREAMS_MAX};
use crate::tls::{Port, Tls, caller_of};
use axum::Router;
use axum::extract::Request;
use flotilla_replica::Caller;
use hyper::body::Incoming;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::util::MapRequest;

const HTTP_2: Http2Bounds = Http2Bounds {
    streams_max: HTTP_STREAMS_MAX,
    stream_window_bytes: HTTP_STREAM_WINDOW_BYTES,
    connection_window_bytes: HTTP_CONNECTION_WINDOW_BYTES,
};

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
    /// Serves one connection, over TLS if the node has certificates, until it is closed for another one, or because its
    /// caller does not read its responses while others need the memory.
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
        let closing = admitted.closing();
        tokio::select! {
            () = serving => {}
            () = closing.cancelled() => {}
        }
    }

    /// Serves the requests of the caller.
    async fn connection<S>(&self, stream: S, caller: Caller, admitted: &Arc<Admitted>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let caller = caller
            .with_address(admitted.address())
            .with_closing(admitted.closing())
            .with_admission(admitted.admission_mark());
        let admitted = Arc::clone(admitted);
        let router = self.router.clone();
        let service = MapRequest::new(router, move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(caller.clone());
            request.extensions_mut().insert(admitted.clone());
            request
        });
        serve_http(stream, service, HTTP_2, &self.shutdown).await;
    }
}
