//! Slow links and links that break.

use super::{Needs, Nemesis};
use crate::network::Wanted;
use crate::stage::Stage;
use rand::RngExt;
use std::time::Duration;

/// Makes all links between the nodes slow or lossy.
pub(super) struct Links {
    is_slow: bool,
}

impl Links {
    pub(super) fn slow() -> Self {
        Self { is_slow: true }
    }

    pub(super) fn lossy() -> Self {
        Self { is_slow: false }
    }
}

impl Nemesis for Links {
    fn name(&self) -> &'static str {
        match self.is_slow {
            true => "slow-links",
            false => "lossy-links",
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            network: Wanted::Shaped,
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        if self.is_slow {
            let delay_ms = stage.random.random_range(20..120);
            stage.network.slow(Duration::from_millis(delay_ms));
            return format!("messages are {delay_ms} ms late, plus or minus a half");
        }
        let per_mille = stage.random.random_range(10..60);
        stage.network.slow(Duration::from_millis(5));
        stage.network.lose(per_mille);
        format!("connections break at {per_mille} of 1000 messages")
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn heal(&mut self, stage: &mut Stage) {
        stage.network.heal();
    }
}
