//! Refuses calls at the peer port that do not carry the secret of the members, and ends those in progress whose secret is no
//! longer accepted (X14).

use crate::network::caller::Caller;
use crate::network::member_secret::{MemberRefusal, MemberSecret, shown};
use crate::network::refusal_log::RefusalLog;
use futures::future::{BoxFuture, Either, Shared, pending, ready, select};
use futures::{FutureExt, StreamExt};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::codegen::{Body as _, Service};
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Status};
use tower::Layer;

/// The call that every caller may make: a node that is about to join is not a member.
pub(crate) const PROBE: &str = "Probe";

/// Wraps the services at the peer port.
#[derive(Clone, Default)]
pub(crate) struct MemberGuard {
    /// Unset if certificates say who is a member, or if no caller must prove it.
    secret: Option<Arc<dyn MemberSecret>>,
    log: Arc<RefusalLog>,
}

/// The services behind the guard.
#[derive(Clone)]
pub(crate) struct Guarded<S> {
    guard: MemberGuard,
    inner: S,
}

/// Marks a probe whose caller has not proved that it is a member.
#[derive(Clone, Copy, Debug)]
struct Unproven;

/// Resolves once a call may not continue.
type Ended = Shared<BoxFuture<'static, MemberRefusal>>;

impl MemberGuard {
    /// Checks this secret.
    pub(crate) fn new(secret: Option<Arc<dyn MemberSecret>>) -> Self {
        Self {
            secret,
            log: Arc::default(),
        }
    }

    /// Logs a refused call.
    fn log(&self, refusal: MemberRefusal, extensions: &Extensions) {
        let address = extensions.get::<Caller>().and_then(Caller::address);
        if self.log.is_due(address) {
            let MemberRefusal { message, hint } = refusal;
            tracing::warn!(
                ?address,
                hint,
                "a call at the peer port was refused: {message}"
            );
        }
    }
}

/// Whether the caller of a probe may count as a member.
pub(crate) fn is_proven(extensions: &Extensions) -> bool {
    extensions.get::<Unproven>().is_none()
}

impl<S> Layer<S> for MemberGuard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            guard: self.clone(),
            inner,
        }
    }
}

impl<S> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Future: Send + 'static>,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Some(secret) = &self.guard.secret else {
            return Box::pin(self.inner.call(request));
        };
        // Before the check, so that no change is missed.
        let changes = secret.changes();
        let shown = shown(&MetadataMap::from_headers(request.headers().clone()));
        let checked = secret.check(shown.as_deref());
        if request.uri().path().rsplit('/').next() == Some(PROBE) {
            if checked.is_err() {
                request.extensions_mut().insert(Unproven);
            }
            return Box::pin(self.inner.call(request));
        }
        if let Err(refusal) = checked {
            self.guard.log(refusal, request.extensions());
            return Box::pin(ready(Ok(Status::from(refusal).into_http())));
        }
        let ended = ended(Arc::clone(secret), shown, changes);
        let serving = self.inner.call(request.map(|body| until(body, &ended)));
        Box::pin(serve(serving.boxed(), ended))
    }
}

/// Serves a call as long as it may continue.
async fn serve<E>(
    serving: BoxFuture<'static, Result<Response<Body>, E>>,
    ended: Ended,
) -> Result<Response<Body>, E> {
    match select(serving, ended.clone()).await {
        Either::Left((response, _)) => {
            Ok(response?.map(|body| with_status(until(body, &ended), ended)))
        }
        Either::Right((refusal, _)) => Ok(Status::from(refusal).into_http()),
    }
}

/// Waits until what a call shows is no longer accepted.
fn ended(
    secret: Arc<dyn MemberSecret>,
    shown: Option<Vec<u8>>,
    mut changes: watch::Receiver<u64>,
) -> Ended {
    let ended = async move {
        loop {
            if changes.changed().await.is_err() {
                return pending().await;
            }
            if let Err(refusal) = secret.check(shown.as_deref()) {
                return refusal;
            }
        }
    };
    ended.boxed().shared()
}

/// The body as far as it arrives before the call ends.
fn until(body: Body, ended: &Ended) -> Body {
    if body.is_end_stream() {
        return body;
    }
    Body::new(StreamBody::new(
        BodyStream::new(body).take_until(ended.clone()),
    ))
}

