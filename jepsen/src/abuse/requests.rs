//! Attacks by requests: many, large, or never complete.

use super::arena::{Arena, Port};
use super::load::LoadKind;
use super::{Abuse, Needs};
use flotilla_client::{Client, new_request_id, v1};
use futures::stream::{self, StreamExt};
use http_body_util::StreamBody;
use hyper::body::Frame;
use std::convert::Infallible;
use std::net::SocketAddrV4;
use std::time::Duration;
use tokio::time::sleep;
use tonic::body::Body;
use tonic::codegen::{Bytes, Service, http};
use tonic::transport::Endpoint;

/// How long a caller waits before it repeats a call that the node has ended.
const REPEAT_PAUSE: Duration = Duration::from_secs(5);
/// How long a call of an attacker may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest payload of a record or a signal, in bytes.
const PAYLOAD_BYTES: usize = (1 << 20) - 64;

/// Calls whose message never arrives.
pub(super) struct StalledBodies;

impl StalledBodies {
    /// Calls to all nodes together.
    const CALLS: usize = 16_384;
    /// Calls on one connection.
    const STREAMS: usize = 1_024;
    /// The head of a message of 3 MiB.
    const HEAD: &[u8] = &[0, 0, 0x30, 0, 0];
    /// What arrives of the message, in bytes.
    const ARRIVING: usize = 1 << 10;
}

impl Abuse for StalledBodies {
    fn name(&self) -> &'static str {
        "stalled-bodies"
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let addresses = arena.addresses(Port::Clients);
        for number in 0..Self::CALLS / Self::STREAMS {
            let address = addresses[number % addresses.len()];
            arena.spawn(stall(address));
        }
        format!(
            "{} calls whose 3 MiB message arrives only in part",
            Self::CALLS
        )
    }
}

/// Makes calls on one connection whose messages stop after their first bytes; again when they are ended.
async fn stall(address: SocketAddrV4) {
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let Ok(endpoint) = endpoint else { return };
    let channel = endpoint.connect_lazy();
    let calls = (0..StalledBodies::STREAMS).map(|_| {
        let mut channel = channel.clone();
        async move {
            loop {
                let sent = std::future::poll_fn(|context| channel.poll_ready(context)).await;
                if sent.is_ok() {
                    // The node ends it, with an error.
                    let _ = channel.call(stalled_request()).await;
                }
                sleep(REPEAT_PAUSE).await;
            }
        }
    });
    futures::future::join_all(calls).await;
}

fn stalled_request() -> http::Request<Body> {
    let mut first = StalledBodies::HEAD.to_vec();
    first.resize(StalledBodies::ARRIVING, b'x');
    let first = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(first)))]);
    let body = Body::new(StreamBody::new(first.chain(stream::pending())));
    http::Request::post("/flotilla.v1.StreamService/AppendRecords")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .expect("the headers are valid")
}

/// Large requests while the cluster elects a leader.
pub(super) struct LargeRequests;

impl LargeRequests {
    const CLIENTS: usize = 300;
    /// Records of one request, each of the maximum size.
    const RECORDS: usize = 3;
    /// How long the former leader is down.
    const ABSENCE: Duration = Duration::from_millis(500);
}

impl Abuse for LargeRequests {
    fn name(&self) -> &'static str {
        "large-requests"
    }

    fn needs(&self) -> Needs {
        // The attackers have as much right to the disk as the others.
        Needs::of_leader()
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let leader = arena.cluster.leader();
        for number in 0..Self::CLIENTS {
            let client = arena.client(number, CALL_TIMEOUT);
            arena.spawn(append(client, Self::RECORDS));
        }
        arena.pass(Duration::from_secs(2));
        arena.cluster.kill(leader);
        arena.pass(Self::ABSENCE);
        arena.cluster.restart(leader);
        format!(
            "{} clients append {} MiB each, while the leader is killed",
            Self::CLIENTS,
            Self::RECORDS
        )
    }
}

async fn append(client: Client, count: usize) {
    let payload = Bytes::from(vec![b'x'; PAYLOAD_BYTES]);
    loop {
        let record = v1::NewRecord {
            payload: payload.clone(),
            ..v1::NewRecord::default()
        };
        let request = v1::AppendRecordsRequest {
            stream: "large".to_owned(),
            records: vec![record; count],
            request_id: new_request_id(),
            ..v1::AppendRecordsRequest::default()
        };
        // It may be shed.
        let _ = client.append_records(request).await;
    }
}

