//! Nodes that join, are promoted, lead, and are removed.

use crate::cluster::{Cluster, LONG, register, submit};
use flotilla_engine::NodeId;
use flotilla_replica::protocol::{Sender, StatusRequest};
use flotilla_replica::{
    ChangeError, ChangeRefusal, ClusterChange, Environment, FatalError, GrpcTransport, PeerCalls,
    PeerError, Replica, Role, StartError, Transport, Tuning,
};
use futures::future::BoxFuture;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use std::{fs, io};
use tokio_util::sync::CancellationToken;

fn add(id: u64, peer_address: &str) -> ClusterChange {
    ClusterChange::AddLearner {
        node_id: NodeId(id),
        peer_address: peer_address.to_owned(),
    }
}

fn promote(id: u64) -> ClusterChange {
    let node_id = NodeId(id);
    ClusterChange::PromoteLearner { node_id }
}

fn remove(id: u64) -> ClusterChange {
    let node_id = NodeId(id);
    ClusterChange::RemoveNode { node_id }
}

/// Asks node 1, which must refuse.
async fn refusal(cluster: &Cluster, change: ClusterChange) -> ChangeRefusal {
    match cluster.change(1, change).await {
        Err(ChangeError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, but found {other:?}"),
    }
}

/// Waits until the replica reports that it must end, and why.
async fn end_of(replica: &Replica) -> Arc<FatalError> {
    let mut fatal = replica.fatal();
    let found = tokio::time::timeout(LONG, fatal.wait_for(Option::is_some)).await;
    let found = found.expect("in time").expect("a replica that is there");
    found.clone().expect("it was waited for")
}

fn is_removed(error: &FatalError) -> bool {
    matches!(error, FatalError::Refused(StartError::Removed(_)))
}

#[tokio::test]
async fn a_cluster_grows_from_one_node_to_three_and_each_new_one_can_lead() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    cluster.grow(1, 2).await;
    // It also works from a node that does not lead.
    cluster.grow(2, 3).await;
    for id in [2, 3, 1] {
        assert!(cluster.transfer(1, id).await.unwrap());
        assert_eq!(cluster.leader().await, id);
        assert!(!cluster.transfer(2, id).await.unwrap(), "it leads already");
        let name = format!("led-by-{id}");
        submit(cluster.node(id), register(&name))
            .await
            .unwrap()
            .unwrap();
    }
    let status = cluster.node(2).status().await;
    assert!(
        status
            .nodes
            .iter()
            .all(|node| node.is_voter && node.is_healthy)
    );
    cluster.agreed().await;
    // Now two of three are enough.
    cluster.kill(1);
    cluster.leader().await;
    submit(cluster.node(2), register("ship"))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_learner_receives_the_log_without_a_vote() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    let address = cluster.join(2).await;
    assert!(cluster.change(1, add(2, &address)).await.unwrap());
    assert!(!cluster.change(1, add(2, &address)).await.unwrap(), "again");
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    cluster.agreed().await;
    let status = cluster.node(2).status().await;
    assert_eq!(status.nodes[1].role, Role::Learner);
    assert!(!status.nodes[1].is_voter);
    let to_learner = ClusterChange::TransferLeader {
        to: Some(NodeId(2)),
    };
    let refused = refusal(&cluster, to_learner).await;
    assert_eq!(refused, ChangeRefusal::NodeNotVoter(NodeId(2)));
    // Without its vote, the cluster continues without it.
    cluster.kill(2);
    submit(cluster.node(1), register("ship"))
        .await
        .unwrap()
        .unwrap();
    assert!(cluster.change(1, remove(2)).await.unwrap());
    assert_eq!(cluster.node(1).status().await.nodes.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_a_member_is_refused_and_nothing_changes() {
    let mut cluster = Cluster::started(2, Tuning::default()).await;
    let nobody = cluster.joining_config(9).peer_listen.to_string();
    let address = cluster.join(3).await;
    let members = cluster.node(1).status().await.nodes.len();
    let refused = refusal(&cluster, add(9, &nobody)).await;
    assert_eq!(refused, ChangeRefusal::NodeUnreachable(nobody));
    let refused = refusal(&cluster, add(4, &address)).await;
    let differs = ChangeRefusal::NodeMismatch {
        address: address.clone(),
        expected: NodeId(4),
        found: NodeId(3),
    };
    assert_eq!(refused, differs);
    let taken = refusal(&cluster, add(2, &address)).await;
    assert!(
        matches!(taken, ChangeRefusal::NodeIdInUse { .. }),
        "{taken}"
    );
    let own = cluster.config(1).peer_listen.to_string();
    let taken = refusal(&cluster, add(3, &own)).await;
    assert!(
        matches!(taken, ChangeRefusal::AddressInUse { .. }),
        "{taken}"
    );
    let stranger = refusal(&cluster, promote(3)).await;
    assert_eq!(stranger, ChangeRefusal::NodeNotMember(NodeId(3)));
    let stranger = refusal(&cluster, remove(3)).await;
    assert_eq!(stranger, ChangeRefusal::NodeNotMember(NodeId(3)));
    assert_eq!(cluster.node(1).status().await.nodes.len(), members);
}

#[tokio::test]
async fn a_node_of_another_cluster_is_not_taken_in() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let other = Cluster::started(1, Tuning::default()).await;
    let address = other.config(1).peer_listen.to_string();
    // Its id must be another one to get as far as its data.
    let mut third = Cluster::new(2, Tuning::default());
    drop(other);
    third.start(1).await;
    third.start(2).await;
    third.form(1).await;
    third.leader().await;
    let foreign = third.config(2).peer_listen.to_string();
    let refused = refusal(&cluster, add(2, &foreign)).await;
    assert_eq!(refused, ChangeRefusal::NodeNotEmpty(NodeId(2)));
    let gone = refusal(&cluster, add(2, &address)).await;
    assert_eq!(gone, ChangeRefusal::NodeUnreachable(address));
}

#[tokio::test]
async fn a_removed_member_ends_and_its_id_is_not_used_again() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let victim = cluster.follower().await;
    let via = cluster.leader().await;
    assert!(cluster.change(via, remove(victim)).await.unwrap());
    assert!(!cluster.change(via, remove(victim)).await.unwrap(), "again");
    assert!(is_removed(&*end_of(cluster.node(victim)).await));
    cluster.kill(victim);
    let refused = Replica::start(cluster.config(victim), Environment::default()).await;
    assert!(matches!(refused, Err(StartError::Removed(_))));
    // Nor with an empty directory.
    let directory = cluster.data_directory(victim);
    fs::rename(&directory, directory.with_extension("old")).unwrap();
    let config = cluster.joining_config(victim);
    let refused = Replica::start(config, Environment::default()).await;
    let refused = refused.err().expect("the start is refused");
    assert!(
        matches!(refused, StartError::NodeIdRetired { .. }),
        "{refused}"
    );
    let survivors = cluster.ids();
    submit(cluster.node(survivors[0]), register("pack"))
        .await
        .unwrap()
        .unwrap();
    // Two voters are left: both are needed now, and the last one stays.
    cluster.leader().await;
    assert!(
        cluster
            .change(survivors[0], remove(survivors[1]))
            .await
            .unwrap()
    );
    cluster.kill(survivors[1]);
    let last = cluster.change(survivors[0], remove(survivors[0])).await;
    let last_voter = ChangeRefusal::LastVoter(NodeId(survivors[0]));
    assert_eq!(last, Err(ChangeError::Refused(last_voter)));
}

