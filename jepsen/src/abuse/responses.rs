//! Attacks by callers that do not read.

use super::arena::{Arena, Port};
use super::{Abuse, Needs};
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
/// The keys that a large response has.
const KEYS: usize = 32;
/// The size of their values, in bytes.
const VALUE_BYTES: usize = 64 << 10;
/// What a caller lets the node send of a response, in bytes.
const WINDOW_BYTES: u32 = 1;

/// Calls whose responses are not read.
#[derive(Clone)]
pub(super) struct UnreadResponses {
    name: &'static str,
    responses: &'static str,
    /// Calls to all nodes together.
    calls: usize,
    /// Calls on one connection.
    calls_per_connection: usize,
    /// A request for all keys with a prefix, as it is sent: the prefix of a message in gRPC, and field 2.
    scan: &'static [u8],
    /// The memory of each node, in bytes.
    memory_bytes: u64,
}

impl UnreadResponses {
    /// Large responses.
    pub(super) const LARGE: Self = Self {
        name: "unread-responses",
        responses: "responses of 2 MiB",
        calls: 3_000,
        calls_per_connection: 250,
        scan: b"\0\0\0\0\x08\x12\x06unread",
        memory_bytes: 1 << 30,
    };
    /// Responses that are nearly empty. With 8 KiB each, they would use up the memory of requests.
    pub(super) const SMALL: Self = Self {
        name: "unread-small-responses",
        responses: "small responses",
        calls: 27_000,
        calls_per_connection: 3_000,
        scan: b"\0\0\0\0\x06\x12\x04none",
        memory_bytes: 512 << 20,
    };

    /// Makes calls on one connection and reads no response.
    async fn leave_unread(&self, address: SocketAddrV4) {
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let Ok(endpoint) = endpoint else { return };
        let endpoint = endpoint.initial_stream_window_size(WINDOW_BYTES);
        let channel = endpoint.connect_lazy();
        let calls = (0..self.calls_per_connection).map(|_| {
            let mut channel = channel.clone();
            async move {
                loop {
                    let ready = std::future::poll_fn(|context| channel.poll_ready(context)).await;
                    let unread = match ready {
                        Ok(()) => channel.call(self.request()).await.ok(),
                        Err(_) => None,
                    };
                    sleep(HOLD).await;
                    drop(unread);
                }
            }
        });
        join_all(calls).await;
    }

    fn request(&self) -> http::Request<Body> {
        http::Request::post("/flotilla.v1.KvService/ScanKeys")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Body::new(Full::new(Bytes::from_static(self.scan))))
            .expect("the headers are valid")
    }
}

impl Abuse for UnreadResponses {
    fn name(&self) -> &'static str {
        self.name
    }

    fn needs(&self) -> Needs {
        Needs {
            memory_bytes: self.memory_bytes,
            ..Needs::default()
        }
    }

    fn prepare(&mut self, arena: &mut Arena) {
        let client = arena.client(0, CALL_TIMEOUT);
        for number in 0..KEYS {
            let set = client.set_key(v1::SetKeyRequest {
                key: format!("unread-{number}"),
                value: Bytes::from(vec![b'x'; VALUE_BYTES]),
                request_id: new_request_id(),
                ..v1::SetKeyRequest::default()
            });
            arena.runtime.block_on(set).expect("the key is set");
        }
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let addresses = arena.addresses(Port::Clients);
        for number in 0..self.calls / self.calls_per_connection {
            let (attack, address) = (self.clone(), addresses[number % addresses.len()]);
            arena.spawn(async move { attack.leave_unread(address).await });
        }
        format!("{} calls whose {} are not read", self.calls, self.responses)
    }
}
