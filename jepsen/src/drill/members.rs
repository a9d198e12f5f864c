//! Members that join, leave, are replaced, and lead in turn.

use crate::nemesis::{Needs, Nemesis};
use crate::stage::Stage;
use std::fs;
use std::time::Duration;

/// Grows a cluster of one node to three and to five, and shrinks it again.
pub(super) struct GrowAndShrink;

impl Nemesis for GrowAndShrink {
    fn name(&self) -> &'static str {
        "grow-and-shrink"
    }

    fn needs(&self) -> Needs {
        Needs {
            nodes: 1,
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        for _ in 0..4 {
            let _ = stage.add();
        }
        let added = stage.ids();
        // The first one stays: clients are configured with its address.
        for id in stage.ids().into_iter().skip(1).rev() {
            stage.remove(id);
        }
        format!("1 to {} nodes, and back to {:?}", added.len(), stage.ids())
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}

/// Wipes a node's disk, expects its restart to be refused, and puts a new node in its place.
pub(super) struct ReplaceWiped;

impl Nemesis for ReplaceWiped {
    fn name(&self) -> &'static str {
        "replace-wiped"
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let victim = stage.followers().into_iter().next().unwrap_or(1);
        let node = stage.cluster.node_mut(victim);
        node.kill();
        fs::remove_dir_all(node.data_dir()).expect("a folder in the run's own folder");
        node.restart();
        let (status, output) = node.end();
        assert!(!status.success(), "a wiped member started again");
        assert!(
            output.contains("--join"),
            "expected advice, but found {output}"
        );
        let successor = stage.replace_lost(victim);
        format!("node {victim} lost its disk and was refused; node {successor} took its place")
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}

/// Makes each node the leader in turn.
pub(super) struct TransferLeader;

impl Nemesis for TransferLeader {
    fn name(&self) -> &'static str {
        "transfer-leader"
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let mut led = Vec::new();
        for id in stage.ids() {
            let node = id.to_string();
            let transfer = ["--timeout", "30s", "cluster", "transfer-leader", &node];
            drop(stage.cluster.flo().text(&transfer));
            led.push(stage.cluster.leader());
        }
        format!("nodes {led:?} led in turn")
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}
