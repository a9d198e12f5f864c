//! Writes down what a node applies and what its leader's parts do.

use crate::cluster::Cluster;
use crate::network::Host;
use crate::record::Record;
use flotilla_engine::{CommandKind, CommandScope, Effect};
use flotilla_leader::Observer;
use flotilla_replica::{Notice, Subscription};
use std::time::Duration;

/// Records the assignments that a node of the cluster applies, as long as its replica runs.
pub(super) async fn watch_assignments(
    record: Record,
    cluster: Cluster,
    mut subscription: Subscription,
) {
    while let Some(notice) = subscription.next().await {
        let Notice::Applied(batch) = notice else {
            continue;
        };
        for effect in &batch.effects {
            if let Effect::DeliverTask {
                worker, assignment, ..
            } = effect
            {
                record.assigned((cluster, &batch), worker, assignment);
            }
        }
    }
}

/// Adds the commands of a node's drivers to the trace.
pub(super) struct DriverTrace {
    pub(super) host: Host,
    pub(super) record: Record,
}

impl Observer for DriverTrace {
    fn timers_read(&self, _: Option<u64>) {}

    fn command_ended(&self, kind: CommandKind, _: &CommandScope, elapsed: Duration) {
        let who = format!("driver {}", self.host);
        let text = format!("submitted {} in {} ms", kind.as_str(), elapsed.as_millis());
        self.record.say(&who, &text);
    }
}
