//! A node of another cluster at the address of a member, as after a restore on the machine of a member that was presumed
//! lost.
//!
//! The other cluster has a task that the workers of the first one could do. They must not see it, and nothing of the
//! first cluster may reach the other one.

use super::{Needs, Nemesis};
use crate::network::Wanted;
use crate::stage::Stage;
use flotilla_tests::{Cluster, Host, Scratch, TIMEOUT, wait_until};
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::fs;
use std::time::Duration;

/// An action of the workload `leases`.
const ACTION: &str = "chaos-hold";

/// Puts a new cluster of one node at the address of a member.
#[derive(Default)]
pub(super) struct ForeignCluster {
    foreign: Option<Cluster>,
}

impl Nemesis for ForeignCluster {
    fn name(&self) -> &'static str {
        "foreign-cluster"
    }

    fn needs(&self) -> Needs {
        Needs {
            network: Wanted::Shaped,
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        stage.cluster.await_health();
        let leader = stage.leader();
        let ids = stage.ids();
        // Until the others elect another leader, they call the foreign node at the address of the dead leader.
        let victim = match stage.random.random_bool(0.7) {
            true => leader,
            false => ids.choose(&mut stage.random).copied().unwrap_or(leader),
        };
        let mut host = Host::local(victim);
        let listen = host.peer_address;
        host.peer_address = stage.cluster.node(victim).host().peer_address;
        let foreign = Cluster::on(Scratch::new(), &[host], &[]);
        foreign.await_health();
        let flo = foreign.flo();
        drop(flo.text(&["action", "register", ACTION]));
        drop(flo.text(&["action", "invoke", ACTION, "--async"]));
        stage.cluster.kill(victim);
        stage.network.redirect(victim, listen);
        self.foreign = Some(foreign);
        format!("a node of another cluster is at the address of node {victim}")
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn heal(&mut self, stage: &mut Stage) {
        if let Some(foreign) = self.foreign.take() {
            await_discovery(stage, &foreign);
            expect_untouched(&foreign);
        }
        stage.network.heal();
    }
}

/// Waits until a member has found the other cluster: otherwise the fault proves nothing.
fn await_discovery(stage: &Stage, foreign: &Cluster) {
    let status = foreign.flo().json(&["cluster", "status"]);
    let id = status["cluster_id"].as_str().expect("a cluster has an id");
    let words = format!("belongs to cluster {id}");
    wait_until("a member to find the other cluster", TIMEOUT, || {
        let logs = fs::read_dir(stage.logs()).map_err(|error| error.to_string())?;
        let mut texts = logs.filter_map(|log| fs::read_to_string(log.ok()?.path()).ok());
        match texts.any(|text| text.contains(&words)) {
            true => Ok(()),
            false => Err(format!("no log says that a peer {words}")),
        }
    });
}

/// Checks that nothing of the first cluster has reached the other one.
fn expect_untouched(foreign: &Cluster) {
    let flo = foreign.flo();
    let workers = flo.json(&["worker", "list"]);
    let has_workers = workers["items"]
        .as_array()
        .is_none_or(|all| !all.is_empty());
    assert!(
        !has_workers,
        "expected no worker in the other cluster: {workers}"
    );
    let runs = flo.json(&["action", "runs", ACTION]);
    let is_alone = runs["items"].as_array().map(Vec::len) == Some(1);
    let is_pending = runs["items"][0]["status"] == "pending";
    assert!(
        is_alone && is_pending,
        "expected the one task of the other cluster to wait: {runs}"
    );
}
