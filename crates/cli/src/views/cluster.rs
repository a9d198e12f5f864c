//! The cluster, as seen by one node.

use super::name;
use crate::output::{Row, table};
use flotilla_client::v1;
use serde::Serialize;

/// The role of a node that does not answer the called node.
const UNREACHABLE: &str = "unreachable";

/// The cluster.
#[derive(Debug, Serialize)]
pub(crate) struct ClusterView {
    cluster_id: String,
    leader_id: Option<u64>,
    term: u64,
    /// The engine version that all members use; newer rules wait until all members know them. Only
    /// in text output: the fields of the JSON are a contract.
    #[serde(skip)]
    engine_version: u32,
    /// Absent while the node reads no state. Only in text output, too.
    #[serde(skip)]
    max_request_ids: Option<u64>,
    nodes: Vec<NodeView>,
    #[serde(skip)]
    responding_node_id: u64,
    /// What the node waits for before it belongs to a cluster. Only in text output, too.
    #[serde(skip)]
    awaited: String,
    /// Why the answering node cannot continue, and what to do. Only in text output, too.
    #[serde(skip)]
    stop_reason: String,
}

#[derive(Debug, Serialize)]
struct NodeView {
    node_id: u64,
    address: String,
    role: String,
    voter: bool,
    last_log_index: u64,
    applied_index: u64,
    snapshot_index: Option<u64>,
    digest: Option<DigestView>,
    lag: u64,
    healthy: bool,
    version: String,
    /// Only of a drained node.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    drained: bool,
    #[serde(skip)]
    engine_version: u32,
    #[serde(skip)]
    election_ms: u64,
    /// The role for people, which distinguishes a leader without followers and a drained node.
    #[serde(skip)]
    standing: String,
}

#[derive(Debug, Serialize)]
struct DigestView {
    index: u64,
    value: String,
}

impl ClusterView {
    /// Whether a node leads with a quorum.
    pub(crate) fn has_leader(&self) -> bool {
        self.leader_id.is_some()
    }

    /// Whether the cluster has been formed, as far as the answering node knows.
    pub(crate) fn is_formed(&self) -> bool {
        !self.cluster_id.is_empty()
    }

    /// Why the answering node cannot continue, and what to do; `None` while it can.
    pub(crate) fn stop_reason(&self) -> Option<String> {
        let node_id = self.responding_node_id;
        let reason = Some(self.stop_reason.as_str()).filter(|reason| !reason.is_empty());
        reason.map(|reason| format!("node {node_id} cannot continue: {reason}"))
    }

    /// What to do if no node leads.
    pub(crate) fn advice(&self) -> String {
        if !self.is_formed() {
            return "to form a new cluster, start all nodes in `peers` and run `flo cluster form`; to add this \
                    node to an existing cluster, run `flo cluster add-learner`"
                .to_owned();
        }
        let voters = self.nodes.iter().filter(|node| node.voter);
        let voters_count = voters.clone().count();
        let answering = voters.filter(|node| node.answers()).count();
        let quorum = voters_count / 2 + 1;
        if answering < quorum {
            format!(
                "{answering} of {voters_count} voters answer, but {quorum} are needed: \
                 start the unreachable ones"
            )
        } else {
            "enough voters answer: an election may be in progress, try again".to_owned()
        }
    }

    /// The cluster for people: a sentence and a table of the nodes.
    pub(crate) fn text(&self) -> String {
        if !self.is_formed() {
            let node_id = self.responding_node_id;
            let text = format!("node {node_id} does not belong to a cluster yet");
            return match self.awaited.as_str() {
                "" => text,
                awaited => format!("{text}: {awaited}"),
            };
        }
        let leader = match self.leader_id {
            Some(node_id) => format!("led by node {node_id} in term {}", self.term),
            None => format!("without a leader in term {}", self.term),
        };
        let mut text = format!(
            "cluster {}, {leader}, on engine version {}, as node {} sees it\n\n{}",
            self.cluster_id,
            self.engine_version,
            self.responding_node_id,
            table(&self.nodes)
        );
        if let Some(max) = self.max_request_ids {
            text.push_str(&format!("\n\nsettings: max-request-ids {max}"));
        }
        let notes = [self.upgrade(), self.timing()];
        for note in notes.into_iter().flatten() {
            text.push_str(&format!("\n\n{note}"));
        }
        text
    }

    /// The nodes whose timing differs from the leader's, if there are any.
    fn timing(&self) -> Option<String> {
        let answering = || self.nodes.iter().filter(|node| node.election_ms > 0);
        let leader = answering().find(|node| Some(node.node_id) == self.leader_id)?;
        let differing: Vec<String> = answering()
            .filter(|node| node.election_ms != leader.election_ms)
            .map(|node| format!("node {} has {}", node.node_id, node.election_ms))
            .collect();
        if differing.is_empty() {
            return None;
        }
        Some(format!(
            "election_ms differs: the leader has {}, but {}; set it to the same value on all nodes and restart them",
            leader.election_ms,
            differing.join(", ")
        ))
    }