#[tokio::test]
async fn a_member_that_was_away_when_it_was_removed_learns_it_from_the_others() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let victim = cluster.follower().await;
    cluster.kill(victim);
    let via = cluster.leader().await;
    assert!(cluster.change(via, remove(victim)).await.unwrap());
    for id in cluster.ids() {
        cluster.stop(id).await;
    }
    // At first no member is up to report its removal.
    cluster.start(victim).await;
    let others: Vec<u64> = (1..=3).filter(|id| *id != victim).collect();
    for id in others {
        cluster.start(id).await;
    }
    assert!(is_removed(&*end_of(cluster.node(victim)).await));
}

#[tokio::test]
async fn a_leader_that_is_removed_hands_over_first() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let old = cluster.leader().await;
    assert!(cluster.change(old, remove(old)).await.unwrap());
    assert!(is_removed(&*end_of(cluster.node(old)).await));
    cluster.kill(old);
    let new = cluster.leader().await;
    submit(cluster.node(new), register("pack"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(cluster.node(new).status().await.nodes.len(), 2);
}

#[tokio::test]
async fn a_voter_without_which_too_few_answer_is_not_removed() {
    let mut cluster = Cluster::started(4, Tuning::default()).await;
    let via = cluster.leader().await;
    let others: Vec<u64> = cluster.ids().into_iter().filter(|id| *id != via).collect();
    cluster.kill(others[0]);
    // Of the three that would remain, this one and another respond: enough.
    assert!(cluster.change(via, remove(others[1])).await.unwrap());
    let refused = cluster.change(via, remove(others[2])).await;
    let at_risk = ChangeRefusal::QuorumAtRisk {
        voters: 2,
        answering: 1,
    };
    assert_eq!(refused, Err(ChangeError::Refused(at_risk)));
    // The dead one may be removed: those that remain respond.
    assert!(cluster.change(via, remove(others[0])).await.unwrap());
}

#[tokio::test]
async fn a_change_whose_leader_dies_can_be_asked_for_again() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    for id in 4..=6 {
        let via = cluster.leader().await;
        let address = cluster.join(id).await;
        assert!(cluster.change(via, add(id, &address)).await.unwrap());
        let leader = cluster.leader().await;
        let dying = cluster.node(leader).clone();
        let deadline = tokio::time::Instant::now() + LONG;
        let cut_short = tokio::spawn(async move { dying.change(promote(id), deadline).await });
        tokio::task::yield_now().await;
        cut_short.abort();
        // The change may have been made wholly, in half, or not at all: a retry is right in any
        // case.
        drop(cut_short.await);
        cluster.kill(leader);
        cluster.start(leader).await;
        let via = cluster.leader().await;
        loop {
            match cluster.change(via, promote(id)).await {
                Ok(_) => break,
                Err(ChangeError::Refused(ChangeRefusal::MembershipChangeInProgress)) => {}
                Err(error) => panic!("expected the change, but {error}"),
            }
        }
        let status = cluster.node(via).status().await;
        assert!(
            status
                .nodes
                .iter()
                .any(|node| node.node_id.0 == id && node.is_voter)
        );
    }
    cluster.agreed().await;
}

