//! How long a killed node takes to serve again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::http;
use crate::cluster::{Cluster, NodeId};
use crate::interrupt::Interrupt;
use crate::wait::wait_for;

/// How long a node may take.
const LIMIT: Duration = Duration::from_secs(900);

/// Kills a follower, starts it again and returns the time from its start until it was ready. Afterwards
/// all nodes hold the same state.
///
/// # Errors
/// If it does not start, or is not ready in time.
pub(super) fn time_of_restart(cluster: &mut Cluster, interrupt: &Interrupt) -> Result<Duration> {
    let leader = cluster.wait_for_leader(None, interrupt)?.node_id;
    let follower = cluster.node_ids().find(|node_id| *node_id != leader);
    let follower = follower.context("expected a follower")?;
    cluster.kill(follower)?;
    let began = Instant::now();
    cluster.restart(follower)?;
    wait_until_ready(cluster, follower, interrupt)?;
    let took = began.elapsed();
    cluster.wait_for_agreement(interrupt)?;
    Ok(took)
}

fn wait_until_ready(cluster: &mut Cluster, node_id: NodeId, interrupt: &Interrupt) -> Result<()> {
    let address = http::address(cluster, node_id)?;
    let what = format!("node {node_id} to be ready");
    wait_for(&what, LIMIT, interrupt, || {
        cluster.process_mut(node_id).expect_running()?;
        // A good response says that the node has caught up with a leader, which has a quorum. A node that does not
        // answer is not ready.
        let is_ready = http::get(address, "/readyz").is_ok_and(|answer| answer.is_some());
        Ok(is_ready.then_some(()))
    })
}