    /// The progress of an upgrade, while members know different engine versions.
    fn upgrade(&self) -> Option<String> {
        let answering = || self.nodes.iter().filter(|node| node.answers());
        let newest = answering().map(|node| node.engine_version).max()?;
        let older: Vec<String> = answering()
            .filter(|node| node.engine_version < newest)
            .map(|node| node.node_id.to_string())
            .collect();
        if older.is_empty() {
            return None;
        }
        Some(format!(
            "all use engine version {}; version {newest} begins once no node runs an older binary: {}",
            self.engine_version,
            older.join(", ")
        ))
    }
}

impl From<v1::ClusterStatus> for ClusterView {
    fn from(status: v1::ClusterStatus) -> Self {
        Self {
            cluster_id: status.cluster_id,
            leader_id: status.leader_id,
            term: status.term,
            engine_version: status.engine_version,
            max_request_ids: status.settings.map(|settings| settings.max_request_ids),
            nodes: status
                .nodes
                .into_iter()
                .map(|node| NodeView::new(node, status.leader_id))
                .collect(),
            responding_node_id: status.responding_node_id,
            awaited: status.awaited,
            stop_reason: status.stop_reason,
        }
    }
}

impl NodeView {
    /// A node of a cluster with this leader. A node that considers itself the leader but has no
    /// quorum does not serve, so it is not healthy.
    fn new(node: v1::NodeStatus, leader: Option<u64>) -> Self {
        let digest = |v1::StateDigest { index, value }| DigestView { index, value };
        let is_stale = node.role() == v1::NodeRole::Leader && leader != Some(node.node_id);
        let role = name(node.role());
        let standing = match node.role() {
            v1::NodeRole::Leader if is_stale => "stale leader".to_owned(),
            v1::NodeRole::Unspecified if !node.healthy => UNREACHABLE.to_owned(),
            _ if node.drained => format!("drained {role}"),
            _ => role.clone(),
        };
        Self {
            role,
            standing,
            node_id: node.node_id,
            address: node.address,
            voter: node.voter,
            last_log_index: node.last_log_index,
            applied_index: node.applied_index,
            snapshot_index: node.snapshot_index,
            digest: node.digest.map(digest),
            lag: node.lag,
            healthy: node.healthy && !is_stale,
            version: node.version,
            drained: node.drained,
            engine_version: node.engine_version,
            election_ms: node.election_ms,
        }
    }

    fn answers(&self) -> bool {
        self.standing != UNREACHABLE
    }
}

