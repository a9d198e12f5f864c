//! What waits on this node, for an operator: assembled from what its parts know already.
//!
//! Each section has a bounded number of rows, the largest ones, so that the answer stays small however much waits.

use crate::access::{CallKind, Needs};
use crate::connections::{NodeConnections, Usage};
use crate::context::Context;
use crate::embedded::Slots;
use crate::memory::OwnedMemory;
use crate::watch::Watchers;
use bytes::Bytes;
use flotilla_api::v1;
use flotilla_engine::view::PageRange;
use flotilla_engine::{Actor, BindingSubject, BoundActor, CommandScope, view};
use flotilla_leader::Hub;
use flotilla_replica::{Gauges, Inspector, PendingClass, PendingCommands};
use prost::Message;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Answers inspections once the node has its context.
pub(crate) struct NodeInspector {
    // The replica holds the inspector, and the context the replica.
    context: OnceLock<Weak<Context>>,
    hub: Arc<Hub>,
    slots: Arc<Slots>,
    connections: NodeConnections,
}

impl NodeInspector {
    /// For a node with these polls and this many slots for WASM actions.
    pub(crate) fn new(hub: &Arc<Hub>, slots: usize) -> Self {
        Self {
            context: OnceLock::new(),
            hub: hub.clone(),
            slots: Slots::new(slots),
            connections: NodeConnections::new(),
        }
    }

    /// Answers from now on.
    pub(crate) fn begin(&self, context: &Arc<Context>) {
        // A second call would change nothing.
        drop(self.context.set(Arc::downgrade(context)));
    }

    /// The slots of the embedded workers.
    pub(crate) fn slots(&self) -> Arc<Slots> {
        self.slots.clone()
    }

    /// The connections of all ports.
    pub(crate) fn connections(&self) -> &NodeConnections {
        &self.connections
    }
}

impl Inspector for NodeInspector {
    fn inspect(&self, rows_max: u32) -> Bytes {
        let Some(context) = self.context.get().and_then(Weak::upgrade) else {
            return Bytes::new();
        };
        let mut rows = Rows {
            max: usize::try_from(rows_max).unwrap_or(usize::MAX),
            omitted: 0,
        };
        let mut inspection = self.inspection(&context, &mut rows);
        inspection.omitted_count = rows.omitted as u64;
        inspection.encode_to_vec().into()
    }
}

/// Keeps the largest rows of each section.
struct Rows {
    max: usize,
    omitted: usize,
}

impl Rows {
    fn largest<R>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
        size: impl Fn(&R) -> u64,
    ) -> Vec<R> {
        let mut rows: Vec<R> = rows.into_iter().collect();
        rows.sort_by_key(|row| Reverse(size(row)));
        self.omitted += rows.len().saturating_sub(self.max);
        rows.truncate(self.max);
        rows
    }
}

impl NodeInspector {
    fn inspection(&self, context: &Context, rows: &mut Rows) -> v1::NodeInspection {
        let replica = context.node_gateway.home().replica();
        let (gauges, pending) = (replica.gauges(), replica.pending());
        let install = pending.install.map(|install| v1::SnapshotInstall {
            leader_id: install.leader.0,
            age_ms: millis(install.age),
        });
        let checks = &context.caller_checks;
        v1::NodeInspection {
            node_id: context.node.0,
            leading: gauges.is_leading,
            drained: *replica.drained().borrow(),
            queue: rows.largest(pending.commands.into_iter().map(queued), |row| row.bytes),
            memory: memory(context, &gauges),
            requests: rows.largest(requests(context), |row| row.count),
            watchers: rows.largest(watchers(&context.watchers), |row| row.count),
            polls: rows.largest(self.polls(), |row| row.worker_count),
            installs: install.into_iter().collect(),
            followers: rows.largest(followers(&gauges), |row| row.lag),
            connections: self.ports(),
            embedded_slots: Some(v1::EmbeddedSlots {
                count: self.slots.total() as u64,
                task_count: self.slots.tasks_count() as u64,
            }),
            outgoing_snapshot_count: u32::try_from(pending.outgoing_snapshot_count)
                .unwrap_or(u32::MAX),
            omitted_count: 0,
            calls_without_token: rows.largest(calls_without_token(context), |row| row.count),
            calls_counted_ms: millis(checks.calls_without_token.counted()),
            requires_token: checks.requires_token(),
            keyring: context.keyring.summary(),
        }
    }

    fn polls(&self) -> impl Iterator<Item = v1::OpenPolls> {
        let summaries = self.hub.summaries().into_iter();
        summaries.map(|(namespace, summary)| v1::OpenPolls {
            namespace: namespace.to_string(),
            worker_count: summary.workers_count as u64,
            free_slots: summary.free_slots,
            waiting_action_count: summary.waiting_actions_count as u64,
        })
    }

