//! The cost of a load on the nodes.

use super::super::usage::{NodeSnapshot, Snapshot};
use super::{float, per, rounded};
use flotilla_client::v1::NodeUsage;
use serde::{Deserialize, Serialize};

/// The cost for the cluster as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cluster {
    /// The average number of commands per entry that carried any.
    pub(super) commands_per_entry: Option<f64>,
    /// The rate of entries that carried commands.
    pub(super) entries_per_s: Option<f64>,
    /// The rate of the leader's log fsyncs.
    pub(super) fsyncs_per_s: Option<f64>,
    /// The leader at the start, if another node led at the end: there are then no rates of the
    /// leader.
    pub(super) previous_leader_id: Option<u64>,
}

/// The cost for one node. All but the first fields are absent if the node did not answer before or
/// after the load, or was restarted meanwhile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Node {
    pub(super) node_id: u64,
    pub(super) address: String,
    /// Whether it was the leader at the end.
    pub(super) leader: bool,
    /// Whether it answered at the end.
    pub(super) responded: bool,
    /// The share of one core.
    pub(super) cpu_percent: Option<f64>,
    /// Resident memory at the end.
    pub(super) resident_bytes: Option<u64>,
    /// All bytes that the process wrote to disks.
    pub(super) written_bytes_per_run: Option<f64>,
    /// Bytes of the entries written to the log.
    pub(super) log_bytes_per_run: Option<f64>,
    pub(super) fsyncs_per_s: Option<f64>,
    pub(super) entries_applied_per_s: Option<f64>,
    /// The size of its data directory at the end.
    pub(super) data_bytes: Option<u64>,
}

/// Reads one counter of a node.
type Count = fn(&NodeUsage) -> u64;

/// The counters of one node between two samples.
struct Span<'a> {
    before: &'a NodeUsage,
    after: &'a NodeUsage,
}

impl Cluster {
    /// The cost between two samples.
    pub(super) fn new(before: &Snapshot, after: &Snapshot) -> Self {
        let spans: Vec<(u64, Span)> = after
            .nodes
            .iter()
            .filter_map(|node| Some((node.node_id, Span::of(before, node)?)))
            .collect();
        let sum = |count: Count| -> u64 { spans.iter().map(|(_, span)| span.count(count)).sum() };
        let commands = sum(|usage| usage.commands_proposed);
        let entries = sum(|usage| usage.entries_proposed);
        let previous_leader_id = before.leader.filter(|_| before.leader != after.leader);
        let lead = spans
            .iter()
            .find(|(id, _)| Some(*id) == after.leader && previous_leader_id.is_none());
        let rate = |count: Count| lead.map(|(_, span)| span.rate(count));
        Self {
            commands_per_entry: (entries > 0).then(|| rounded(float(commands) / float(entries))),
            entries_per_s: rate(|usage| usage.entries_proposed),
            fsyncs_per_s: rate(|usage| usage.log_fsync_count),
            previous_leader_id,
        }
    }
}

impl Node {
    /// The cost of each node between two samples, with this many runs.
    pub(super) fn all(before: &Snapshot, after: &Snapshot, runs: u64) -> Vec<Self> {
        let nodes = after.nodes.iter();
        nodes
            .map(|node| Self::new(before, after.leader, node, runs))
            .collect()
    }

    fn new(before: &Snapshot, leader: Option<u64>, after: &NodeSnapshot, runs: u64) -> Self {
        let span = Span::of(before, after);
        let span = span.as_ref();
        let usage = after.usage.as_ref();
        let each_run = |count: u64| rounded(per(float(count), float(runs)));
        let rate = |count: Count| span.map(|span| span.rate(count));
        Self {
            node_id: after.node_id,
            address: after.address.clone(),
            leader: leader == Some(after.node_id),
            responded: usage.is_some(),
            cpu_percent: span.and_then(Span::cpu_percent),
            resident_bytes: usage.and_then(|usage| usage.resident_bytes),
            written_bytes_per_run: span.and_then(Span::written_bytes).map(each_run),
            log_bytes_per_run: span
                .map(|span| each_run(span.count(|usage| usage.log_written_bytes))),
            fsyncs_per_s: rate(|usage| usage.log_fsync_count),
            entries_applied_per_s: rate(|usage| usage.entries_applied),
            data_bytes: usage.and_then(|usage| usage.data_bytes),
        }
    }
}

impl<'a> Span<'a> {
    /// `None` if the node did not answer both times or was restarted in between.
    fn of(before: &'a Snapshot, after: &'a NodeSnapshot) -> Option<Self> {
        let before = before.nodes.iter();
        let mut before = before.filter(|node| node.node_id == after.node_id);
        let (before, after) = (before.next()?.usage.as_ref()?, after.usage.as_ref()?);
        (before.uptime_ms < after.uptime_ms).then_some(Self { before, after })
    }

    fn count(&self, count: Count) -> u64 {
        count(self.after).saturating_sub(count(self.before))
    }

    fn rate(&self, count: Count) -> f64 {
        let seconds = float(self.count(|usage| usage.uptime_ms)) / 1_000.0;
        rounded(per(float(self.count(count)), seconds))
    }

    fn cpu_percent(&self) -> Option<f64> {
        let used = self.after.cpu_ms?.checked_sub(self.before.cpu_ms?)?;
        let passed = self.count(|usage| usage.uptime_ms);
        Some(rounded(per(float(used), float(passed)) * 100.0))
    }

    fn written_bytes(&self) -> Option<u64> {
        self.after
            .written_bytes?
            .checked_sub(self.before.written_bytes?)
    }
}
