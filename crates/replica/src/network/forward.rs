//! The requesting side of a long-lived stream to the leader: many requests, matched by id.
//!
//! There is one stream for commands, and one for everything else, so that a read does not wait behind large commands
//! ([`ForwardKind`]). The requests that wait for the transport are bounded by number and by size.

use crate::network::calls::{PeerCalls, PeerError, Responses};
use crate::network::local::{HOME_GROUP_ID, Local};
use crate::network::protocol::{
    ForwardRequest, ForwardResponse, Opened, forward_request, forward_response,
};
use flotilla_engine::limits::ENTRY_BYTES_MAX;
use futures::stream::{self, StreamExt};
use std::collections::HashMap;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;

/// The requests that wait for the transport of one stream; callers of further ones wait.
const QUEUE_MAX: usize = 1_024;
/// As [`QUEUE_MAX`], in bytes.
pub const QUEUE_BYTES_MAX: u32 = 32 << 20;
const _: () = assert!(QUEUE_BYTES_MAX as usize > ENTRY_BYTES_MAX);

/// What a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ForwardKind {
    /// Commands of callers, of any size.
    Commands,
    /// Everything that is small: read indexes, membership changes, housekeeping.
    Control,
}

/// Why a request has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardError {
    /// It certainly did not leave this node.
    NotSent,
    /// Nor did this one: too many others waited for the transport until the deadline.
    QueueFull,
    /// It may have arrived.
    Lost,
}

/// The peer at the other end of a stream.
pub(crate) struct ForwardPeer {
    pub(crate) local: Arc<Local>,
    pub(crate) node_id: u64,
    pub(crate) calls: Arc<dyn PeerCalls>,
}

/// A stream to one peer, opened on first use and reopened after failures.
pub(crate) struct ForwardLink {
    peer: ForwardPeer,
    id_next: AtomicU64,
    open: tokio::sync::Mutex<Option<Open>>,
    /// A permit for each byte that may still be queued.
    queue_bytes: Arc<Semaphore>,
}

/// A request that waits for the stream.
struct Queued {
    id: u64,
    deadline: Instant,
    body: forward_request::Body,
    _bytes: OwnedSemaphorePermit,
}

impl Queued {
    /// The request as it is sent; `None` once no caller waits for its response. It may wait for long: the stream may be
    /// blocked, or the process may be stopped meanwhile.
    fn in_time(self) -> Option<ForwardRequest> {
        let left = self.deadline.checked_duration_since(Instant::now())?;
        let timeout_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        (timeout_ms > 0).then_some(ForwardRequest {
            id: self.id,
            timeout_ms,
            body: Some(self.body),
        })
    }
}

#[derive(Clone)]
struct Open {
    requests: mpsc::Sender<Queued>,
    waiting: Arc<Waiting>,
}

type Answer = forward_response::Answer;

/// The callers that wait for responses; empty once the stream is broken.
#[derive(Default)]
struct Waiting {
    responses: Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>,
}

impl ForwardLink {
    pub(crate) fn new(peer: ForwardPeer) -> Self {
        Self {
            peer,
            id_next: AtomicU64::new(1),
            open: tokio::sync::Mutex::new(None),
            queue_bytes: Arc::new(Semaphore::new(QUEUE_BYTES_MAX as usize)),
        }
    }

    /// Sends a request, and waits for the response until `deadline`.
    pub(crate) async fn ask(
        &self,
        body: forward_request::Body,
        deadline: Instant,
    ) -> Result<Answer, ForwardError> {
        let opening = timeout_at(deadline, self.open()).await;
        let open = opening.unwrap_or(Err(ForwardError::NotSent))?;
        let length = u32::try_from(body.encoded_len()).unwrap_or(QUEUE_BYTES_MAX);
        let bytes = Arc::clone(&self.queue_bytes).acquire_many_owned(length.min(QUEUE_BYTES_MAX));
        let bytes = timeout_at(deadline, bytes).await;
        let bytes = bytes.map_err(|_| ForwardError::QueueFull)?;
        let bytes = bytes.expect("the semaphore is never closed");
        let id = self.id_next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        open.waiting.add(id, sender)?;
        let queued = Queued {
            id,
            deadline,
            body,
            _bytes: bytes,
        };
        let sent = timeout_at(deadline, open.requests.send(queued)).await;
        let sent = sent.map_err(|_| ForwardError::QueueFull);
        let sent = sent.and_then(|sent| sent.map_err(|_| ForwardError::NotSent));
        if let Err(error) = sent {
            open.waiting.remove(id);
            return Err(error);
        }
        let result = timeout_at(deadline, receiver).await;
        if result.is_err() {
            open.waiting.remove(id);
        }
        result.ok().and_then(Result::ok).ok_or(ForwardError::Lost)
    }

    /// The requests that wait for the transport. In bytes.
    pub(crate) fn queued_bytes(&self) -> usize {
        (QUEUE_BYTES_MAX as usize).saturating_sub(self.queue_bytes.available_permits())
    }

