//! Members that are drained: they keep their vote, and do not lead.

use crate::cluster::{Cluster, LONG, register, submit_surely};
use flotilla_engine::NodeId;
use flotilla_replica::{ChangeError, ChangeRefusal, ClusterChange, Tuning};
use std::time::Duration;
use tokio::time::{sleep, timeout};

fn drain(id: u64) -> ClusterChange {
    let node_id = NodeId(id);
    ClusterChange::DrainNode { node_id }
}

fn undrain(id: u64) -> ClusterChange {
    let node_id = NodeId(id);
    ClusterChange::UndrainNode { node_id }
}

fn refused(result: Result<bool, ChangeError>) -> ChangeRefusal {
    match result {
        Err(ChangeError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, but found {other:?}"),
    }
}

/// The members other than these.
fn others(cluster: &Cluster, ids: &[u64]) -> Vec<u64> {
    let mut others = cluster.ids();
    others.retain(|id| !ids.contains(id));
    others
}

/// The drained members, as a node sees them.
async fn drained(cluster: &Cluster, via: u64) -> Vec<u64> {
    let status = cluster.node(via).status().await;
    let drained = status.nodes.into_iter().filter(|node| node.is_drained);
    drained.map(|node| node.node_id.0).collect()
}

/// Waits until another member than these leads.
async fn other_leader(cluster: &Cluster, ids: &[u64]) -> u64 {
    let other = async {
        loop {
            let leader = cluster.leader().await;
            if !ids.contains(&leader) {
                return leader;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, other).await.expect("another one leads")
}

#[tokio::test]
async fn a_drained_leader_hands_over_serves_on_and_is_not_elected() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    let [via, _] = others(&cluster, &[leader])[..] else {
        panic!("there are three")
    };
    assert!(cluster.change(via, drain(leader)).await.unwrap());
    assert!(!cluster.change(leader, drain(leader)).await.unwrap());
    let next = other_leader(&cluster, &[leader]).await;
    assert_eq!(drained(&cluster, via).await, [leader]);
    assert!(*cluster.node(leader).drained().borrow());
    submit_surely(cluster.node(leader), register("pack"))
        .await
        .unwrap();
    let to_drained = cluster.transfer(via, leader).await;
    assert_eq!(
        refused(to_drained),
        ChangeRefusal::VoterDrained(NodeId(leader))
    );
    // Without a target, the other one is chosen, whichever node has more of the log.
    let anyone = ClusterChange::TransferLeader { to: None };
    assert!(cluster.change(via, anyone).await.unwrap());
    let last = others(&cluster, &[leader, next])[0];
    assert_eq!(other_leader(&cluster, &[leader, next]).await, last);
    // It still votes: its vote makes the other one leader.
    cluster.kill(last);
    submit_surely(cluster.node(leader), register("ship"))
        .await
        .unwrap();
    assert_eq!(other_leader(&cluster, &[leader, last]).await, next);
}

#[tokio::test]
async fn a_drain_ends_by_a_call_or_a_restart_and_the_member_can_lead_again() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    let [first, second] = others(&cluster, &[leader])[..] else {
        panic!("there are three")
    };
    assert!(cluster.change(leader, drain(first)).await.unwrap());
    assert!(cluster.change(second, undrain(first)).await.unwrap());
    assert!(!cluster.change(second, undrain(first)).await.unwrap());
    assert!(cluster.transfer(second, first).await.unwrap());
    assert!(cluster.change(first, drain(second)).await.unwrap());
    cluster.stop(second).await;
    cluster.start(second).await;
    assert_eq!(drained(&cluster, first).await, [0; 0]);
    assert!(cluster.transfer(first, second).await.unwrap());
}

#[tokio::test]
async fn a_drain_that_leaves_nobody_to_lead_is_refused_and_changes_nothing() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    let [first, second] = others(&cluster, &[leader])[..] else {
        panic!("there are three")
    };
    assert_eq!(
        refused(cluster.change(first, drain(9)).await),
        ChangeRefusal::NodeNotMember(NodeId(9))
    );
    assert!(cluster.change(leader, drain(first)).await.unwrap());
    assert!(cluster.change(leader, drain(second)).await.unwrap());
    assert_eq!(
        refused(cluster.change(second, drain(leader)).await),
        ChangeRefusal::NoVoterToLead(NodeId(leader))
    );
    assert_eq!(drained(&cluster, leader).await, [first, second]);
    cluster.kill(first);
    assert_eq!(
        refused(cluster.change(leader, drain(first)).await),
        ChangeRefusal::NodeUnresponsive(NodeId(first))
    );
    assert!(cluster.change(leader, undrain(second)).await.unwrap());
    // The leader and this one are a quorum, but not without the other's vote.
    assert!(cluster.change(leader, drain(second)).await.unwrap());
}

#[tokio::test]
async fn a_drained_member_leads_while_nobody_else_can_and_no_longer() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    let [first, second] = others(&cluster, &[leader])[..] else {
        panic!("there are three")
    };
    assert!(cluster.change(leader, drain(first)).await.unwrap());
    assert!(cluster.change(leader, drain(second)).await.unwrap());
    cluster.kill(leader);
    submit_surely(cluster.node(first), register("pack"))
        .await
        .unwrap();
    cluster.start(leader).await;
    assert_eq!(other_leader(&cluster, &[first, second]).await, leader);
}
