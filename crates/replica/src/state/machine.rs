//! The state machine behind openraft's trait: a handle on the applier and the store.

use crate::execution::{BlockingPool, JobKind};
use crate::log::record::LogEntry;
use crate::membership::StoredMembership;
use crate::raft::type_config::{LogId, TypeConfig};
use crate::state::applier::{AppliedState, Applier, ApplyError, Job};
use crate::state::rows;
use crate::state::snapshot::{Snapshot, SnapshotData, meta_of};
use crate::state::store::{SharedReader, StateStore};
use futures::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{OptionalSend, RaftSnapshotBuilder};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{mpsc, oneshot};

type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<TypeConfig>;

/// The state machine behind openraft's trait; clones share it.
#[derive(Clone)]
pub(crate) struct Machine {
    store: Arc<dyn StateStore>,
    applied_state: AppliedState,
    jobs: mpsc::Sender<Job>,
    blocking_pool: BlockingPool,
}

impl Machine {
    /// Starts the applier.
    ///
    /// # Errors
    /// [`ApplyError`] if the state cannot be read.
    pub(crate) fn start(
        applier: Applier,
        blocking_pool: &BlockingPool,
    ) -> Result<Self, ApplyError> {
        let store = Arc::clone(&applier.store);
        let applied_state = applier.applied_state.clone();
        let jobs = applier.spawn(blocking_pool)?;
        Ok(Self {
            store,
            applied_state,
            jobs,
            blocking_pool: blocking_pool.clone(),
        })
    }

    async fn enqueue(&self, job: Job) -> io::Result<()> {
        self.jobs.send(job).await.map_err(|_| applier_gone())
    }
}

impl RaftStateMachine<TypeConfig> for Machine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let reader = self.store.reader();
        let applied_position = rows::applied_position(reader.as_ref()).map_err(io::Error::other)?;
        let membership = rows::stored_membership(reader.as_ref()).map_err(io::Error::other)?;
        Ok((applied_position.log_id, membership))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder): (LogEntry, _) = next?;
            self.enqueue(Job::Apply(entry, responder)).await?;
        }
        let (sender, receiver) = oneshot::channel();
        self.enqueue(Job::Barrier(sender)).await?;
        receiver.await.map_err(|_| applier_gone())?
    }

    async fn get_snapshot_builder(&mut self) -> Self::SnapshotBuilder {
        self.clone()
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: SnapshotData,
    ) -> Result<(), io::Error> {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(Job::Install(meta.last_log_id, snapshot, sender))
            .await?;
        receiver.await.map_err(|_| applier_gone())?
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        self.store.captured().map(snapshot_of).transpose()
    }
}

impl RaftSnapshotBuilder<TypeConfig> for Machine {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let store = Arc::clone(&self.store);
        let captured = self
            .blocking_pool
            .run(JobKind::Capture, move || store.capture());
        let capture = captured.await?.map_err(io::Error::other)?;
        let snapshot = snapshot_of(capture)?;
        let made = &self.applied_state.counters.snapshots_made;
        made.fetch_add(1, Ordering::Relaxed);
        let index = snapshot.meta.last_log_id.map(|log_id| log_id.index());
        self.applied_state
            .state_durable
            .send_if_modified(|durable| {
                let is_newer = index > *durable;
                *durable = (*durable).max(index);
                is_newer
            });
        Ok(snapshot)
    }
}

fn snapshot_of(capture: Arc<dyn SharedReader>) -> io::Result<Snapshot> {
    let meta = meta_of(capture.as_ref()).map_err(io::Error::other)?;
    Ok(Snapshot {
        meta,
        snapshot: SnapshotData::Captured(capture),
    })
}

fn applier_gone() -> io::Error {
    io::Error::other("the applier has ended")
}
