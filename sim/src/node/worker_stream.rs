//! A worker's stream at a node: the messages of the leader's session, without gRPC.

use super::gateway::Gateway;
use crate::bug::Bug;
use crate::cluster::Member;
use crate::network::{Host, Network, Open, Process, Route};
use flotilla_engine::Assignment;
use flotilla_leader::{Error, LeasedTask, Poller, Session, ToWorker};
use flotilla_replica::{HostCallSender, PeerError, PeerResult, Requests, Responses};
use futures::future::BoxFuture;
use futures::stream::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;

/// Messages that wait for the connection.
const MESSAGES_MAX: usize = 64;
/// How long a worker waits until its stream is open.
const TIMEOUT: Duration = Duration::from_millis(4_000);

/// What a worker sends.
#[derive(Clone, Debug)]
pub(crate) enum ToLeader {
    /// The call itself, if a member makes it: before all other messages.
    Call(MemberCall),
    /// Who it is and what it holds: the first message.
    Hello(Poller),
    /// The running total of tasks that it takes.
    Slots(u64),
}

/// The call of a member's worker.
#[derive(Clone, Debug)]
pub(crate) struct MemberCall {
    /// What the call states, which the leader checks.
    pub(super) metadata: MetadataMap,
    /// Who really calls. Only the record knows it.
    caller: Member,
}

impl From<Member> for MemberCall {
    fn from(caller: Member) -> Self {
        Self {
            metadata: MetadataMap::new(),
            caller,
        }
    }
}

/// A worker's stream.
pub(crate) struct Link {
    pub(crate) outgoing: mpsc::Sender<ToLeader>,
    pub(crate) incoming: Responses<FromLeader>,
}

impl Link {
    /// Opens a stream that begins with a few messages; `None` if the other end does not accept it in time.
    pub(crate) async fn open(
        network: &Network,
        route: Route,
        first: &[ToLeader],
        serve: Open<ToLeader, FromLeader>,
    ) -> Option<Self> {
        let (outgoing, requests) = mpsc::channel(MESSAGES_MAX);
        for message in first {
            let sent = outgoing.send(message.clone()).await;
            sent.expect("the channel has room");
        }
        let requests = Box::pin(ReceiverStream::new(requests));
        let opening = network.stream(route, requests, serve);
        let incoming = tokio::time::timeout(TIMEOUT, opening).await.ok()?.ok()?;
        Some(Self { outgoing, incoming })
    }
}

/// What a worker receives.
#[derive(Clone, Debug)]
pub(crate) enum FromLeader {
    /// A task.
    Task(Box<Assignment>),
    /// The stream ends, because the node does not lead. It names the leader.
    NotLeader(Option<Host>),
}

/// The messages to one worker.
type Outgoing = mpsc::Sender<FromLeader>;

/// Serves the stream of a member's worker, if the node takes calls from that member. The check is that of the peer port.
pub(super) fn serve_member(
    process: Process,
    mut requests: Requests<ToLeader>,
) -> BoxFuture<'static, PeerResult<Responses<FromLeader>>> {
    Box::pin(async move {
        let Some(gateway) = process.gateway.clone() else {
            return Err(not_serving());
        };
        let Some(ToLeader::Call(call)) = requests.next().await else {
            return Err(PeerError::Failed("the worker made no call".to_owned()));
        };
        if gateway.bug != Some(Bug::UncheckedCall) {
            HostCallSender::check(&call.metadata, process.peer.as_ref())?;
        }
        gateway.record.member_stream(call.caller, gateway.member);
        serve_worker(process, requests).await
    })
}

fn not_serving() -> PeerError {
    PeerError::Unreachable("the node does not serve workers yet".to_owned())
}

/// Serves a worker's stream until one of its ends is gone, or its poll is closed.
pub(crate) fn serve_worker(
    process: Process,
    mut requests: Requests<ToLeader>,
) -> BoxFuture<'static, PeerResult<Responses<FromLeader>>> {
    Box::pin(async move {
        let gateway = process.gateway.ok_or_else(not_serving)?;
        let Some(ToLeader::Hello(poller)) = requests.next().await else {
            return Err(PeerError::Failed("the worker sent no hello".to_owned()));
        };
        let (outgoing, responses) = mpsc::channel(MESSAGES_MAX);
        tokio::spawn(async move {
            let mut standstill = gateway.replica.standstill();
            tokio::select! {
                _ = standstill.wait_for(Option::is_some) => {}
                () = serve(&gateway, poller, requests, &outgoing) => {}
            }
        });
        let responses: Responses<FromLeader> = Box::pin(ReceiverStream::new(responses).map(Ok));
        Ok(responses)
    })
}

async fn serve(
    gateway: &Arc<Gateway>,
    poller: Poller,
    mut requests: Requests<ToLeader>,
    outgoing: &Outgoing,
) {
    let Ok(mut session) = open(gateway, poller) else {
        let leader = gateway.replica.leadership().borrow().leader.clone();
        let leader = leader.map(|leader| leader.node_id.0);
        // The worker may be gone.
        let _ = outgoing.send(FromLeader::NotLeader(leader)).await;
        return;
    };
    while let Ok(()) = redeliver(&mut session, outgoing).await {
        let assignment = tokio::select! {
            request = requests.next() => match request {
                Some(ToLeader::Slots(total)) => {
                    session.set_total(total);
                    continue;
                }
                Some(ToLeader::Call(_) | ToLeader::Hello(_)) | None => return,
            },
            message = session.next() => match message {
                Some(ToWorker::Task(assignment)) => assignment,
                // Workers here never drain, and their reports answer for cancelled tasks.
                Some(ToWorker::Revoked(_) | ToWorker::Draining) => continue,
                None => return,
            },
        };
        if outgoing.send(FromLeader::Task(assignment)).await.is_err() {
            return;
        }
    }
}

fn open(gateway: &Gateway, poller: Poller) -> Result<Session, Error> {
    let request = poller.request(&gateway.replica)?;
    Session::open(&gateway.hub, &gateway.replica, poller, request)
}

/// Sends the leased tasks that the worker does not hold. An error if the poll is closed.
async fn redeliver(session: &mut Session, outgoing: &Outgoing) -> Result<(), Error> {
    while let Some(LeasedTask { missing, .. }) = session.next_leased()? {
        if let Some((assignment, _)) = missing {
            // If the worker is gone, the end of its requests says so.
            let _ = outgoing.send(FromLeader::Task(Box::new(assignment))).await;
        }
    }
    Ok(())
}
