//! Releases that know different engine versions, in one cluster (design rule 12).

use crate::cluster::{Cluster, LONG, register, submit};
use flotilla_engine::NodeId;
use flotilla_replica::{
    ChangeError, ChangeRefusal, ClusterChange, Environment, Replica, StartError, Tuning,
};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const OLD: u32 = 1;
const NEW: u32 = 2;

fn tuning() -> Tuning {
    Tuning {
        upkeep_interval: Duration::from_millis(50),
        ..Tuning::default()
    }
}

/// A cluster whose nodes know these engine versions, by their ids.
async fn started(versions: &[u32]) -> Cluster {
    let mut cluster = Cluster::new(versions.len() as u64, tuning());
    for (id, version) in (1..).zip(versions) {
        cluster.set_engine_version(id, *version);
    }
    for id in 1..=versions.len() as u64 {
        cluster.start(id).await;
    }
    cluster.form(1).await;
    cluster.leader().await;
    cluster
}

async fn restart(cluster: &mut Cluster, id: u64, version: u32) {
    cluster.stop(id).await;
    cluster.set_engine_version(id, version);
    cluster.start(id).await;
    cluster.leader().await;
}

/// Waits until each node has applied the agreement on this version.
async fn await_agreed(cluster: &Cluster, version: u32) {
    for id in cluster.ids() {
        let looking = async {
            while cluster.node(id).status().await.engine_version != version {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONG, looking).await.expect("in time");
    }
}

/// Makes the leader check all members at least once more: it does so while it writes, since each
/// write waits for a separate check.
async fn write_for_a_while(cluster: &Cluster) {
    for number in 0..20 {
        let name = format!("action-{number}");
        let written = submit(cluster.node(1), register(&name)).await;
        written.expect("a leader").expect("a new name");
        cluster.node(1).status().await;
    }
}

#[tokio::test]
async fn a_version_is_agreed_on_once_every_member_knows_it() {
    let mut cluster = started(&[OLD, OLD, OLD]).await;
    for id in [1, 2] {
        restart(&mut cluster, id, NEW).await;
    }
    // Nor does the last one count while it is away: it may know no more than before.
    cluster.transfer(1, 1).await.unwrap();
    cluster.stop(3).await;
    write_for_a_while(&cluster).await;
    assert_eq!(cluster.node(1).status().await.engine_version, OLD);
    cluster.set_engine_version(3, NEW);
    cluster.start(3).await;
    await_agreed(&cluster, NEW).await;
    cluster.agreed().await;
}

#[tokio::test]
async fn a_binary_that_knows_less_than_was_agreed_on_is_refused() {
    let mut cluster = started(&[NEW, NEW, NEW]).await;
    await_agreed(&cluster, NEW).await;

    cluster.stop(3).await;
    cluster.set_engine_version(3, OLD);
    let error = Replica::start(cluster.config(3), Environment::default())
        .await
        .err()
        .expect("it decides differently");
    let expected = StartError::EngineVersionUnknown {
        agreed: NEW,
        known: OLD,
    };
    assert_eq!(error.to_string(), expected.to_string());

    cluster.set_engine_version(4, OLD);
    let peer_address = cluster.join(4).await;
    let node_id = NodeId(4);
    let add = ClusterChange::AddLearner {
        node_id,
        peer_address,
    };
    let refused = cluster.change(1, add).await.expect_err("it is too old");
    let too_old = ChangeRefusal::BinaryTooOld {
        node_id,
        agreed: NEW,
        known: OLD,
    };
    assert_eq!(refused, ChangeError::Refused(too_old));
}