/// The body, with the status of the refusal at the end of one that was cut off.
fn with_status(body: Body, ended: Ended) -> Body {
    if body.is_end_stream() {
        return body;
    }
    Body::new(body.with_trailers(async move {
        let mut trailers = HeaderMap::new();
        let refusal = Status::from(*ended.peek()?);
        // A status without unusual metadata always is a header.
        refusal.add_header(&mut trailers).ok()?;
        Some(Ok(trailers))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::member_secret::{MemberSecretInterceptor, MemberState};
    use futures::stream;
    use std::collections::BTreeSet;
    use std::convert::Infallible;
    use std::sync::{Mutex, PoisonError};
    use tokio::sync::oneshot;
    use tonic::codegen::Bytes;
    use tonic::service::Interceptor;
    use tonic::{Code, Request as Call};
    use tower::ServiceExt;

    const REFUSAL: MemberRefusal = MemberRefusal {
        message: "expected a member, but it is none",
        hint: "become one",
    };

    /// Accepts some secrets, of which the node itself has the first.
    struct Accepted {
        secrets: Mutex<BTreeSet<u8>>,
        changes: watch::Sender<u64>,
    }

    impl Accepted {
        fn these(secrets: &[u8]) -> Arc<Self> {
            Arc::new(Self {
                secrets: Mutex::new(secrets.iter().copied().collect()),
                changes: watch::Sender::new(0),
            })
        }

        fn set(&self, secrets: &[u8]) {
            *self.secrets.lock().unwrap_or_else(PoisonError::into_inner) =
                secrets.iter().copied().collect();
            self.changes.send_modify(|changes| *changes += 1);
        }

        fn secrets(&self) -> BTreeSet<u8> {
            let secrets = self.secrets.lock();
            secrets.unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl MemberSecret for Accepted {
        fn own(&self) -> Option<Vec<u8>> {
            Some(vec![*self.secrets().first()?])
        }

        fn check(&self, shown: Option<&[u8]>) -> Result<(), MemberRefusal> {
            let [shown] = shown.ok_or(REFUSAL)? else {
                return Err(REFUSAL);
            };
            self.secrets().get(shown).map(drop).ok_or(REFUSAL)
        }

        fn changes(&self) -> watch::Receiver<u64> {
            self.changes.subscribe()
        }

        fn follow(self: Arc<Self>, _: MemberState) {}
    }

    /// A request to this method of a member that has the secret.
    fn request(method: &str, secret: Option<u8>, body: Body) -> Request<Body> {
        let secret = secret.map(|secret| Accepted::these(&[secret]) as Arc<dyn MemberSecret>);
        let call = MemberSecretInterceptor::new(secret).call(Call::new(()));
        let metadata = call.expect("it is never refused").into_parts().0;
        let mut request = Request::new(body);
        *request.uri_mut() = format!("/flotilla.peer.Peer/{method}")
            .parse()
            .expect("a path");
        *request.headers_mut() = metadata.into_headers();
        request
    }

    fn status(response: &Response<Body>) -> Option<Status> {
        Status::from_header_map(response.headers())
    }

    #[tokio::test]
    async fn a_call_needs_the_secret_and_a_probe_is_only_marked() {
        let inner = tower::service_fn(async |request: Request<Body>| {
            let proven = is_proven(request.extensions());
            let response = Response::builder().header("proven", proven.to_string());
            Ok::<_, Infallible>(response.body(Body::empty()).expect("a response"))
        });
        let guard = MemberGuard::new(Some(Accepted::these(&[1, 2])));
        let call = async |method: &str, secret| {
            let service = guard.layer(inner);
            let response = service
                .oneshot(request(method, secret, Body::empty()))
                .await;
            let response = response.expect("infallible");
            let proven = response.headers().get("proven").cloned();
            (status(&response).map(|status| status.code()), proven)
        };
        for secret in [None, Some(3)] {
            assert_eq!(
                call("Vote", secret).await,
                (Some(Code::PermissionDenied), None)
            );
            let marked = call(PROBE, secret).await.1;
            assert_eq!(marked.expect("it is served"), "false");
        }
        for secret in [Some(1), Some(2)] {
            for method in ["Vote", PROBE] {
                let proven = call(method, secret).await.1;
                assert_eq!(proven.expect("it is served"), "true");
            }
        }
        let open = MemberGuard::default().layer(inner);
        let served = open.oneshot(request("Vote", None, Body::empty())).await;
        assert!(status(&served.expect("infallible")).is_none());
    }

    #[tokio::test]
    async fn an_open_stream_ends_when_its_secret_is_no_longer_accepted() {
        let accepted = Accepted::these(&[1]);
        let (ended_in, request_end) = oneshot::channel::<usize>();
        let ended_in = Mutex::new(Some(ended_in));
        // Responds with bytes that never end, and reads the request.
        let inner = tower::service_fn(move |request: Request<Body>| {
            let ended_in = ended_in
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            tokio::spawn(async move {
                let frames = BodyStream::new(request.into_body()).count().await;
                ended_in.map(|ended_in| ended_in.send(frames))
            });
            let frames = stream::iter([Bytes::from_static(b"one")]).chain(stream::pending());
            let body = http_body_util::StreamBody::new(
                frames.map(|bytes| Ok::<_, Status>(hyper::body::Frame::data(bytes))),
            );
            ready(Ok::<_, Infallible>(Response::new(Body::new(body))))
        });
        let guard = MemberGuard::new(Some(accepted.clone()));
        let sending = stream::pending::<Result<_, Status>>();
        let body = Body::new(StreamBody::new(
            sending.map(|frame: Result<Bytes, Status>| frame.map(hyper::body::Frame::data)),
        ));
        let served = guard
            .layer(inner)
            .oneshot(request("Append", Some(1), body))
            .await;
        let mut response = served.expect("infallible").into_body();
        let first = response
            .frame()
            .await
            .expect("a frame")
            .expect("it is read");
        assert_eq!(first.into_data().expect("data"), "one");
        // The key of the call stays in the keyring when another becomes the first one.
        accepted.set(&[1, 2]);
        assert!(response.frame().now_or_never().is_none());
        accepted.set(&[2]);
        let last = response
            .frame()
            .await
            .expect("a frame")
            .expect("it is read");
        let trailers = last.into_trailers().expect("trailers");
        let status = Status::from_header_map(&trailers).expect("a status");
        assert_eq!(status.code(), Code::PermissionDenied);
        assert!(response.frame().await.is_none());
        assert_eq!(request_end.await, Ok(0));
    }
}
