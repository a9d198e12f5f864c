//! Takes snapshots and purges the log (docs/design.md, "Raft"), since openraft's own policies are
//! off; and finishes what a former leader began.

use crate::cluster::{members, upgrade};
use crate::core::Core;
use crate::proposal::Control;
use crate::stagger::Share;
use openraft::async_runtime::watch::WatchReceiver;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// The purge floor is worth a log entry once it frees this many bytes.
const FLOOR_BYTES_MIN: u64 = 1 << 20;
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs until it is dropped.
pub(crate) async fn maintain_log(core: Arc<Core>) {
    let mut ticks = tokio::time::interval(core.tuning.upkeep_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut replay_base = Duration::ZERO;
    loop {
        ticks.tick().await;
        consider_snapshot(&core, &mut replay_base).await;
        consider_floor(&core).await;
        consider_purge(&core).await;
        upgrade::consider_engine_version(&core).await;
        members::finish_change(&core);
    }
}

/// Takes a snapshot when the log has grown enough, or would take long to replay.
async fn consider_snapshot(core: &Core, replay_base: &mut Duration) {
    let Some(applied) = core.applied_state.applied_position.borrow().index() else {
        return;
    };
    let covered = core.snapshot_maker.index();
    if covered >= Some(applied) {
        return;
    }
    let bytes = covered.map_or_else(|| core.log.bytes(), |covered| core.log.bytes_after(covered));
    let applying = Duration::from_micros(
        core.applied_state
            .counters
            .busy_micros
            .load(Ordering::Relaxed),
    );
    let share = Share::of(core.local.node_id);
    let is_due = bytes > share.of_bytes(core.tuning.snapshot_log_bytes)
        || applying.saturating_sub(*replay_base) > share.of_time(core.tuning.snapshot_replay);
    if is_due && core.disk.has_space_for_snapshot() && core.raft.trigger().snapshot().await.is_ok()
    {
        *replay_base = applying;
    }
}

/// At the leader: publishes the index up to which no member needs the log.
async fn consider_floor(core: &Core) {
    let Some(floor) = floor(core) else { return };
    let published = *core.applied_state.purge_floor.borrow();
    let freed = core
        .log
        .bytes_after(published)
        .saturating_sub(core.log.bytes_after(floor));
    if floor <= published || freed < FLOOR_BYTES_MIN.min(core.tuning.snapshot_log_bytes) {
        return;
    }
    let control = Control::PurgeFloor { index: floor };
    if let Err(error) = core
        .control_writer
        .write(control, Instant::now() + CONTROL_TIMEOUT)
        .await
    {
        tracing::debug!(%error, "the purge floor was not published");
    }
}

/// The last index that no member needs; above the size limit of the log, what this node's snapshot
/// covers, even if a member lags.
fn floor(core: &Core) -> Option<u64> {
    if !core.leadership.borrow().is_ready {
        return None;
    }
    let covered = core.snapshot_maker.index()?;
    if core.log.bytes() > core.tuning.max_log_bytes {
        return Some(covered);
    }
    let metrics = core.raft.metrics();
    let metrics = metrics.borrow_watched();
    let matched = metrics
        .replication
        .as_ref()?
        .values()
        .map(|matched| matched.as_ref().map_or(0, |log_id| log_id.index()));
    Some(matched.min().unwrap_or(covered).min(covered))
}

/// Deletes what is below the floor and covered by a durable snapshot of this node.
async fn consider_purge(core: &Core) {
    let floor = *core.applied_state.purge_floor.borrow();
    let Some(covered) = core.snapshot_maker.index() else {
        return;
    };
    let upto = floor.min(covered);
    let purged = core.log.purged().map(|log_id| log_id.index());
    if upto > 0 && purged < Some(upto) && core.raft.trigger().purge_log(upto).await.is_err() {
        tracing::debug!("consensus has ended, nothing is purged");
    }
}
