//! Keeps a connection from being closed for another one while a response is sent.

use crate::connections::Admitted;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use std::sync::Arc;

/// Keeps the connection of the request until its response is sent.
pub(super) async fn keep_connection(request: Request, next: Next) -> Response {
    let connection: Option<Arc<Admitted>> = request.extensions().get().cloned();
    let response = next.run(request).await;
    let Some(connection) = connection else {
        return response;
    };
    let busy = connection.begin_request();
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _sending = &busy;
            frame
        }))
    })
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
