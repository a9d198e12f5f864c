//! Callers that wait at a node which is cut off from the other members.

use crate::node::{APPROVAL, Node, refused, start_of};
use crate::wait::until;
use flotilla_api::v1;
use flotilla_api::v1::watch_run_response::Update;
use flotilla_replica::{Accepted, Arrivals, Caller, Sockets};
use futures::StreamExt;
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Streaming};
use tower::service_fn;

/// Longer than a node takes to notice that it is cut off, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long the callers here would wait.
const WAIT: Duration = Duration::from_secs(300);

/// The links of a node to the other members, whole or cut.
#[derive(Clone, Default)]
struct Links(Arc<AtomicBool>);

impl Links {
    /// From now on, nothing passes in either direction, and no error is reported.
    fn cut(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn are_cut(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The sockets of a node whose links can be cut.
struct CuttableSockets {
    links: Links,
    inner: Arc<dyn Sockets>,
}

impl Sockets for CuttableSockets {
    fn channel(&self, endpoint: &Endpoint) -> Channel {
        let links = self.links.clone();
        let connect = move |uri: Uri| connect(links.clone(), uri);
        endpoint.connect_with_connector_lazy(service_fn(connect))
    }

    fn accept(&self, listener: TcpListener) -> Arrivals {
        let links = self.links.clone();
        let arrivals = self.inner.accept(listener).map(move |accepted| {
            let links = links.clone();
            Ok(Accepted::new(Cuttable(accepted?, links), Caller::default()))
        });
        Box::pin(arrivals)
    }
}

async fn connect(links: Links, uri: Uri) -> io::Result<TokioIo<Cuttable<TcpStream>>> {
    if links.are_cut() {
        return Err(io::Error::other("the link is cut"));
    }
    let address = uri.authority().expect("an endpoint has one").as_str();
    let stream = TcpStream::connect(address).await?;
    Ok(TokioIo::new(Cuttable(stream, links)))
}

/// A connection whose bytes are lost once its link is cut.
struct Cuttable<S>(S, Links);

impl<S: AsyncRead + Unpin> AsyncRead for Cuttable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.1.are_cut() {
            return Poll::Pending;
        }
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Cuttable<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.1.are_cut() {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Three nodes; the leader and a follower with its links.
struct Cluster {
    nodes: Vec<Node>,
    links: Vec<Links>,
    leader: usize,
}

impl Cluster {
    async fn start() -> Self {
        let links: Vec<Links> = (0..3).map(|_| Links::default()).collect();
        let nodes = Node::start_cluster_over(|id, inner| {
            let links = links[position(id)].clone();
            Arc::new(CuttableSockets { links, inner })
        })
        .await;
        let request = v1::GetStatusRequest {};
        let status = nodes[0].cluster().get_status(request).await.unwrap();
        let leader = position(status.into_inner().leader_id.unwrap());
        Self {
            nodes,
            links,
            leader,
        }
    }

    fn leader(&self) -> &Node {
        &self.nodes[self.leader]
    }

    fn follower(&self) -> usize {
        (self.leader + 1) % self.nodes.len()
    }
}

fn position(node_id: u64) -> usize {
    usize::try_from(node_id).unwrap() - 1
}

async fn watch(node: &Node, run_id: &str, after_seq: u64) -> Streaming<v1::WatchRunResponse> {
    let request = v1::WatchRunRequest {
        run_id: run_id.to_owned(),
        after_seq,
        ..Default::default()
    };
    let watched = node.workflows().watch_run(request).await;
    watched.unwrap().into_inner()
}

/// Follows a watch up to a status, and checks that no event is missing or repeated; returns the last event.
async fn follow(
    updates: &mut Streaming<v1::WatchRunResponse>,
    after_seq: u64,
    status: v1::RunStatus,
) -> u64 {
    let mut seq = after_seq;
    loop {
        match updates.message().await.unwrap().unwrap().update.unwrap() {
            Update::Event(event) => {
                assert_eq!(event.seq, seq + 1);
                seq = event.seq;
            }
            Update::Status(change) if change.status() == status => return seq,
            Update::Status(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_at_a_node_that_is_cut_off_and_is_resumed_at_another() {
    let cluster = Cluster::start().await;
    cluster.leader().create(APPROVAL).await;
    let run_id = cluster.leader().run(start_of("approval", "")).await.run_id;
    let cut_off = cluster.follower();
    let mut updates = watch(&cluster.nodes[cut_off], &run_id, 0).await;
    let seen = follow(&mut updates, 0, v1::RunStatus::Waiting).await;

    cluster.links[cut_off].cut();
    cluster.leader().signal(&run_id, "{}").await.unwrap();
    let ended = timeout(TIMEOUT, updates.message()).await;
    let ended = ended.expect("the node notices that it is cut off");
    assert_eq!(
        refused(ended),
        (Code::Unavailable, "node_standstill".to_owned())
    );

    let mut resumed = watch(cluster.leader(), &run_id, seen).await;
    let last = follow(&mut resumed, seen, v1::RunStatus::Completed).await;
    assert!(last > seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_at_a_leader_that_lost_its_quorum_is_sent_to_another_node() {
    let cluster = Cluster::start().await;
    let (leader, other) = (cluster.leader(), &cluster.nodes[cluster.follower()]);
    leader.create(APPROVAL).await;
    let action = v1::RegisterActionRequest {
        name: "charge".to_owned(),
        r#type: v1::ActionType::User.into(),
        ..Default::default()
    };
    leader.actions().register_action(action).await.unwrap();
    let stream = v1::CreateStreamRequest {
        name: "events".to_owned(),
        ..Default::default()
    };
    leader.streams().create_stream(stream).await.unwrap();
    let watched_id = leader.run(start_of("approval", "")).await.run_id;
    let mut updates = watch(leader, &watched_id, 0).await;
    follow(&mut updates, 0, v1::RunStatus::Waiting).await;

    let (mut actions, mut streams, mut workflows) =
        (leader.actions(), leader.streams(), leader.workflows());
    let start = v1::StartRunRequest {
        run_id: "started".to_owned(),
        wait: true,
        ..start_of("approval", "")
    };
    let starting = tokio::spawn(async move { workflows.start_run(patient(start)).await });
    let invocation = v1::InvokeActionRequest {
        name: "charge".to_owned(),
        wait: true,
        ..Default::default()
    };
    let invoking = tokio::spawn(async move { actions.invoke_action(patient(invocation)).await });
    let read = v1::ReadRecordsRequest {
        stream: "events".to_owned(),
        block_ms: u64::try_from(WAIT.as_millis()).unwrap(),
        ..Default::default()
    };
    let reading = tokio::spawn(async move { streams.read_records(read).await });
    until("both to be applied", async || is_begun(other).await).await;
    cluster.links[cluster.leader].cut();

    let ended = timeout(TIMEOUT, updates.message()).await;
    let (code, reason) = refused(ended.expect("the leader notices it"));
    assert_eq!(
        (code, reason.as_str()),
        (Code::Unavailable, "node_standstill")
    );
    // The run was started, so the call is not refused: the caller watches the run.
    let started = timeout(TIMEOUT, starting).await.unwrap().unwrap();
    assert_eq!(started.unwrap().into_inner().end, None);
    // A call that came too late to wait is refused too, for another reason.
    let invoked = timeout(TIMEOUT, invoking).await.unwrap().unwrap();
    assert_eq!(refused(invoked).0, Code::Unavailable);
    let read = timeout(TIMEOUT, reading).await.unwrap().unwrap();
    assert_eq!(refused(read).0, Code::Unavailable);
}

/// A request whose caller waits for long.
fn patient<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(WAIT);
    request
}

/// Whether the started run and the action run exist, as another node sees it.
async fn is_begun(node: &Node) -> Option<()> {
    let run = v1::GetRunRequest {
        run_id: "started".to_owned(),
        ..Default::default()
    };
    node.workflows().get_run(run).await.ok()?;
    let runs = v1::ListActionRunsRequest {
        name: "charge".to_owned(),
        ..Default::default()
    };
    let runs = node.actions().list_action_runs(runs).await.ok()?;
    (!runs.into_inner().items.is_empty()).then_some(())
}
