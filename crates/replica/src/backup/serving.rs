//! An online backup: streams the snapshot that a peer would get, in the format of a backup file.

use super::header::{BackupHeader, BackupOrigin, Source};
use super::writer::Writer;
use crate::cluster::consensus_view::ConsensusView;
use crate::execution::{BlockingPool, JobKind};
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::links::Links;
use crate::network::local::Local;
use crate::network::protocol::{TakeSnapshot, forward_request, forward_response};
use crate::network::snapshots::SNAPSHOTS_READ_MAX;
use crate::read::{ReadError, Reads};
use crate::snapshot_maker::{SnapshotError, SnapshotMaker};
use crate::state::store::StateStore;
use bytes::Bytes;
use flotilla_engine::NodeId;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Concurrent backups of one node: each keeps the files of its snapshot on disk.
const BACKUPS_MAX: usize = 2;
// Members get snapshots even while backups are made, which may take any time.
const _: () = assert!(BACKUPS_MAX < SNAPSHOTS_READ_MAX);

/// Why a backup or a snapshot cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The state is unknown or unreadable.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The node makes the maximum of concurrent backups.
    #[error("expected at most {BACKUPS_MAX} concurrent backups of a node, but there are more")]
    UnderWay,
    /// The snapshot took too long.
    #[error("expected a snapshot before the deadline, but it is not finished yet")]
    SnapshotTimeout,
    /// The cluster has no such member.
    #[error("expected a member, but node {} is not one", .0.0)]
    NodeNotMember(NodeId),
    /// The member does not respond.
    #[error("expected node {} to respond, but it does not", .0.0)]
    Unreachable(NodeId),
    /// The snapshot cannot be read.
    #[error("expected to read the snapshot, but {0}")]
    Broken(String),
}

impl From<SnapshotError> for BackupError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Read(error) => Self::Read(error),
            SnapshotError::Timeout => Self::SnapshotTimeout,
        }
    }
}

/// A backup in progress. While it exists, the node keeps its snapshot.
pub struct Backup {
    header: BackupHeader,
    rows: u64,
    rows_done: u64,
    writer: Option<Writer>,
    blocking_pool: BlockingPool,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Backup {
    /// The backup's header.
    #[must_use]
    pub fn header(&self) -> &BackupHeader {
        &self.header
    }

    /// The approximate number of rows in the state; 0 if the store cannot estimate it.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of rows in the bytes so far.
    #[must_use]
    pub fn rows_done(&self) -> u64 {
        self.rows_done
    }

    /// The next bytes of the file, about a megabyte at most unless one row is larger; `None` after
    /// the last.
    ///
    /// # Errors
    /// [`BackupError::Broken`] if the snapshot cannot be read. The backup then ends.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BackupError> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(None);
        };
        let packing = move || (writer.next(), writer);
        let packed = self.blocking_pool.run(JobKind::SnapshotPart, packing).await;
        let (piece, writer) = packed.map_err(|error| BackupError::Broken(error.to_string()))?;
        let piece = piece.map_err(|error| BackupError::Broken(error.to_string()))?;
        self.rows_done = writer.rows();
        self.writer = piece.is_some().then_some(writer);
        Ok(piece)
    }
}

/// The backups and snapshots that callers ask for.
pub(crate) struct Backups {
    parts: BackupParts,
    /// Permits for concurrent backups.
    permits: Arc<Semaphore>,
}

/// What backups depend on.
pub(crate) struct BackupParts {
    pub(crate) snapshot_maker: SnapshotMaker,
    pub(crate) reads: Arc<Reads>,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) consensus: ConsensusView,
}

impl Backups {
    pub(crate) fn new(parts: BackupParts) -> Self {
        Self {
            parts,
            permits: Arc::new(Semaphore::new(BACKUPS_MAX)),
        }
    }

    /// A backup of everything that was acknowledged anywhere before the call.
    pub(crate) async fn backup(&self, deadline: Instant) -> Result<Backup, BackupError> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| BackupError::UnderWay)?;
        let reader = Arc::clone(&self.parts.links.snapshot_readers).acquire_owned();
        let reader = timeout_at(deadline, reader).await;
        let reader = reader.map_err(|_| BackupError::SnapshotTimeout)?;
        let reader = reader.expect("the semaphore is never closed");
        self.parts.reads.read_index(deadline).await?;
        self.parts.snapshot_maker.make(deadline).await?;
        let rows = self.parts.store.captured();
        let rows =
            rows.ok_or_else(|| BackupError::Broken("the snapshot has disappeared".to_owned()))?;
        let source = Source {
            node_id: self.parts.local.node_id,
            origin: BackupOrigin::Serving,
            version: self.parts.local.version.clone(),
        };
        let header = BackupHeader::of(rows.as_ref(), source)
            .map_err(|error| BackupError::Broken(error.to_string()))?
            .ok_or(ReadError::NodeCatchingUp)?;
        let figures = self.parts.store.figures();
        Ok(Backup {
            rows: figures.map_or(0, |figures| figures.rows),
            rows_done: 0,
            writer: Some(Writer::new(header.clone(), rows)),
            header,
            blocking_pool: self.parts.links.blocking_pool.clone(),
            _permits: [permit, reader],
        })
    }

    /// Makes a member take a snapshot of everything that it has applied, unless it has one; returns
    /// the index that it covers.
    pub(crate) async fn snapshot(
        &self,
        node_id: NodeId,
        deadline: Instant,
    ) -> Result<u64, BackupError> {
        if node_id.0 == self.parts.local.node_id {
            return Ok(self.parts.snapshot_maker.make(deadline).await?);
        }
        let membership = self.parts.consensus.membership();
        let member = membership.get_node(&node_id.0);
        let member = member.ok_or(BackupError::NodeNotMember(node_id))?;
        let link = self
            .parts
            .links
            .forward(node_id.0, &member.peer_address, ForwardKind::Control);
        let body = forward_request::Body::TakeSnapshot(TakeSnapshot {});
        match link.ask(body, deadline).await {
            Ok(forward_response::Answer::SnapshotIndex(index)) => Ok(index),
            Ok(_) => Err(BackupError::SnapshotTimeout),
            Err(ForwardError::NotSent | ForwardError::QueueFull | ForwardError::Lost) => {
                Err(BackupError::Unreachable(node_id))
            }
        }
    }
}
