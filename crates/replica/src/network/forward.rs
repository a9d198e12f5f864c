//! The requesting side of the long-lived stream to the leader: many requests, matched by id.

use crate::network::calls::{PeerCalls, PeerError, Responses};
use crate::network::links::Local;
use crate::network::protocol::{
    ForwardRequest, ForwardResponse, Opened, forward_request, forward_response,
};
use futures::stream::{self, StreamExt};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;

/// The capacity of the queue to the stream.
const QUEUE_MAX: usize = 1_024;

/// Why a request has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardError {
    /// It certainly did not leave this node.
    NotSent,
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
}

#[derive(Clone)]
struct Open {
    requests: mpsc::Sender<ForwardRequest>,
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
        let id = self.id_next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        open.waiting.add(id, sender)?;
        let timeout = deadline.saturating_duration_since(Instant::now());
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let request = ForwardRequest {
            id,
            timeout_ms,
            body: Some(body),
        };
        let sent = timeout_at(deadline, open.requests.send(request)).await;
        if !matches!(sent, Ok(Ok(()))) {
            open.waiting.remove(id);
            return Err(ForwardError::NotSent);
        }
        let result = timeout_at(deadline, receiver).await;
        if result.is_err() {
            open.waiting.remove(id);
        }
        result.ok().and_then(Result::ok).ok_or(ForwardError::Lost)
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
        requests: mpsc::Receiver<ForwardRequest>,
    ) -> Result<Responses<ForwardResponse>, ForwardError> {
        let opening = ForwardRequest {
            id: 0,
            timeout_ms: 0,
            body: Some(forward_request::Body::Open(self.local.sender(self.node_id))),
        };
        let requests = stream::iter([opening]).chain(ReceiverStream::new(requests));
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
        self.local.cluster_id() == Some(&opened.cluster_id) && self.node_id == opened.node_id
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
