//! The handler of a node for clients and workers: the commands of the API, without gRPC.

use crate::bug::Bug;
use crate::cluster::Member;
use crate::record::Record;
use flotilla_engine::KeyRecord;
use flotilla_engine::ids::{KvKey, Namespace};
use flotilla_engine::{Actor, Body, CommandEnvelope, Rejection, Reply, reply, view};
use flotilla_leader::Hub;
use flotilla_replica::{Replica, SubmitError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a node retries a command or a read.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// The handler of a node for clients and workers.
pub(crate) struct Gateway {
    pub(super) replica: Replica,
    pub(super) hub: Arc<Hub>,
    pub(super) bug: Option<Bug>,
    pub(super) member: Member,
    pub(super) record: Record,
}

/// How a command that was submitted ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// It was applied.
    Answered(Result<Reply, Rejection>),
    /// It was certainly not applied and will not be.
    NotDone,
    /// It may have been applied, or may still be.
    Unknown,
}

impl Gateway {
    /// Submits a command.
    pub(crate) async fn submit(&self, mut envelope: CommandEnvelope) -> Submitted {
        if self.bug == Some(Bug::LostActor) {
            envelope.actor = Actor::Anonymous;
        }
        if self.bug == Some(Bug::EarlyAcknowledgement)
            && let Body::SignalRun(_) = &envelope.command.body
        {
            return self.acknowledge_early(envelope);
        }
        match self
            .replica
            .submit(envelope, Instant::now() + TIMEOUT)
            .await
        {
            Ok(replied) => Submitted::Answered(replied),
            Err(SubmitError::Unknown) => Submitted::Unknown,
            Err(
                SubmitError::Overloaded { .. }
                | SubmitError::NoLeader
                | SubmitError::NodeNotMember
                | SubmitError::DiskLow
                | SubmitError::EngineVersionTooLow { .. }
                | SubmitError::TooLarge { .. }
                | SubmitError::Diverged
                | SubmitError::Shutdown,
            ) => Submitted::NotDone,
        }
    }

    /// Reads the current value of a key; `Err` if that cannot be known.
    pub(crate) async fn read_key(&self, key: &KvKey) -> Result<Option<KeyRecord>, ()> {
        if self.bug != Some(Bug::StaleRead) {
            let read = self.replica.read_index(Instant::now() + TIMEOUT).await;
            read.map_err(drop)?;
        }
        let namespace = Namespace::default_namespace();
        let read = self
            .replica
            .view(|view| view::key(view, &namespace, key, view.now_ms()));
        read.map_err(drop)?.map_err(drop)
    }

    /// The planted bug: the response comes before the entry is committed, let alone applied.
    fn acknowledge_early(&self, envelope: CommandEnvelope) -> Submitted {
        let replica = self.replica.clone();
        tokio::spawn(async move {
            let deadline = Instant::now() + TIMEOUT;
            drop(replica.submit(envelope, deadline).await);
        });
        Submitted::Answered(Ok(Reply::SignalAccepted(reply::SignalAccepted {
            is_repeated: false,
            is_kept: false,
        })))
    }
}
