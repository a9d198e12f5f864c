//! Network partitions.

use super::{Needs, Nemesis};
use crate::network::Wanted;
use crate::stage::Stage;
use rand::RngExt;
use std::time::Duration;

/// Partitions the network in one of several ways.
pub(super) struct Partition {
    cut: Cut,
}

enum Cut {
    /// The leader is isolated in both directions.
    Leader,
    /// Each of five nodes reaches two others: each sees a majority, and no two see the same one.
    Ring,
    /// Messages from the leader are lost, but it receives those of the others; or the reverse.
    OneWay,
    /// One node reaches both halves, which do not reach each other.
    Bridge,
}

impl Partition {
    pub(super) fn leader() -> Self {
        Self { cut: Cut::Leader }
    }

    pub(super) fn ring() -> Self {
        Self { cut: Cut::Ring }
    }

    pub(super) fn one_way() -> Self {
        Self { cut: Cut::OneWay }
    }

    pub(super) fn bridge() -> Self {
        Self { cut: Cut::Bridge }
    }
}

impl Nemesis for Partition {
    fn name(&self) -> &'static str {
        match self.cut {
            Cut::Leader => "partition-leader",
            Cut::Ring => "partition-ring",
            Cut::OneWay => "partition-one-way",
            Cut::Bridge => "partition-bridge",
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            nodes: match self.cut {
                Cut::Ring => 5,
                Cut::Leader | Cut::OneWay | Cut::Bridge => 3,
            },
            network: Wanted::Cuttable,
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let leader = stage.leader();
        // Read once: leadership may change meanwhile.
        let mut others = stage.ids();
        others.retain(|&id| id != leader);
        match self.cut {
            Cut::Leader => {
                cut_both(stage, leader, &others);
                format!("node {leader} is isolated in both directions")
            }
            Cut::OneWay => {
                let is_mute = stage.random.random_bool(0.5);
                for &other in &others {
                    match is_mute {
                        true => stage.network.cut(leader, other),
                        false => stage.network.cut(other, leader),
                    }
                }
                let how = if is_mute {
                    "is not heard"
                } else {
                    "hears no other node"
                };
                format!("node {leader} {how}")
            }
            Cut::Bridge => {
                // The leader is at one end of the bridge.
                let (bridge, far) = others.split_at(others.len() / 2);
                cut_both(stage, leader, far);
                format!("node {leader} and {far:?} hear only {bridge:?}")
            }
            Cut::Ring => {
                let ids = stage.ids();
                for (place, &id) in ids.iter().enumerate() {
                    let next = (place + 2) % ids.len();
                    cut_both(stage, id, &[ids[next]]);
                }
                "each node hears its two neighbors in a ring".to_owned()
            }
        }
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn heal(&mut self, stage: &mut Stage) {
        stage.network.heal();
    }
}

fn cut_both(stage: &mut Stage, one: u64, others: &[u64]) {
    for &other in others {
        stage.network.cut(one, other);
        stage.network.cut(other, one);
    }
}