impl Row for NodeView {
    const HEADINGS: &'static [&'static str] = &[
        "NODE", "ADDRESS", "ROLE", "VOTER", "HEALTHY", "LOG", "APPLIED", "SNAPSHOT", "LAG",
        "DIGEST", "VERSION",
    ];

    fn cells(&self) -> Vec<String> {
        let snapshot = self.snapshot_index.map(|index| index.to_string());
        let digest = self.digest.as_ref().map(|digest| {
            let start: String = digest.value.chars().take(12).collect();
            format!("{start}@{}", digest.index)
        });
        let dash = || "-".to_owned();
        vec![
            self.node_id.to_string(),
            self.address.clone(),
            self.standing.clone(),
            self.voter.to_string(),
            self.healthy.to_string(),
            self.last_log_index.to_string(),
            self.applied_index.to_string(),
            snapshot.unwrap_or_else(dash),
            self.lag.to_string(),
            digest.unwrap_or_else(dash),
            self.version.clone(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn cluster(leader: Option<u64>) -> ClusterView {
        ClusterView::from(message(leader))
    }

    fn message(leader: Option<u64>) -> v1::ClusterStatus {
        let node = v1::NodeStatus {
            node_id: 1,
            address: "127.0.0.1:9000".to_owned(),
            role: v1::NodeRole::Leader.into(),
            voter: true,
            last_log_index: 42,
            applied_index: 41,
            digest: Some(v1::StateDigest {
                index: 40,
                value: "00ff00ff00ff00ff".to_owned(),
            }),
            lag: 1,
            healthy: true,
            version: "0.1.0".to_owned(),
            engine_version: 1,
            ..v1::NodeStatus::default()
        };
        v1::ClusterStatus {
            cluster_id: "c1".to_owned(),
            leader_id: leader,
            term: 3,
            nodes: vec![node],
            responding_node_id: 1,
            engine_version: 1,
            settings: Some(v1::ClusterSettings {
                max_request_ids: 6_000_000,
            }),
            awaited: String::new(),
            stop_reason: String::new(),
        }
    }

    #[test]
    fn the_cluster_has_exactly_the_published_fields() {
        expect![[r#"{"cluster_id":"c1","leader_id":1,"term":3,"nodes":[{"node_id":1,"address":"127.0.0.1:9000","role":"leader","voter":true,"last_log_index":42,"applied_index":41,"snapshot_index":null,"digest":{"index":40,"value":"00ff00ff00ff00ff"},"lag":1,"healthy":true,"version":"0.1.0"}]}"#]]
            .assert_eq(&serde_json::to_string(&cluster(Some(1))).expect("printable"));
    }

    #[test]
    fn without_a_quorum_the_leader_is_null() {
        let text = serde_json::to_string(&cluster(None)).expect("printable");
        assert!(text.contains(r#""leader_id":null"#), "{text}");
        assert!(cluster(None).text().contains("without a leader"));
        assert!(!cluster(None).has_leader());
    }

    #[test]
    fn without_a_quorum_no_node_is_shown_as_a_healthy_leader() {
        let mut status = message(None);
        for node_id in [2, 3] {
            status.nodes.push(v1::NodeStatus {
                node_id,
                voter: true,
                lag: 42,
                ..v1::NodeStatus::default()
            });
        }
        let mut view = ClusterView::from(status);
        expect![[r#"
            cluster c1, without a leader in term 3, on engine version 1, as node 1 sees it

            NODE  ADDRESS         ROLE          VOTER  HEALTHY  LOG  APPLIED  SNAPSHOT  LAG  DIGEST           VERSION
            1     127.0.0.1:9000  stale leader  true   false    42   41       -         1    00ff00ff00ff@40  0.1.0
            2                     unreachable   true   false    0    0        -         42   -
            3                     unreachable   true   false    0    0        -         42   -

            settings: max-request-ids 6000000"#]].assert_eq(&view.text());
        expect!["1 of 3 voters answer, but 2 are needed: start the unreachable ones"]
            .assert_eq(&view.advice());
        view.nodes[1].standing = "follower".to_owned();
        assert!(view.advice().contains("election"), "{}", view.advice());
    }

    #[test]
    fn a_cluster_that_is_not_formed_has_neither_id_nor_voters() {
        let view = ClusterView::from(v1::ClusterStatus {
            responding_node_id: 2,
            awaited: "these do not respond: node 3".to_owned(),
            ..v1::ClusterStatus::default()
        });
        expect!["node 2 does not belong to a cluster yet: these do not respond: node 3"]
            .assert_eq(&view.text());
        expect!["to form a new cluster, start all nodes in `peers` and run `flo cluster form`; to add this node to an existing cluster, run `flo cluster add-learner`"].assert_eq(&view.advice());
        assert!(!view.has_leader());
    }

    #[test]
    fn an_upgrade_names_the_nodes_that_are_left() {
        let mut status = message(Some(1));
        assert_eq!(ClusterView::from(status.clone()).upgrade(), None);
        status.nodes.push(v1::NodeStatus {
            node_id: 2,
            role: v1::NodeRole::Follower.into(),
            healthy: true,
            engine_version: 2,
            ..v1::NodeStatus::default()
        });
        let view = ClusterView::from(status);
        expect!["all use engine version 1; version 2 begins once no node runs an older binary: 1"]
            .assert_eq(&view.upgrade().expect("node 1 is older"));
    }

    #[test]
    fn nodes_whose_timing_differs_from_the_leaders_are_named() {
        let mut status = message(Some(1));
        status.nodes[0].election_ms = 300;
        for (node_id, election_ms) in [(2, 900), (3, 300), (4, 0)] {
            status.nodes.push(v1::NodeStatus {
                node_id,
                election_ms,
                ..v1::NodeStatus::default()
            });
        }
        let text = ClusterView::from(status.clone()).text();
        expect!["election_ms differs: the leader has 300, but node 2 has 900; set it to the same value on all nodes and restart them"]
            .assert_eq(text.lines().last().expect("lines"));
        status.nodes[1].election_ms = 300;
        assert_eq!(ClusterView::from(status).timing(), None);
    }

    #[test]
    fn a_node_that_cannot_continue_says_why() {
        let mut status = message(Some(2));
        status.stop_reason = "node 1 was removed from its cluster; start another".to_owned();
        let view = ClusterView::from(status);
        expect!["node 1 cannot continue: node 1 was removed from its cluster; start another"]
            .assert_eq(&view.stop_reason().expect("it is given"));
        assert_eq!(cluster(Some(1)).stop_reason(), None);
    }

    #[test]
    fn a_drained_node_is_shown_as_such() {
        let mut status = message(Some(2));
        let node = &mut status.nodes[0];
        (node.role, node.drained) = (v1::NodeRole::Follower.into(), true);
        let view = ClusterView::from(status);
        assert!(view.text().contains("drained follower"), "{}", view.text());
        let json = serde_json::to_string(&view).expect("printable");
        assert!(
            json.contains(r#""role":"follower""#) && json.contains(r#""drained":true"#),
            "{json}"
        );
    }

    #[test]
    fn the_cluster_for_people_is_a_table() {
        expect![[r#"
            cluster c1, led by node 1 in term 3, on engine version 1, as node 1 sees it

            NODE  ADDRESS         ROLE    VOTER  HEALTHY  LOG  APPLIED  SNAPSHOT  LAG  DIGEST           VERSION
            1     127.0.0.1:9000  leader  true   true     42   41       -         1    00ff00ff00ff@40  0.1.0

            settings: max-request-ids 6000000"#]]
        .assert_eq(&cluster(Some(1)).text());
    }
}
