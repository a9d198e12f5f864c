//! Starts the leader's parts on this node.

use crate::context::Context;
use flotilla_engine::{CommandKind, CommandScope};
use flotilla_leader::{Hub, Observer};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Counts and logs what the leader's parts do.
struct NodeObserver(Arc<Context>);

impl Observer for NodeObserver {
    fn timers_read(&self, due_ms: Option<u64>) {
        self.0.metrics.timers_read(due_ms);
    }

    fn command_ended(&self, kind: CommandKind, scope: &CommandScope, elapsed: Duration) {
        let slow_commands = self.0.node_gateway.slow_commands();
        slow_commands.observe(kind, scope, elapsed);
    }
}

/// Starts the leader's parts, which wait until the node leads. They end with `context.shutdown`.
pub(super) fn start(context: &Arc<Context>, hub: Arc<Hub>) -> JoinHandle<()> {
    flotilla_leader::start(flotilla_leader::Context {
        replica: context.node_gateway.home().replica().clone(),
        hub,
        schemas: Arc::clone(&context.schemas),
        initial_access: context.node_gateway.initial_access().proposal(),
        observer: Arc::new(NodeObserver(Arc::clone(context))),
        shutdown: context.shutdown.clone(),
    })
}