/// A namespace that asks for far more than its share.
pub(super) struct NoisyNamespace;

impl NoisyNamespace {
    /// Clients that make one call after the other, in place of the few quiet ones of the other namespace.
    const CLIENTS: usize = 80;
}

impl Abuse for NoisyNamespace {
    fn name(&self) -> &'static str {
        "noisy-namespace"
    }

    fn needs(&self) -> Needs {
        Needs {
            load: LoadKind::Quiet,
            ..Needs::default()
        }
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        for number in 0..Self::CLIENTS {
            let client = arena.client(number, CALL_TIMEOUT).with_namespace("noisy");
            arena.spawn(async move {
                loop {
                    let request = v1::SetKeyRequest {
                        key: format!("noise-{number}"),
                        value: Bytes::from_static(b"1"),
                        request_id: new_request_id(),
                        ..v1::SetKeyRequest::default()
                    };
                    // It may be shed.
                    let _ = client.set_key(request).await;
                }
            });
        }
        format!(
            "{} clients of one namespace write as fast as they can, and 4 of another 20 times a second",
            Self::CLIENTS
        )
    }
}

/// Many watchers of one large run.
#[derive(Default)]
pub(super) struct Watchers {
    run_id: String,
}

impl Watchers {
    const WATCHERS: usize = 200;
    /// Steps with an output of the maximum size.
    const STEPS: usize = 40;
    /// The pause between two events of the run.
    const EVENT_PAUSE: Duration = Duration::from_millis(100);

    fn definition() -> String {
        let steps = (1..=Self::STEPS).map(|number| {
            format!("  - name: part-{number}\n    waitForSignal: {{type: part-{number}, timeoutMs: 3600000}}\n")
        });
        let steps: String = steps.collect();
        format!(
            "kind: Workflow\nname: large\nversion: \"1\"\nsteps:\n{steps}  - name: last\n    waitForSignal: {{type: last, timeoutMs: 3600000}}\n"
        )
    }
}

impl Abuse for Watchers {
    fn name(&self) -> &'static str {
        "watchers"
    }

    fn prepare(&mut self, arena: &mut Arena) {
        let create = ["workflow", "create", "-f", "-"];
        let flo = arena.cluster.flo();
        let created = flo.run_with_input(&create, Self::definition().as_bytes());
        let _ = created.success();
        let client = arena.client(0, CALL_TIMEOUT);
        self.run_id = arena.runtime.block_on(async {
            let request = v1::StartRunRequest {
                workflow: "large".to_owned(),
                request_id: new_request_id(),
                ..v1::StartRunRequest::default()
            };
            let started = client.start_run(request).await;
            let run_id = started.expect("the workflow exists").run_id;
            for number in 1..=Self::STEPS {
                let payload = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES));
                let sent = signal(&client, &run_id, &format!("part-{number}"), payload).await;
                sent.expect("the run waits for it");
            }
            run_id
        });
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        for number in 0..Self::WATCHERS {
            let client = arena.client(number, CALL_TIMEOUT);
            let request = v1::WatchRunRequest {
                run_id: self.run_id.clone(),
                ..v1::WatchRunRequest::default()
            };
            arena.spawn(async move {
                loop {
                    let mut updates = client.watch_run(request.clone());
                    while let Some(Ok(_)) = updates.next().await {}
                    sleep(Duration::from_millis(200)).await;
                }
            });
        }
        let (client, run_id) = (arena.client(1, CALL_TIMEOUT), self.run_id.clone());
        arena.spawn(async move {
            loop {
                sleep(Self::EVENT_PAUSE).await;
                // No step waits for it, so the run keeps it: an event each.
                let _ = signal(&client, &run_id, "noise", "1".to_owned()).await;
            }
        });
        format!(
            "{} watchers of a run with outputs of {} MiB and an event every {} ms",
            Self::WATCHERS,
            Self::STEPS,
            Self::EVENT_PAUSE.as_millis()
        )
    }
}

async fn signal(
    client: &Client,
    run_id: &str,
    signal_type: &str,
    payload: String,
) -> Result<(), flotilla_client::ClientError> {
    let request = v1::SignalRunRequest {
        run_id: run_id.to_owned(),
        r#type: signal_type.to_owned(),
        payload: payload.into(),
        request_id: new_request_id(),
        ..v1::SignalRunRequest::default()
    };
    client.signal_run(request).await.map(drop)
}
