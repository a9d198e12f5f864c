//! What waits on a member, for an operator who looks at a cluster that is stuck.
//!
//! A node assembles it, because it knows more than its replica. The replica forwards the request to the member that is
//! asked, over the peer protocol: this works without a leader, and however many clients the member has.

use bytes::Bytes;
use flotilla_engine::{CommandScope, NodeId};
use std::time::Duration;

/// Says what waits on a node.
pub trait Inspector: Send + Sync + 'static {
    /// What waits, in the server's encoding, with at most `rows_max` rows in each section; empty while the node starts.
    /// Must not block.
    fn inspect(&self, rows_max: u32) -> Bytes;
}

/// Nothing is known to wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoInspector;

impl Inspector for NoInspector {
    fn inspect(&self, _: u32) -> Bytes {
        Bytes::new()
    }
}

/// Why it is unknown what waits on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// The cluster has no such member.
    #[error("expected a member, but node {} is not one", .0.0)]
    NodeNotMember(NodeId),
    /// The member is still starting.
    #[error("expected node {} to have started, but it is still starting", .0.0)]
    NodeStarting(NodeId),
    /// The member does not respond.
    #[error("expected node {} to respond, but it does not", .0.0)]
    NodeUnresponsive(NodeId),
}

/// What waits at a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The commands that wait for an entry, by scope and class.
    pub commands: Vec<PendingCommands>,
    /// The snapshot that is being received.
    pub install: Option<PendingInstall>,
    /// Snapshots that are being sent or packed.
    pub outgoing_snapshot_count: usize,
}

/// Commands of one scope and class that wait for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCommands {
    /// Where they act.
    pub scope: CommandScope,
    /// Their class.
    pub class: PendingClass,
    /// How many there are.
    pub count: usize,
    /// Their encoded size. In bytes.
    pub bytes: usize,
}

/// The class of commands that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PendingClass {
    /// Commands of the leader's drivers.
    Obligation,
    /// Commands that complete open work.
    Progress,
    /// New work.
    Intake,
}

/// A snapshot that is being received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingInstall {
    /// The leader that sends it.
    pub leader: NodeId,
    /// How long ago it began.
    pub age: Duration,
}