    async fn open(&self) -> Result<Open, ForwardError> {
        let mut open = self.open.lock().await;
        if let Some(open) = open.as_ref()
            && !open.requests.is_closed()
            && open.waiting.is_open()
        {
            return Ok(open.clone());
        }
        let (requests, receiver) = mpsc::channel(QUEUE_MAX);
        // The stream is open before it carries a request, so a failure here has sent none.
        let responses = self.peer.open(receiver).await?;
        let waiting = Arc::new(Waiting {
            responses: Mutex::new(Some(HashMap::new())),
        });
        tokio::spawn(deliver(responses, Arc::clone(&waiting)));
        Ok(open.insert(Open { requests, waiting }).clone())
    }
}

impl ForwardPeer {
    /// Opens a stream, and checks who serves it: another cluster may have taken over the peer's address.
    async fn open(
        &self,
        requests: mpsc::Receiver<Queued>,
    ) -> Result<Responses<ForwardResponse>, ForwardError> {
        let opening = ForwardRequest {
            id: 0,
            timeout_ms: 0,
            body: Some(forward_request::Body::Open(self.local.sender(self.node_id))),
        };
        let requests = ReceiverStream::new(requests).filter_map(|queued| ready(queued.in_time()));
        let requests = stream::iter([opening]).chain(requests);
        let not_opened = |error: PeerError| {
            tracing::debug!(node_id = self.node_id, %error, "no stream to the leader was opened");
            ForwardError::NotSent
        };
        let opened = self.calls.forward(Box::pin(requests)).await;
        let mut responses = opened.map_err(not_opened)?;
        match responses.next().await {
            Some(Ok(ForwardResponse {
                answer: Some(Answer::Opened(opened)),
                ..
            })) if self.is_served_by(&opened) => Ok(responses),
            Some(Err(error)) => Err(not_opened(error)),
            Some(Ok(_)) | None => Err(ForwardError::NotSent),
        }
    }

    fn is_served_by(&self, opened: &Opened) -> bool {
        self.local.cluster_id() == Some(&opened.cluster_id)
            && opened.group_id == HOME_GROUP_ID
            && self.node_id == opened.node_id
    }
}

