//! Takes snapshots of this node's state on demand.

use crate::cluster::member_disk::MemberDisk;
use crate::lifecycle::Lifecycle;
use crate::network::calls::PeerError;
use crate::raft::type_config::ConsensusHandle;
use crate::read::ReadError;
use crate::state::rows::{self, AppliedPosition};
use crate::state::snapshot::{Snapshot, SnapshotData, meta_of};
use crate::state::store::StateStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

/// The interval of checks for a snapshot that is being made.
const PAUSE: Duration = Duration::from_millis(10);

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    /// This replica does not serve.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It took too long.
    #[error("expected a snapshot before the deadline, but it is not finished yet")]
    Timeout,
}

/// Takes snapshots of this node's state. Clones share what it depends on.
#[derive(Clone)]
pub(crate) struct SnapshotMaker {
    pub(crate) raft: ConsensusHandle,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) applied_position: watch::Receiver<AppliedPosition>,
    pub(crate) disk: Arc<MemberDisk>,
    pub(crate) lifecycle: Lifecycle,
    /// How long a member may wait for a snapshot.
    pub(crate) timeout: Duration,
}

impl SnapshotMaker {
    /// A snapshot of the state after the entry at `index` or a later one, taken now if necessary.
    ///
    /// # Errors
    /// [`PeerError::Failed`] if none is ready in time.
    pub(crate) async fn at(&self, index: u64) -> Result<Snapshot, PeerError> {
        let failed = |error: &dyn std::fmt::Display| PeerError::Failed(error.to_string());
        let deadline = Instant::now() + self.timeout;
        let mut applied_position = self.applied_position.clone();
        let applied =
            applied_position.wait_for(|applied_position| applied_position.index() >= Some(index));
        let applied = timeout_at(deadline, applied).await;
        applied
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?;
        let made = self.make(deadline).await;
        made.map_err(|error| failed(&error))?;
        // A state that is received meanwhile replaces it.
        let rows = self.store.captured();
        let rows = rows.ok_or_else(|| failed(&"the snapshot has just been replaced"))?;
        let meta = meta_of(rows.as_ref()).map_err(|error| failed(&error))?;
        let snapshot = SnapshotData::Captured(rows);
        Ok(Snapshot { meta, snapshot })
    }

    /// The index of this node's last snapshot.
    pub(crate) fn index(&self) -> Option<u64> {
        let captured = self.store.captured()?;
        rows::applied_position(captured.as_ref()).ok()?.index()
    }

    /// Takes a snapshot of everything that this node has applied, unless it has one; returns the index that it covers.
    pub(crate) async fn make(&self, deadline: Instant) -> Result<u64, SnapshotError> {
        let applied = self.applied_position.borrow().index();
        loop {
            self.lifecycle.check_serving().map_err(ReadError::from)?;
            match self.index() {
                Some(covered) if Some(covered) >= applied => return Ok(covered),
                _ if Instant::now() >= deadline => return Err(SnapshotError::Timeout),
                _ => {}
            }
            // A request during a running snapshot does nothing, and that snapshot may cover less:
            // so this repeats the request.
            if self.disk.has_space_for_snapshot() {
                let triggered = self.raft.trigger().snapshot().await;
                triggered.map_err(|_| ReadError::Shutdown)?;
            }
            sleep(PAUSE).await;
        }
    }
}
