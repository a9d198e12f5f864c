//! Attacks by requests: many, large, or never complete.

use super::arena::{Arena, Port};
use super::load::{LoadKind, Served};
use super::{Abuse, Needs};
use flotilla_client::{Client, new_request_id, v1};
use futures::stream::{self, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use std::convert::Infallible;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Calls whose message arrives only in part.
#[derive(Clone)]
pub(super) struct Stalled {
    name: &'static str,
    /// The method that is called.
    path: &'static str,
    /// Calls to all nodes that take them.
    calls: usize,
    /// Calls on one connection.
    calls_per_connection: usize,
    /// The size of each message, in mebibytes.
    message_mib: u8,
    /// What arrives of each message, in bytes.
    arriving: usize,
    /// Whether only the leader takes the calls.
    is_for_leader: bool,
}

impl Stalled {
    /// Requests that are one message.
    pub(super) const BODIES: Self = Self {
        name: "stalled-bodies",
        path: "/flotilla.v1.StreamService/AppendRecords",
        calls: 16_384,
        calls_per_connection: 1_024,
        message_mib: 3,
        arriving: 1 << 10,
        is_for_leader: false,
    };
    /// Streams of workers, whose first message is large.
    pub(super) const STREAMS: Self = Self {
        name: "stalled-streams",
        path: "/flotilla.v1.WorkerService/Stream",
        calls: 3_000,
        calls_per_connection: 250,
        message_mib: 4,
        arriving: 1 << 20,
        is_for_leader: true,
    };

    /// A call of which `arriving` follows the head of its message, and nothing after it.
    fn request(&self, arriving: Bytes) -> http::Request<Body> {
        // It is not compressed; its length in four bytes.
        let head = [0, 0, self.message_mib << 4, 0, 0];
        let first = [Bytes::from(head.to_vec()), arriving];
        let first = stream::iter(first).map(|part| Ok::<_, Infallible>(Frame::data(part)));
        let body = Body::new(StreamBody::new(first.chain(stream::pending())));
        http::Request::post(self.path)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(body)
            .expect("the headers are valid")
    }

    /// Makes calls on one connection whose messages stop after their first bytes; again when they are ended.
    async fn stall(&self, address: SocketAddrV4) {
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let Ok(endpoint) = endpoint else { return };
        let channel = endpoint.connect_lazy();
        let arriving = Bytes::from(vec![b'x'; self.arriving]);
        let calls = (0..self.calls_per_connection).map(|_| {
            let (mut channel, arriving) = (channel.clone(), arriving.clone());
            async move {
                loop {
                    let ready = std::future::poll_fn(|context| channel.poll_ready(context)).await;
                    if ready.is_ok()
                        && let Ok(mut response) = channel.call(self.request(arriving.clone())).await
                    {
                        // The node ends it, with an error.
                        while let Some(Ok(_)) = response.body_mut().frame().await {}
                    }
                    sleep(REPEAT_PAUSE).await;
                }
            }
        });
        futures::future::join_all(calls).await;
    }
}

impl Abuse for Stalled {
    fn name(&self) -> &'static str {
        self.name
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let addresses = match self.is_for_leader {
            true => vec![arena.leader_address()],
            false => arena.addresses(Port::Clients),
        };
        for number in 0..self.calls / self.calls_per_connection {
            let (call, address) = (self.clone(), addresses[number % addresses.len()]);
            arena.spawn(async move { call.stall(address).await });
        }
        format!(
            "{} calls whose message of {} MiB arrives only in part",
            self.calls, self.message_mib
        )
    }
}

/// Large requests while the cluster elects a leader.
#[derive(Default)]
pub(super) struct LargeRequests {
    /// Those that succeeded.
    appended: Arc<AtomicU64>,
}

impl LargeRequests {
    const CLIENTS: usize = 300;
    /// Records of one request, each of the maximum size.
    const RECORDS: usize = 3;
    /// How many of the requests must succeed: otherwise, the attack is too weak. Most wait for the whole attack, because nodes
    /// refuse them and the clients retry: the other namespace keeps its share of the log and of the memory.
    const APPENDED_MIN: u64 = 10;
    /// How long the former leader is down.
    const ABSENCE: Duration = Duration::from_millis(500);
}

impl Abuse for LargeRequests {
    fn name(&self) -> &'static str {
        "large-requests"
    }

    fn needs(&self) -> Needs {
        Needs {
            // In production, the clients of the two namespaces have their own machines.
            attackers_nice: 19,
            ..Needs::of_leader()
        }
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let leader = arena.cluster.leader();
        for number in 0..Self::CLIENTS {
            let client = arena.attacker(number, CALL_TIMEOUT).with_namespace("large");
            arena.spawn(append(client, Self::RECORDS, self.appended.clone()));
        }
        arena.pass(Duration::from_secs(2));
        arena.cluster.kill(leader);
        arena.pass(Self::ABSENCE);
        arena.cluster.restart(leader);
        format!(
            "{} clients of another namespace append {} MiB each, again and again, while the leader is killed",
            Self::CLIENTS,
            Self::RECORDS
        )
    }

    fn shortfall(&self, _: &Served) -> Option<String> {
        let appended = self.appended.load(Ordering::Relaxed);
        (appended < Self::APPENDED_MIN).then(|| {
            format!(
                "expected at least {} large requests to succeed, but {appended} did",
                Self::APPENDED_MIN
            )
        })
    }
}

async fn append(client: Client, count: usize, appended: Arc<AtomicU64>) {
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
        if client.append_records(request).await.is_ok() {
            appended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A namespace that asks for far more than its share.
#[derive(Default)]
pub(super) struct NoisyNamespace {
    /// Its calls that succeeded.
    calls: Arc<AtomicU64>,
}

impl NoisyNamespace {
    /// Clients that make one call after the other, in place of the few quiet ones of the other namespace.
    const CLIENTS: usize = 80;
    /// The minimum ratio of its successful calls to the calls of the other namespace.
    const CALLS_RATIO_MIN: u64 = 20;
}

impl Abuse for NoisyNamespace {
    fn name(&self) -> &'static str {
        "noisy-namespace"
    }

    fn needs(&self) -> Needs {
        Needs {
            load: LoadKind::Quiet,
            // In production, the two namespaces' clients have their own machines.
            attackers_nice: 19,
            ..Needs::default()
        }
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        for number in 0..Self::CLIENTS {
            let client = arena.attacker(number, CALL_TIMEOUT).with_namespace("noisy");
            let calls = self.calls.clone();
            arena.spawn(async move {
                loop {
                    let request = v1::SetKeyRequest {
                        key: format!("noise-{number}"),
                        value: Bytes::from_static(b"1"),
                        request_id: new_request_id(),
                        ..v1::SetKeyRequest::default()
                    };
                    // It may be shed.
                    if client.set_key(request).await.is_ok() {
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        format!(
            "{} clients of one namespace write as fast as they can, and 4 of another 20 times a second",
            Self::CLIENTS
        )
    }

    fn shortfall(&self, attacked: &Served) -> Option<String> {
        let (calls, calls_min) = (
            self.calls.load(Ordering::Relaxed),
            Self::CALLS_RATIO_MIN * attacked.calls,
        );
        (calls < calls_min).then(|| {
            format!("expected at least {calls_min} calls of the noisy namespace to succeed, but {calls} did")
        })
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
            let client = arena.attacker(number, CALL_TIMEOUT);
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
        let (client, run_id) = (arena.attacker(1, CALL_TIMEOUT), self.run_id.clone());
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