/// Delivers responses until the stream breaks; callers that still wait notice the dropped sender.
async fn deliver(mut responses: Responses<ForwardResponse>, waiting: Arc<Waiting>) {
    while let Some(Ok(ForwardResponse { id, answer })) = responses.next().await {
        if let Some(sender) = waiting.remove(id)
            && let Some(answer) = answer
        {
            // A caller that is gone does not need the result.
            drop(sender.send(answer));
        }
    }
    waiting.close();
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, oneshot::Sender<Answer>>>> {
        self.responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: u64, sender: oneshot::Sender<Answer>) -> Result<(), ForwardError> {
        self.lock()
            .as_mut()
            .ok_or(ForwardError::NotSent)?
            .insert(id, sender);
        Ok(())
    }

    fn remove(&self, id: u64) -> Option<oneshot::Sender<Answer>> {
        self.lock().as_mut()?.remove(&id)
    }

    fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    fn close(&self) {
        *self.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{BlockingPool, Execution};
    use crate::network::calls::{PeerFuture, Requests};
    use crate::network::links::Links;
    use crate::network::protocol::{
        AppendRequest, AppendResponse, FetchSnapshotRequest, ProbeRequest, ProbeResponse,
        ReadIndex, SnapshotPart, SnapshotResponse, StatusRequest, StatusResponse,
        TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
    };
    use crate::network::transport::Transport;
    use crate::testing::{CLUSTER, local};
    use futures::future::{self, BoxFuture, join_all};
    use std::io;
    use std::net::SocketAddr;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    const TARGET: u64 = 1;
    const COMMAND_BYTES: u32 = 3 << 20;

    /// A peer that answers read indexes, and whose streams are stuck from the first command on.
    struct StuckPeer;

    fn unreachable<T: Send + 'static>() -> PeerFuture<'static, T> {
        let error = PeerError::Unreachable("it only takes forwarded requests".to_owned());
        Box::pin(future::ready(Err(error)))
    }

    async fn answer(
        mut requests: Requests<ForwardRequest>,
    ) -> Option<(ForwardResponse, Requests<ForwardRequest>)> {
        let ForwardRequest { id, body, .. } = requests.next().await?;
        let answer = match body {
            Some(forward_request::Body::Open(_)) => Answer::Opened(Opened {
                cluster_id: CLUSTER.to_owned(),
                node_id: TARGET,
                group_id: HOME_GROUP_ID,
            }),
            Some(forward_request::Body::ReadIndex(_)) => Answer::ReadIndex(7),
            _ => future::pending().await,
        };
        let answer = Some(answer);
        Some((ForwardResponse { id, answer }, requests))
    }

    impl PeerCalls for StuckPeer {
        fn append(&self, _: Requests<AppendRequest>) -> PeerFuture<'_, Responses<AppendResponse>> {
            unreachable()
        }

        fn vote(&self, _: VoteRequest) -> PeerFuture<'_, VoteResponse> {
            unreachable()
        }

        fn install_snapshot(&self, _: Requests<SnapshotPart>) -> PeerFuture<'_, SnapshotResponse> {
            unreachable()
        }

        fn fetch_snapshot(
            &self,
            _: FetchSnapshotRequest,
        ) -> PeerFuture<'_, Responses<SnapshotPart>> {
            unreachable()
        }

        fn transfer_leader(
            &self,
            _: TransferLeaderRequest,
        ) -> PeerFuture<'_, TransferLeaderResponse> {
            unreachable()
        }

        fn forward(
            &self,
            requests: Requests<ForwardRequest>,
        ) -> PeerFuture<'_, Responses<ForwardResponse>> {
            let responses = stream::unfold(requests, answer).map(Ok);
            let responses: Responses<ForwardResponse> = Box::pin(responses);
            Box::pin(future::ready(Ok(responses)))
        }

        fn status(&self, _: StatusRequest) -> PeerFuture<'_, StatusResponse> {
            unreachable()
        }

        fn probe(&self, _: ProbeRequest) -> PeerFuture<'_, ProbeResponse> {
            unreachable()
        }
    }

    impl Transport for StuckPeer {
        fn connect(&self, _: &str) -> Arc<dyn PeerCalls> {
            Arc::new(Self)
        }

        fn serve(
            &self,
            _: SocketAddr,
            _: Arc<dyn PeerCalls>,
            _: CancellationToken,
        ) -> BoxFuture<'static, io::Result<()>> {
            Box::pin(future::ready(Ok(())))
        }
    }

    fn links() -> Links {
        let pool = BlockingPool::from(Execution::OwnThreads);
        Links::new(Arc::new(local(2)), Arc::new(StuckPeer), pool)
    }

    #[test]
    fn a_stream_serves_only_if_its_peer_is_the_expected_one_in_this_cluster_and_group() {
        let peer = ForwardPeer {
            local: Arc::new(local(2)),
            node_id: TARGET,
            calls: Arc::new(StuckPeer),
        };
        let expected = Opened {
            cluster_id: CLUSTER.to_owned(),
            node_id: TARGET,
            group_id: HOME_GROUP_ID,
        };
        let in_other_cluster = Opened {
            cluster_id: "other".to_owned(),
            ..expected.clone()
        };
        let other_node = Opened {
            node_id: 3,
            ..expected.clone()
        };
        let in_other_group = Opened {
            group_id: 1,
            ..expected.clone()
        };
        assert!(peer.is_served_by(&expected));
        for other in [in_other_cluster, other_node, in_other_group] {
            assert!(!peer.is_served_by(&other), "{other:?}");
        }
    }

    fn command() -> forward_request::Body {
        forward_request::Body::Command(vec![7; COMMAND_BYTES as usize].into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_index_does_not_wait_behind_commands() {
        let links = links();
        let deadline = Instant::now() + Duration::from_secs(1);
        let commands = links.forward(TARGET, "peer", ForwardKind::Commands);
        let sent = tokio::spawn(async move { commands.ask(command(), deadline).await });
        tokio::task::yield_now().await;
        let read = forward_request::Body::ReadIndex(ReadIndex {});
        let control = links.forward(TARGET, "peer", ForwardKind::Control);
        let answer = control.ask(read, deadline).await;
        assert_eq!(answer, Ok(Answer::ReadIndex(7)));
        assert_eq!(sent.await.unwrap(), Err(ForwardError::Lost));
    }

    #[tokio::test(start_paused = true)]
    async fn commands_wait_in_a_queue_of_bounded_size_and_are_told_that_they_were_not_sent() {
        let links = links();
        let link = links.forward(TARGET, "peer", ForwardKind::Commands);
        let fitting = QUEUE_BYTES_MAX / COMMAND_BYTES;
        let asks = async |deadline| {
            let sent = (0..2 * fitting).map(|_| link.ask(command(), deadline));
            join_all(sent).await
        };
        let results = asks(Instant::now() + Duration::from_secs(1));
        let full = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            links.forward_bytes()
        };
        let (results, queued_bytes) = future::join(results, full).await;
        assert!(queued_bytes > (QUEUE_BYTES_MAX - COMMAND_BYTES) as usize);
        let count = |expected| {
            results
                .iter()
                .filter(|found| **found == Err(expected))
                .count()
        };
        // One of them left the queue.
        let fitting = fitting as usize;
        assert_eq!(count(ForwardError::Lost), fitting + 1);
        assert_eq!(count(ForwardError::QueueFull), fitting - 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_waits_for_any_longer_is_not_sent() {
        let bytes = Arc::new(Semaphore::new(2));
        let queued = || Queued {
            id: 7,
            deadline: Instant::now() + Duration::from_secs(3),
            body: forward_request::Body::ReadIndex(ReadIndex {}),
            _bytes: Arc::clone(&bytes).try_acquire_owned().expect("it is free"),
        };
        let (soon, late) = (queued(), queued());
        tokio::time::advance(Duration::from_secs(1)).await;
        let sent = soon.in_time().expect("its caller waits");
        assert_eq!((sent.id, sent.timeout_ms), (7, 2_000));
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(late.in_time(), None);
    }
}
