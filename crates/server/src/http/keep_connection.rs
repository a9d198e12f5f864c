//! Keeps a connection from being closed for another one while a response is sent.

use crate::connections::{Admitted, Busy};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Keeps the connection of the request until its response is sent.
pub(super) async fn keep_connection(request: Request, next: Next) -> Response {
    let connection: Option<Arc<Admitted>> = request.extensions().get().cloned();
    let response = next.run(request).await;
    let Some(connection) = connection else {
        return response;
    };
    let busy = connection.begin_request();
    response.map(|body| Body::new(KeptBody { body, _busy: busy }))
}

/// A body whose connection is kept until it is dropped.
struct KeptBody {
    body: Body,
    _busy: Busy,
}

impl HttpBody for KeptBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::{Admission, Bounds};
    use axum::Router;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use std::net::{IpAddr, Ipv4Addr};
    use tower::ServiceExt;

    #[tokio::test]
    async fn a_connection_is_kept_until_its_response_is_sent() {
        let bounds = Bounds {
            total_max: 3,
            address_max: 3,
            handshakes_max: 1,
        };
        let admission = Admission::new(bounds);
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let admitted = Arc::new(admission.admit(address).expect("it is admitted"));
        let router = Router::new()
            .route("/", get(async || "x"))
            .layer(from_fn(keep_connection));
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(admitted.clone());
        let response = router.oneshot(request).await.expect("infallible");
        assert_eq!(response.body().size_hint().exact(), Some(1));
        drop(admission.admit(address).expect("it is admitted"));
        drop(admission.admit(address).expect("it is admitted"));
        assert!(
            !admitted.closing().is_cancelled(),
            "its response is not sent"
        );
        drop(response);
        let _next = admission.admit(address).expect("it is admitted");
        assert!(admitted.closing().is_cancelled(), "it is idle");
    }
}
