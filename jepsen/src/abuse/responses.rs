//! Attacks by callers that do not read.

use super::Abuse;
use super::arena::{Arena, Port};
use flotilla_client::{new_request_id, v1};
use futures::future::join_all;
use http_body_util::Full;
use std::net::SocketAddrV4;
use std::time::Duration;
use tokio::time::sleep;
use tonic::body::Body;
use tonic::codegen::{Bytes, Service, http};
use tonic::transport::Endpoint;

/// How long a caller leaves a response unread before it makes the next call; the node may have ended it by then.
const HOLD: Duration = Duration::from_secs(15);
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// A request for all keys whose names begin with `unread`, as it is sent: the prefix of a message in gRPC, and field 2.
const SCAN: &[u8] = b"\0\0\0\0\x08\x12\x06unread";

/// Calls whose responses are not read.
pub(super) struct UnreadResponses;

impl UnreadResponses {
    /// Calls to all nodes together.
    const CALLS: usize = 3_000;
    /// Calls on one connection.
    const STREAMS: usize = 250;
    /// The keys in each response: 2 MiB.
    const KEYS: usize = 32;
    /// The size of their values, in bytes.
    const VALUE_BYTES: usize = 64 << 10;
    /// What a caller lets the node send of a response, in bytes.
    const WINDOW_BYTES: u32 = 1;
}

impl Abuse for UnreadResponses {
    fn name(&self) -> &'static str {
        "unread-responses"
    }

    fn prepare(&mut self, arena: &mut Arena) {
        let client = arena.client(0, CALL_TIMEOUT);
        for number in 0..Self::KEYS {
            let set = client.set_key(v1::SetKeyRequest {
                key: format!("unread-{number}"),
                value: Bytes::from(vec![b'x'; Self::VALUE_BYTES]),
                request_id: new_request_id(),
                ..v1::SetKeyRequest::default()
            });
            arena.runtime.block_on(set).expect("the key is set");
        }
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let addresses = arena.addresses(Port::Clients);
        for number in 0..Self::CALLS / Self::STREAMS {
            arena.spawn(leave_unread(addresses[number % addresses.len()]));
        }
        format!(
            "{} calls whose responses of 2 MiB are not read",
            Self::CALLS
        )
    }
}

/// Makes calls on one connection and reads no response.
async fn leave_unread(address: SocketAddrV4) {
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let Ok(endpoint) = endpoint else { return };
    let endpoint = endpoint.initial_stream_window_size(UnreadResponses::WINDOW_BYTES);
    let channel = endpoint.connect_lazy();
    let calls = (0..UnreadResponses::STREAMS).map(|_| {
        let mut channel = channel.clone();
        async move {
            loop {
                let ready = std::future::poll_fn(|context| channel.poll_ready(context)).await;
                let unread = match ready {
                    Ok(()) => channel.call(request()).await.ok(),
                    Err(_) => None,
                };
                sleep(HOLD).await;
                drop(unread);
            }
        }
    });
    join_all(calls).await;
}

fn request() -> http::Request<Body> {
    http::Request::post("/flotilla.v1.KvService/ScanKeys")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Full::new(Bytes::from_static(SCAN))))
        .expect("the headers are valid")
}
