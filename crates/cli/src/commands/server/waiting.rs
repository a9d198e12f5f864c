//! Logs what a node waits for until a leader serves it.

use flotilla_server::ServerConfig;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// The time between two log lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// Reports what a node waits for; without the report, it would seem to hang.
#[derive(Debug)]
pub(super) struct Waiting {
    node_id: u64,
    reason: String,
}

impl Waiting {
    /// The reason to wait, derived from the configuration.
    pub(super) fn new(config: &ServerConfig) -> Self {
        let ServerConfig {
            node_id,
            peers,
            join,
            ..
        } = config;
        let reason = match join {
            Some(member) => format!(
                "for its membership: the member at {member} must be reachable, and someone must run \
                 `flo cluster add-learner {node_id} HOST:PORT` with this node's peer address"
            ),
            None if peers.len() > 1 => {
                let others = peers.iter().filter(|peer| peer.node_id != *node_id);
                let others: Vec<String> = others
                    .map(|peer| format!("{}={}", peer.node_id, peer.address))
                    .collect();
                format!(
                    "for a leader: to form a new cluster, start all nodes and run `flo cluster form`; an existing \
                     cluster needs a majority of its nodes; the other nodes are {}",
                    others.join(", ")
                )
            }
            None => "until it leads itself".to_owned(),
        };
        Self {
            node_id: *node_id,
            reason,
        }
    }

    /// Logs the reason every few seconds until this is dropped.
    pub(super) async fn tell(self) -> Infallible {
        loop {
            sleep(INTERVAL).await;
            tracing::info!(node = self.node_id, "the node waits {}", self.reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use flotilla_server::Peer;

    fn check(config: &ServerConfig, expected: Expect) {
        expected.assert_eq(&Waiting::new(config).reason);
    }

    #[test]
    fn a_node_that_joins_waits_for_the_member_and_for_its_addition() {
        let config = ServerConfig {
            node_id: 4,
            join: Some("10.0.0.1:9001".to_owned()),
            ..ServerConfig::default()
        };
        check(
            &config,
            expect![
                "for its membership: the member at 10.0.0.1:9001 must be reachable, and someone must run `flo cluster add-learner 4 HOST:PORT` with this node's peer address"
            ],
        );
    }

    #[test]
    fn a_first_member_waits_for_the_others() {
        let peer = |node_id: u64| Peer {
            node_id,
            address: format!("10.0.0.{node_id}:9001"),
        };
        let config = ServerConfig {
            node_id: 2,
            peers: vec![peer(1), peer(2), peer(3)],
            ..ServerConfig::default()
        };
        check(
            &config,
            expect![
                "for a leader: to form a new cluster, start all nodes and run `flo cluster form`; an existing cluster needs a majority of its nodes; the other nodes are 1=10.0.0.1:9001, 3=10.0.0.3:9001"
            ],
        );
        check(&ServerConfig::default(), expect!["until it leads itself"]);
    }
}
