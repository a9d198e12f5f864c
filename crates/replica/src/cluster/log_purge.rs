//! Takes snapshots and purges the log (docs/design.md, "Raft"), since openraft's own policies are
//! off; and finishes what a former leader began.

use crate::cluster::leadership::Leadership;
use crate::cluster::member_disk::MemberDisk;
use crate::cluster::members::Changes;
use crate::cluster::upgrade::Upgrade;
use crate::control::ControlWriter;
use crate::log::store::LogStore;
use crate::proposal::Control;
use crate::raft::type_config::ConsensusHandle;
use crate::snapshot_maker::SnapshotMaker;
use crate::stagger::Share;
use crate::state::applier::AppliedState;
use crate::tuning::Tuning;
use openraft::async_runtime::watch::WatchReceiver;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

/// The purge floor is worth a log entry once it frees this many bytes.
const FLOOR_BYTES_MIN: u64 = 1 << 20;
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// What the upkeep of the log works with.
pub(crate) struct LogUpkeep {
    pub(crate) node_id: u64,
    pub(crate) raft: ConsensusHandle,
    pub(crate) log: LogStore,
    pub(crate) applied_state: AppliedState,
    pub(crate) snapshot_maker: SnapshotMaker,
    pub(crate) disk: Arc<MemberDisk>,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) control_writer: ControlWriter,
    pub(crate) upgrade: Upgrade,
    pub(crate) changes: Arc<Changes>,
    pub(crate) tuning: Tuning,
}

impl LogUpkeep {
    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let mut ticks = tokio::time::interval(self.tuning.upkeep_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut replay_base = Duration::ZERO;
        loop {
            ticks.tick().await;
            self.consider_snapshot(&mut replay_base).await;
            self.consider_floor().await;
            self.consider_purge().await;
            self.upgrade.consider().await;
            self.changes.finish();
        }
    }

    /// Takes a snapshot when the log has grown enough, or would take long to replay.
    async fn consider_snapshot(&self, replay_base: &mut Duration) {
        let Some(applied) = self.applied_state.applied_position.borrow().index() else {
            return;
        };
        let covered = self.snapshot_maker.index();
        if covered >= Some(applied) {
            return;
        }
        let bytes =
            covered.map_or_else(|| self.log.bytes(), |covered| self.log.bytes_after(covered));
        let applying = Duration::from_micros(
            self.applied_state
                .counters
                .busy_micros
                .load(Ordering::Relaxed),
        );
        let share = Share::of(self.node_id);
        let is_due = bytes > share.of_bytes(self.tuning.snapshot_log_bytes)
            || applying.saturating_sub(*replay_base) > share.of_time(self.tuning.snapshot_replay);
        if is_due
            && self.disk.has_space_for_snapshot()
            && self.raft.trigger().snapshot().await.is_ok()
        {
            *replay_base = applying;
        }
    }

    /// At the leader: publishes the index up to which no member needs the log.
    async fn consider_floor(&self) {
        let Some(floor) = self.floor() else { return };
        let published = *self.applied_state.purge_floor.borrow();
        let freed = self
            .log
            .bytes_after(published)
            .saturating_sub(self.log.bytes_after(floor));
        if floor <= published || freed < FLOOR_BYTES_MIN.min(self.tuning.snapshot_log_bytes) {
            return;
        }
        let control = Control::PurgeFloor { index: floor };
        if let Err(error) = self
            .control_writer
            .write(control, Instant::now() + CONTROL_TIMEOUT)
            .await
        {
            tracing::debug!(%error, "the purge floor was not published");
        }
    }

    /// The last index that no member needs; above the size limit of the log, what this node's snapshot
    /// covers, even if a member lags.
    fn floor(&self) -> Option<u64> {
        if !self.leadership.borrow().is_ready {
            return None;
        }
        let covered = self.snapshot_maker.index()?;
        if self.log.bytes() > self.tuning.max_log_bytes {
            return Some(covered);
        }
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let matched = metrics
            .replication
            .as_ref()?
            .values()
            .map(|matched| matched.as_ref().map_or(0, |log_id| log_id.index()));
        Some(matched.min().unwrap_or(covered).min(covered))
    }

    /// Deletes what is below the floor and covered by a durable snapshot of this node.
    async fn consider_purge(&self) {
        let floor = *self.applied_state.purge_floor.borrow();
        let Some(covered) = self.snapshot_maker.index() else {
            return;
        };
        let upto = floor.min(covered);
        let purged = self.log.purged().map(|log_id| log_id.index());
        if upto > 0 && purged < Some(upto) && self.raft.trigger().purge_log(upto).await.is_err() {
            tracing::debug!("consensus has ended, nothing is purged");
        }
    }
}
