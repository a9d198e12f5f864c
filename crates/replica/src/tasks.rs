//! The tasks of a running replica.

use crate::batch::batcher::Batcher;
use crate::cluster::contact_watch::ContactWatch;
use crate::cluster::divergence::DivergenceWatch;
use crate::cluster::hung_disk::LogWatch;
use crate::cluster::leadership::watch_leadership;
use crate::cluster::{divergence, log_purge, recovery, retirement};
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
    run(core, log_purge::maintain_log(Arc::clone(core)));
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
    run(core, retirement::watch_removal(Arc::clone(core)));
    let applied_position = core.applied_state.applied_position.subscribe();
    let leadership = core.leadership.clone();
    let local = Arc::clone(&core.local);
    run(
        core,
        watch_leadership(core.raft.clone(), local, applied_position, leadership),
    );
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
