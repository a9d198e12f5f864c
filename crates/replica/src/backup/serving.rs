//! A backup of a node that serves: the snapshot that a peer would get, as the bytes of a file.

use super::header::{BackupHeader, BackupOrigin, Source};
use super::writer::Writer;
use crate::core::Core;
use crate::execution::{Chore, Chores};
use crate::network::forward::ForwardError;
use crate::network::protocol::{TakeSnapshot, forward_request, forward_response};
use crate::read::ReadError;
use bytes::Bytes;
use flotilla_engine::NodeId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

/// Backups that one node gives at once: each keeps the files of its snapshot on disk.
pub(crate) const BACKUPS_MAX: usize = 2;
/// How often a snapshot that is being made is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// Why there is no backup, or no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// What it must hold is not known, or not readable.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The node gives as many as it may.
    #[error("expected at most {BACKUPS_MAX} backups of a node at once, but as many are under way")]
    UnderWay,
    /// The snapshot took too long.
    #[error("expected a snapshot within the deadline, but it is not made yet")]
    SnapshotLate,
    /// There is no such member.
    #[error("expected a member, but node {} is none", .0.0)]
    NotAMember(NodeId),
    /// The member does not answer.
    #[error("expected node {} to answer, but it does not", .0.0)]
    Unreachable(NodeId),
    /// The snapshot cannot be read.
    #[error("expected to read the snapshot, but {0}")]
    Broken(String),
}

/// A backup on its way out. While it is kept, the node keeps the snapshot that it is made of.
pub struct Backup {
    header: BackupHeader,
    rows: u64,
    rows_done: u64,
    writer: Option<Writer>,
    chores: Chores,
    _permit: OwnedSemaphorePermit,
}

impl Backup {
    /// What it is of.
    #[must_use]
    pub fn header(&self) -> &BackupHeader {
        &self.header
    }

    /// About how many rows the state has; 0 when the store does not tell.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many of them are in the bytes so far.
    #[must_use]
    pub fn rows_done(&self) -> u64 {
        self.rows_done
    }

    /// The next bytes of the file, about a megabyte at most unless one row is larger; `None` after the last.
    ///
    /// # Errors
    /// [`BackupError::Broken`] when the snapshot cannot be read. There is nothing more then.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BackupError> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(None);
        };
        let packing = move || (writer.next(), writer);
        let packed = self.chores.run(Chore::SnapshotPart, packing).await;
        let (piece, writer) = packed.map_err(|error| BackupError::Broken(error.to_string()))?;
        let piece = piece.map_err(|error| BackupError::Broken(error.to_string()))?;
        self.rows_done = writer.rows();
        self.writer = piece.is_some().then_some(writer);
        Ok(piece)
    }
}

impl Core {
    /// A backup of everything that was acknowledged anywhere before the call.
    pub(crate) async fn backup(&self, deadline: Instant) -> Result<Backup, BackupError> {
        let permit = Arc::clone(&self.backups).try_acquire_owned();
        let permit = permit.map_err(|_| BackupError::UnderWay)?;
        self.read_index(deadline).await?;
        self.snapshot_here(deadline).await?;
        let rows = self.store.captured();
        let rows = rows.ok_or_else(|| BackupError::Broken("it is gone".to_owned()))?;
        let source = Source {
            node_id: self.local.node_id,
            origin: BackupOrigin::Serving,
            version: self.local.version.clone(),
        };
        let header = BackupHeader::of(rows.as_ref(), source)
            .map_err(|error| BackupError::Broken(error.to_string()))?
            .ok_or(ReadError::NotReadable)?;
        let figures = self.store.figures();
        Ok(Backup {
            rows: figures.map_or(0, |figures| figures.rows),
            rows_done: 0,
            writer: Some(Writer::new(header.clone(), rows)),
            header,
            chores: self.links.chores.clone(),
            _permit: permit,
        })
    }

    /// Has a member make a snapshot of all that it has applied, unless it has one; returns the index that it
    /// covers.
    pub(crate) async fn snapshot(
        &self,
        node_id: NodeId,
        deadline: Instant,
    ) -> Result<u64, BackupError> {
        if node_id.0 == self.local.node_id {
            return self.snapshot_here(deadline).await;
        }
        let membership = self.membership();
        let member = membership.get_node(&node_id.0);
        let member = member.ok_or(BackupError::NotAMember(node_id))?;
        let link = self.links.forward(&member.peer_address);
        let body = forward_request::Body::TakeSnapshot(TakeSnapshot {});
        match link.ask(body, deadline).await {
            Ok(forward_response::Answer::SnapshotIndex(index)) => Ok(index),
            Ok(_) => Err(BackupError::SnapshotLate),
            Err(ForwardError::NotSent | ForwardError::Lost) => {
                Err(BackupError::Unreachable(node_id))
            }
        }
    }

    /// The same at this node.
    pub(crate) async fn snapshot_here(&self, deadline: Instant) -> Result<u64, BackupError> {
        let applied = self.outlets.progress.borrow().index();
        loop {
            self.check_readable()?;
            match self.snapshot_index() {
                Some(covered) if Some(covered) >= applied => return Ok(covered),
                _ if Instant::now() >= deadline => return Err(BackupError::SnapshotLate),
                _ => {}
            }
            // Nothing happens while one is being made: it may cover less, so this asks again.
            if self.has_room_for_snapshot() {
                let triggered = self.raft.trigger().snapshot().await;
                triggered.map_err(|_| ReadError::Shutdown)?;
            }
            sleep(PAUSE).await;
        }
    }
}