#[tokio::test]
async fn a_learner_that_does_not_respond_gets_no_vote_and_the_cluster_continues() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    let address = cluster.join(2).await;
    assert!(cluster.change(1, add(2, &address)).await.unwrap());
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    cluster.agreed().await;
    // It has everything, and is gone: with its vote, nothing could be written.
    cluster.kill(2);
    let refused = refusal(&cluster, promote(2)).await;
    assert_eq!(refused, ChangeRefusal::NodeUnreachable(address));
    submit(cluster.node(1), register("ship"))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_voter_that_is_behind_leads_once_it_has_caught_up() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    let behind = cluster.follower().await;
    cluster.kill(behind);
    for number in 0..100 {
        let name = format!("action-{number}");
        submit(cluster.node(leader), register(&name))
            .await
            .unwrap()
            .unwrap();
    }
    cluster.start(behind).await;
    assert_eq!(cluster.transfer(leader, behind).await, Ok(true));
    submit(cluster.node(behind), register("pack"))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_lead_is_not_given_to_a_voter_that_does_not_answer() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    let dead = cluster.follower().await;
    cluster.kill(dead);
    let to_dead = cluster.transfer(leader, dead).await;
    assert_eq!(
        to_dead,
        Err(ChangeError::Refused(
            ChangeRefusal::LeadershipTransferTimeout
        ))
    );
    submit(cluster.node(leader), register("pack"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(cluster.leader().await, leader);
}

#[tokio::test]
async fn a_removed_member_is_refused_and_the_others_are_not() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let victim = cluster.follower().await;
    let via = cluster.leader().await;
    assert!(cluster.change(via, remove(victim)).await.unwrap());
    cluster.kill(victim);
    let peer = GrpcTransport::default().connect(&cluster.config(via).peer_listen.to_string());
    let other = cluster.ids().into_iter().find(|id| *id != via).unwrap();
    for (node_id, is_refused) in [(victim, true), (other, false)] {
        let sender = Sender {
            cluster_id: cluster.node(via).cluster_id().unwrap().to_owned(),
            node_id,
            target_node_id: via,
            client_address: format!("client-{node_id}:9000"),
            ..Sender::default()
        };
        let request = StatusRequest {
            sender: Some(sender),
        };
        let answer = peer.status(request).await;
        let found = matches!(answer, Err(PeerError::Refused(_)));
        assert_eq!(found, is_refused, "node {node_id}: {answer:?}");
    }
}

/// A transport that knows which of its connections are still held, by their addresses.
#[derive(Clone, Default)]
struct CountingTransport(Arc<Mutex<Vec<HeldConnection>>>);

type HeldConnection = (String, Weak<dyn PeerCalls>);

impl CountingTransport {
    fn is_connected(&self, address: &str) -> bool {
        let mut connections = self.0.lock().expect("not poisoned");
        connections.retain(|(_, connection)| connection.strong_count() > 0);
        connections.iter().any(|(known, _)| known == address)
    }

    /// Waits until no connection to an address is held.
    async fn disconnected(&self, address: &str) {
        let closing = async {
            while self.is_connected(address) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let closed = tokio::time::timeout(LONG, closing).await;
        closed.expect("its connections are closed in time");
    }
}

impl Transport for CountingTransport {
    fn connect(&self, address: &str) -> Arc<dyn PeerCalls> {
        let connection = GrpcTransport::default().connect(address);
        let held = (address.to_owned(), Arc::downgrade(&connection));
        self.0.lock().expect("not poisoned").push(held);
        connection
    }

    fn serve(
        &self,
        listen: SocketAddr,
        peer: Arc<dyn PeerCalls>,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, io::Result<()>> {
        GrpcTransport::default().serve(listen, peer, shutdown)
    }
}

#[tokio::test]
async fn no_connection_is_kept_to_a_removed_member_or_to_an_address_that_was_refused() {
    let mut cluster = Cluster::new(2, Tuning::default());
    let transport = CountingTransport::default();
    let environment = Environment {
        transport: Arc::new(transport.clone()),
        ..Environment::default()
    };
    cluster.start_with(1, environment).await;
    cluster.start(2).await;
    cluster.form(1).await;
    cluster.leader().await;
    // The leader probes the address.
    cluster.transfer(1, 1).await.unwrap();
    let absent = cluster.joining_config(9).peer_listen.to_string();
    refusal(&cluster, add(9, &absent)).await;
    transport.disconnected(&absent).await;

    let member = cluster.config(2).peer_listen.to_string();
    cluster.node(1).status().await;
    assert!(transport.is_connected(&member));
    assert!(cluster.change(1, remove(2)).await.unwrap());
    transport.disconnected(&member).await;
}
