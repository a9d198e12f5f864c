//! The tasks of a running replica.

use crate::batch::batcher::Batcher;
use crate::cluster::contact_watch::ContactWatch;
use crate::cluster::divergence::DivergenceWatch;
use crate::cluster::hung_disk::LogWatch;
use crate::cluster::leadership::watch_leadership;
use crate::cluster::log_purge::LogUpkeep;
use crate::cluster::retirement::RemovalWatch;
use crate::cluster::upgrade::Upgrade;
use crate::cluster::{divergence, recovery};
use crate::core::Core;
use crate::environment::Environment;
use crate::read::{ReadRounds, Waiters};
use std::future::Future;
use std::sync::Arc;

/// Starts the tasks that run until the replica ends.
pub(crate) fn spawn_all(core: &Arc<Core>, environment: &Environment, waiters: Waiters) {
    let batcher = Batcher {
        node_id: core.local.node_id,
        raft: core.raft.clone(),
        queue: Arc::clone(&core.queue),
        clock: Arc::clone(&core.local.clock),
        offers: Arc::clone(&environment.offers),
        membership: core.applied_state.membership.subscribe(),
        leadership: core.leadership.subscribe(),
        counters: Arc::clone(&core.batch_counters),
        entries_in_flight: core.tuning.entries_in_flight.max(1),
        rounds: Arc::default(),
    };
    run(core, batcher.run());
    let rounds = ReadRounds {
        raft: core.raft.clone(),
        leadership: core.leadership.subscribe(),
        links: Arc::clone(&core.links),
        leader_contact: Arc::clone(&core.leader_contact),
    };
    run(core, rounds.run(waiters));
    let applied_position = core.applied_state.applied_position.subscribe();
    let reads = Arc::clone(&core.reads);
    run(
        core,
        recovery::watch_recovery(core.raft.clone(), applied_position, reads),
    );
    run(
        core,
        recovery::watch_consensus(core.raft.clone(), core.lifecycle.clone()),
    );
    let checkpoints = core.applied_state.checkpoints.subscribe();
    let control_writer = core.control_writer.clone();
    run(
        core,
        divergence::report_digests(core.local.node_id, checkpoints, control_writer),
    );
    let divergence_watch = DivergenceWatch {
        applied_state: core.applied_state.clone(),
        store: Arc::clone(&core.store),
        lifecycle: core.lifecycle.clone(),
    };
    run(core, divergence_watch.run());
    run(core, log_upkeep(core).run());
    let log_watch = LogWatch {
        log: core.log.clone(),
        leadership: core.leadership.subscribe(),
        transfers: core.transfers.clone(),
        lifecycle: core.lifecycle.clone(),
        tuning: core.tuning.clone(),
    };
    run(core, log_watch.run());
    run(core, core.drains.clone().watch());
    let contact_watch = ContactWatch {
        leader_contact: Arc::clone(&core.leader_contact),
        barrier: core.barrier.clone(),
        consensus: core.consensus.clone(),
        applied_position: core.applied_state.applied_position.subscribe(),
        leadership: core.leadership.subscribe(),
        tuning: core.tuning.clone(),
    };
    run(core, contact_watch.run());
    run(core, removal_watch(core).run());
    let applied_position = core.applied_state.applied_position.subscribe();
    let leadership = core.leadership.clone();
    let local = Arc::clone(&core.local);
    run(
        core,
        watch_leadership(core.raft.clone(), local, applied_position, leadership),
    );
}

fn log_upkeep(core: &Core) -> LogUpkeep {
    let upgrade = Upgrade {
        applied_state: core.applied_state.clone(),
        local: Arc::clone(&core.local),
        leadership: core.leadership.subscribe(),
        changes: Arc::clone(&core.changes),
        status_reports: core.status_reports.clone(),
        consensus: core.consensus.clone(),
        raft: core.raft.clone(),
    };
    LogUpkeep {
        node_id: core.local.node_id,
        raft: core.raft.clone(),
        log: core.log.clone(),
        applied_state: core.applied_state.clone(),
        snapshot_maker: core.snapshot_maker.clone(),
        disk: Arc::clone(&core.disk),
        leadership: core.leadership.subscribe(),
        control_writer: core.control_writer.clone(),
        upgrade,
        changes: Arc::clone(&core.changes),
        tuning: core.tuning.clone(),
    }
}

fn removal_watch(core: &Core) -> RemovalWatch {
    RemovalWatch {
        membership: core.applied_state.membership.subscribe(),
        local: Arc::clone(&core.local),
        links: Arc::clone(&core.links),
        probes: core.probes.clone(),
        retired_ids: core.retired_ids.clone(),
        consensus: core.consensus.clone(),
        leader_contact: Arc::clone(&core.leader_contact),
        lifecycle: core.lifecycle.clone(),
    }
}

/// Runs a task until the replica ends. The core is kept as long, and with it the lock of the directory: the task may hold
/// a store.
pub(crate) fn run(core: &Arc<Core>, task: impl Future<Output = ()> + Send + 'static) {
    let kept = Arc::clone(core);
    let ended = core.lifecycle.ended();
    tokio::spawn(async move {
        tokio::select! {
            () = ended => {}
            () = task => {}
        }
        drop(kept);
    });
}
