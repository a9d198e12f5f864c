//! The embedded workers: they run WASM actions on every node, as tasks like any other (A9, design
//! rule 8).
//!
//! Each node is one worker in each namespace that has WASM actions, and leaves the registry when
//! the last of them is deleted. It polls the leader on the same gRPC stream as outside workers. The
//! engine treats it like any other worker, with one exception: when its node dies, its tasks are
//! taken back immediately, and each has used an attempt. A node that stops returns them itself, as
//! the same attempts; so does a drained one. A node's workers share its slots.

mod decided;
mod embedded_workers;
mod guest_log;
mod job;
mod lease;
mod link;
mod program;
mod registration;
mod runner;
mod slots;
mod store;
mod verdict;
mod worker;

use crate::context::Context;
use embedded_workers::EmbeddedWorkers;
use flotilla_engine::ids::{ActionName, Namespace, WorkerId};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view;
use flotilla_engine::{Effect, NodeId};
use flotilla_replica::{Notice, Subscription};
use futures::future::{Either, select};
use runner::Runner;
pub(crate) use slots::Slots;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The delay before a failed read of the actions is retried.
const READ_AGAIN_DELAY: Duration = Duration::from_millis(200);
/// How long a command of an embedded worker may take before it is sent again.
const COMMAND_DEADLINE: Duration = Duration::from_secs(10);

/// The WASM actions of one namespace.
type Actionset = BTreeSet<ActionName>;

/// What the workers of all namespaces of a node share.
#[derive(Clone)]
struct Shared {
    context: Arc<Context>,
    runner: Arc<Runner>,
    slots: Arc<Slots>,
    /// Cancelled when the node stops or is drained.
    stop: CancellationToken,
}

/// Starts the embedded workers, which run as many calls at the same time as there are slots, except while the node is drained. Ends with
/// `context.shutdown`.
pub(crate) fn start(context: Arc<Context>, slots: Arc<Slots>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Some(runner) = Runner::new(context.clone()) else {
            return;
        };
        let runner = Arc::new(runner);
        while is_in_service(&context).await {
            let stop = context.shutdown.child_token();
            let supervising = pin!(supervise(Shared {
                context: context.clone(),
                runner: runner.clone(),
                slots: slots.clone(),
                stop: stop.clone(),
            }));
            match select(supervising, pin!(drained(&context))).await {
                Either::Left(_) => return,
                Either::Right((_, supervising)) => {
                    stop.cancel();
                    supervising.await;
                }
            }
        }
    })
}

/// Waits until the node is not drained; false if it stops first.
async fn is_in_service(context: &Context) -> bool {
    let mut drained = context.node_gateway.home().replica().drained();
    tokio::select! {
        biased;
        () = context.shutdown.cancelled() => false,
        is_undrained = drained.wait_for(|is_drained| !is_drained) => is_undrained.is_ok(),
    }
}

/// Waits until the node is drained, or its replica has ended.
async fn drained(context: &Context) {
    let mut drained = context.node_gateway.home().replica().drained();
    drop(drained.wait_for(|is_drained| *is_drained).await);
}

/// Keeps one worker for each namespace that has WASM actions.
async fn supervise(shared: Shared) {
    let context = shared.context.clone();
    let (gateway, stop) = (context.node_gateway.home(), shared.stop.clone());
    let mut subscription = gateway.replica().subscribe();
    let mut embedded_workers = EmbeddedWorkers::new(shared);
    let mut is_first = true;
    loop {
        let node = context.node;
        let wanted = move |reader: &dyn Reader| {
            let mut wanted = wasm_actions(reader)?;
            if is_first {
                add_left_behind(reader, node, &mut wanted)?;
            }
            Ok(wanted)
        };
        // A node that has just started cannot read yet.
        let Ok(wanted) = gateway.scan_here(wanted).await else {
            tokio::select! {
                () = sleep(READ_AGAIN_DELAY) => continue,
                () = stop.cancelled() => break,
            }
        };
        is_first = false;
        embedded_workers.adjust(wanted);
        tokio::select! {
            is_open = modules_changed(&mut subscription) => if !is_open { break },
            () = embedded_workers.member_ended() => {}
            () = stop.cancelled() => break,
        }
    }
    embedded_workers.end().await;
}

/// Waits until WASM actions may have changed; false if the replica has ended.
async fn modules_changed(subscription: &mut Subscription) -> bool {
    loop {
        match subscription.next().await {
            Some(Notice::Applied(batch)) if batch.effects.contains(&Effect::ModulesChanged) => {
                return true;
            }
            Some(Notice::Applied(_)) => {}
            Some(Notice::Lost) => return true,
            None => return false,
        }
    }
}

/// Adds the namespaces in which this node is still registered as a worker from before its restart:
/// their WASM actions were deleted while it was down.
fn add_left_behind(
    reader: &dyn Reader,
    node: NodeId,
    wanted: &mut BTreeMap<Namespace, Actionset>,
) -> Result<(), StoreError> {
    for namespace in view::namespaces_of_node(reader, node, &worker_id(node))? {
        wanted.entry(namespace).or_default();
    }
    Ok(())
}

/// The id of a node's worker, the same in each namespace.
pub(crate) fn worker_id(node: NodeId) -> WorkerId {
    WorkerId::new(format!("flo-node-{}", node.0))
        .expect("a short text of letters, digits and dashes")
}

/// All WASM actions by namespace.
fn wasm_actions(reader: &dyn Reader) -> Result<BTreeMap<Namespace, Actionset>, StoreError> {
    let mut found: BTreeMap<Namespace, Actionset> = BTreeMap::new();
    for (namespace, name) in view::wasm_actions(reader)? {
        found.entry(namespace).or_default().insert(name);
    }
    Ok(found)
}
