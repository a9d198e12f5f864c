//! SIGKILL: everything that is not on disk is lost.

use super::Nemesis;
use crate::stage::Stage;
use rand::seq::IndexedRandom;

/// Kills nodes.
pub(super) struct Kill {
    victims: Victims,
}

enum Victims {
    Leader,
    Follower,
    All,
}

impl Kill {
    pub(super) fn leader() -> Self {
        Self {
            victims: Victims::Leader,
        }
    }

    pub(super) fn follower() -> Self {
        Self {
            victims: Victims::Follower,
        }
    }

    pub(super) fn all() -> Self {
        Self {
            victims: Victims::All,
        }
    }
}

impl Nemesis for Kill {
    fn name(&self) -> &'static str {
        match self.victims {
            Victims::Leader => "kill-leader",
            Victims::Follower => "kill-follower",
            Victims::All => "kill-all",
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let victims = match self.victims {
            Victims::Leader => vec![stage.leader()],
            Victims::Follower => a_follower(stage).into_iter().collect(),
            Victims::All => stage.ids(),
        };
        for &victim in &victims {
            // In combination with another nemesis it may be gone already.
            if stage.cluster.node(victim).is_alive() {
                stage.cluster.kill(victim);
            }
        }
        format!("SIGKILL {victims:?}")
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}

/// A node that is not the leader.
pub(super) fn a_follower(stage: &mut Stage) -> Option<u64> {
    let followers = stage.followers();
    followers.choose(&mut stage.random).copied()
}