    fn ports(&self) -> Vec<v1::PortConnections> {
        let ports = self.connections.ports().into_iter();
        let row = |(port, usage): (&str, Usage)| v1::PortConnections {
            port: port.to_owned(),
            count: usage.total as u64,
            handshake_count: usage.handshakes as u64,
            count_max: usage.total_max as u64,
        };
        ports.map(row).collect()
    }
}

fn queued(commands: PendingCommands) -> v1::QueuedCommands {
    let class = match commands.class {
        PendingClass::Obligation => "obligation",
        PendingClass::Progress => "progress",
        PendingClass::Intake => "intake",
    };
    v1::QueuedCommands {
        namespace: commands.scope.as_str().to_owned(),
        class: class.to_owned(),
        count: commands.count as u64,
        bytes: commands.bytes as u64,
    }
}

fn memory(context: &Context, gauges: &Gauges) -> Vec<v1::ReservedMemory> {
    let code_bytes = context.modules.code_bytes();
    let owners = context.memory.by_owner(gauges, code_bytes).into_iter();
    let row = |one: OwnedMemory| v1::ReservedMemory {
        owner: one.owner.to_owned(),
        bytes: one.bytes as u64,
        bytes_max: one.bytes_max as u64,
    };
    owners.map(row).collect()
}

fn requests(context: &Context) -> Vec<v1::RequestsInProgress> {
    let in_flight = context.metrics.requests.in_flight_by_method().into_iter();
    let row = |(method, count): (&str, u64)| v1::RequestsInProgress {
        method: method.to_owned(),
        count,
    };
    in_flight.map(row).collect()
}

fn watchers(watchers: &Watchers) -> impl Iterator<Item = v1::WaitingCallers> {
    let counts = watchers.counts().into_iter();
    counts.map(|((kind, namespace), count)| v1::WaitingCallers {
        kind: kind.to_owned(),
        namespace,
        count: count as u64,
    })
}

/// The calls that a closed cluster would refuse: those without a token, except what the bindings of a certificate permit.
fn calls_without_token(context: &Context) -> Vec<v1::CallsWithoutToken> {
    let counts = context.caller_checks.calls_without_token.counts();
    let refused = counts
        .into_iter()
        .filter(|(kind, _)| !is_permitted(context, kind));
    let rows = refused.map(|(kind, count)| v1::CallsWithoutToken {
        address: kind.address.map(|one| one.to_string()).unwrap_or_default(),
        permission: kind.needs.map(Needs::text).unwrap_or_default(),
        count,
        subject: kind.subject.map(|one| one.to_string()).unwrap_or_default(),
        namespace: kind
            .namespace
            .map(|one| one.to_string())
            .unwrap_or_default(),
    });
    rows.collect()
}

/// Whether the subject of a certificate may make the call in a closed cluster, by what this node has applied.
fn is_permitted(context: &Context, kind: &CallKind) -> bool {
    let (Some(subject), Some(needs)) = (&kind.subject, kind.needs) else {
        return false;
    };
    let scope = match &kind.namespace {
        _ if needs.is_of_cluster() => CommandScope::Cluster,
        Some(namespace) => CommandScope::Namespace(namespace.clone()),
        None => return has_binding(context, subject),
    };
    let actor = Actor::Bound(BoundActor {
        subject: subject.clone(),
        groups: Vec::new(),
        ends_at_ms: u64::MAX,
    });
    let gateway = context.node_gateway.on_behalf_of(actor, needs);
    gateway.of_scope(&scope).check_here().is_ok()
}

/// Whether the subject has rights anywhere, by what this node has applied.
fn has_binding(context: &Context, subject: &BindingSubject) -> bool {
    let home = context.node_gateway.home();
    let found = home.read_stored(|reader| view::bindings_of(reader, subject, PageRange::first(1)));
    found.is_ok_and(|page| !page.items.is_empty())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn followers(gauges: &Gauges) -> impl Iterator<Item = v1::FollowerProgress> {
    let last = gauges.last_log_index;
    gauges
        .followers
        .iter()
        .map(move |follower| v1::FollowerProgress {
            node_id: follower.node_id.0,
            matched_index: follower.matched_index,
            lag: last.saturating_sub(follower.matched_index),
            drained: follower.is_drained,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_its_largest_rows_and_the_others_are_counted() {
        let mut rows = Rows { max: 2, omitted: 0 };
        assert_eq!(rows.largest([3, 9, 5, 1], |row| *row), [9, 5]);
        assert_eq!(rows.largest([7], |row| *row), [7]);
        assert_eq!(rows.omitted, 2);
    }
}
