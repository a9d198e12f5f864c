//! Membership changes: one member is removed for good, and a new one with an empty disk takes its place, as
//! an operator replaces a machine. Sometimes leadership is transferred to another voter first.

use super::Nemesis;
use crate::stage::Stage;
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::time::Duration;

/// Replaces members.
pub(super) struct Churn;

impl Nemesis for Churn {
    fn name(&self) -> &'static str {
        "membership-churn"
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        stage.cluster.await_health();
        let ids = stage.ids();
        let victim = ids.choose(&mut stage.random).copied().unwrap_or(1);
        let mut told = String::new();
        if stage.random.random_bool(0.5) {
            drop(stage.cluster.flo().text(&["cluster", "transfer-leader"]));
            told.push_str("another voter leads; ");
        }
        let successor = stage.replace(victim);
        told.push_str(&format!("member {victim} is replaced by {successor}"));
        told
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}
