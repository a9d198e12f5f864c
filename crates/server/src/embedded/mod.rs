//! The embedded workers: WASM actions run on every node, as tasks like any other (A9, design rule 8).
//!
//! Each node is one worker in each namespace that has WASM actions. It polls the leader on the same
//! stream that outside workers use, so nothing in the engine knows that it is special, but that its
//! leases are freed at once when its node dies. The workers of a node share its slots.

mod crew;
mod decided;
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
use flotilla_engine::Effect;
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError};
use flotilla_engine::tables::{ActionKind, Actions, encode_prefix, visit};
use flotilla_replica::{Notice, Subscription};
use runner::Runner;
use slots::Slots;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// How long to wait before a read of the actions that failed is made again.
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
}

/// Starts the embedded workers. Ends with `context.shutdown`.
pub(crate) fn start(context: Arc<Context>) -> JoinHandle<()> {
    tokio::spawn(async move {
        match Runner::new(context.clone()) {
            Ok(runner) => {
                let (runner, slots) = (Arc::new(runner), Slots::of_machine());
                supervise(Shared {
                    context,
                    runner,
                    slots,
                })
                .await;
            }
            Err(error) => tracing::error!(%error, "WASM actions cannot run on this node"),
        }
    })
}

/// Keeps one worker for each namespace that has WASM actions.
async fn supervise(shared: Shared) {
    let gateway = &shared.context.gateway;
    let shutdown = &shared.context.shutdown;
    let mut subscription = gateway.replica().subscribe();
    let mut workers: BTreeMap<Namespace, watch::Sender<Actionset>> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    loop {
        // A node that has just started cannot read yet.
        let Ok(found) = gateway.read_here(wasm_actions) else {
            tokio::select! {
                () = sleep(READ_AGAIN_DELAY) => continue,
                () = shutdown.cancelled() => break,
            }
        };
        for (namespace, worker) in &workers {
            let actions = found.get(namespace).cloned().unwrap_or_default();
            worker.send_if_modified(|known| {
                let is_changed = *known != actions;
                *known = actions;
                is_changed
            });
        }
        for (namespace, actions) in found {
            workers.entry(namespace.clone()).or_insert_with(|| {
                let (sender, receiver) = watch::channel(actions);
                tasks.spawn(worker::run(shared.clone(), namespace, receiver));
                sender
            });
        }
        tokio::select! {
            is_open = modules_changed(&mut subscription) => if !is_open { break },
            () = shutdown.cancelled() => break,
        }
    }
    drop(workers);
    while tasks.join_next().await.is_some() {}
}

/// Waits until WASM actions may have changed; false when the replica has ended.
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

/// All WASM actions by namespace.
fn wasm_actions(reader: &dyn Reader) -> Result<BTreeMap<Namespace, Actionset>, StoreError> {
    let mut found: BTreeMap<Namespace, Actionset> = BTreeMap::new();
    let range = KeyRange::prefix(&encode_prefix::<Actions>(&()));
    visit::<Actions>(
        reader,
        &range,
        Order::Ascending,
        |(namespace, name), record| {
            if matches!(record.kind, ActionKind::Wasm { .. }) {
                found.entry(namespace).or_default().insert(name);
            }
            ControlFlow::Continue(())
        },
    )?;
    Ok(found)
}
