//! Waits until the nodes have nothing left to compact.

use std::time::Duration;

use anyhow::{Context, Result};

use super::http;
use crate::cluster::{Cluster, NodeId};
use crate::interrupt::Interrupt;
use crate::wait::wait_for;

/// How long compaction may take.
const LIMIT: Duration = Duration::from_secs(600);

/// How often in a row a node must report no compaction: one compaction may trigger the next.
const LOOKS: u32 = 20;

/// The number of running compactions of each database of a node.
const METRIC: &str = "flotilla_rocksdb_running_compactions";

/// Waits until no node compacts files, so that earlier work does not slow down the next measurement.
///
/// # Errors
/// If a node does not report it, or compacts for too long.
pub(super) fn wait_until_done(cluster: &Cluster, interrupt: &Interrupt) -> Result<()> {
    for node_id in cluster.node_ids() {
        let what = format!("node {node_id} to have merged its files");
        let mut idle = 0;
        wait_for(&what, LIMIT, interrupt, || {
            idle = if running(cluster, node_id)? == 0 {
                idle + 1
            } else {
                0
            };
            Ok((idle >= LOOKS).then_some(()))
        })?;
    }
    Ok(())
}

/// How many compactions run on a node.
fn running(cluster: &Cluster, node_id: NodeId) -> Result<u64> {
    let metrics = http::get(http::address(cluster, node_id)?, "/metrics")?;
    let metrics = metrics.with_context(|| format!("expected metrics of node {node_id}"))?;
    sum(&metrics).with_context(|| format!("expected {METRIC} of node {node_id}"))
}

/// The sum over all databases; `None` without such a metric.
fn sum(metrics: &str) -> Option<u64> {
    let samples = metrics.lines().filter(|line| line.starts_with(METRIC));
    let values = samples.map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    let values: Vec<u64> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_merges_of_all_databases_count() {
        let metrics = "\
HTTP/1.1 200 OK

# TYPE flotilla_rocksdb_running_compactions gauge
flotilla_rocksdb_running_compactions{database=\"log\"} 1
flotilla_rocksdb_running_compactions{database=\"state\"} 2
flotilla_rocksdb_write_stopped{database=\"log\"} 7
";
        assert_eq!(sum(metrics), Some(3));
        assert_eq!(sum("HTTP/1.1 200 OK\n\n"), None);
    }
}
