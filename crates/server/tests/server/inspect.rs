//! What an operator sees of what waits on a node.

use crate::node::{APPROVAL, Node, refused, start_of};
use crate::wait::until;
use flotilla_api::v1;
use std::collections::BTreeMap;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use v1::worker_message::Message;

async fn inspect(via: &Node, node_id: u64, limit: u32) -> v1::NodeInspection {
    let request = v1::InspectNodeRequest {
        node_id: Some(node_id),
        limit,
    };
    let inspection = via.cluster().inspect_node(request).await;
    inspection.unwrap().into_inner()
}

async fn leader_of(node: &Node) -> u64 {
    until("a leader", async || {
        let status = node.cluster().get_status(v1::GetStatusRequest {}).await;
        status.unwrap().into_inner().leader_id
    })
    .await
}

fn node(nodes: &[Node], node_id: u64) -> &Node {
    &nodes[usize::try_from(node_id).unwrap() - 1]
}

/// Opens the stream of a worker with this many free slots for the action `pack`.
async fn open_worker(node: &Node, max_tasks_total: u64) -> impl Sized + use<> {
    let action = v1::RegisterActionRequest {
        name: "pack".to_owned(),
        ..Default::default()
    };
    node.actions().register_action(action).await.unwrap();
    let worker = v1::RegisterRequest {
        worker_id: "w".to_owned(),
        incarnation: 1,
        ..Default::default()
    };
    node.workers().register(worker).await.unwrap();
    let (outgoing, messages) = tokio::sync::mpsc::channel(4);
    let hello = Message::Hello(v1::WorkerHello {
        worker_id: "w".to_owned(),
        incarnation: 1,
        actions: vec!["pack".to_owned()],
        ..Default::default()
    });
    let slots = Message::Slots(v1::WorkerSlots { max_tasks_total });
    for (sequence, message) in [(1, hello), (2, slots)] {
        let message = v1::WorkerMessage {
            sequence,
            message: Some(message),
        };
        outgoing.send(message).await.unwrap();
    }
    let opened = node.workers().stream(ReceiverStream::new(messages)).await;
    (outgoing, opened.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_shows_what_waits_on_a_member() {
    let nodes = Node::start_cluster().await;
    let leader = leader_of(&nodes[0]).await;
    let follower = leader % 3 + 1;
    let (leading, following) = (node(&nodes, leader), node(&nodes, follower));
    leading.create(APPROVAL).await;
    let run_id = leading.run(start_of("approval", "")).await.run_id;
    let watch = v1::WatchRunRequest {
        run_id,
        ..Default::default()
    };
    let _updates = following.workflows().watch_run(watch).await.unwrap();
    let _worker = open_worker(leading, 7).await;

    // Each is asked through the other one.
    let seen = until("the worker to offer its slots", async || {
        let seen = inspect(following, leader, 0).await;
        seen.polls
            .iter()
            .any(|polls| polls.free_slots == 7)
            .then_some(seen)
    })
    .await;
    assert_eq!(
        (seen.node_id, seen.leading, seen.drained),
        (leader, true, false)
    );
    let polls = &seen.polls[0];
    assert_eq!((&*polls.namespace, polls.worker_count), ("default", 1));
    let mut others: Vec<u64> = seen.followers.iter().map(|one| one.node_id).collect();
    others.sort_unstable();
    let members: Vec<u64> = [1, 2, 3].into_iter().filter(|id| *id != leader).collect();
    assert_eq!(others, members);
    let owners: Vec<&str> = seen.memory.iter().map(|one| &*one.owner).collect();
    assert_eq!(
        owners,
        [
            "requests",
            "reads",
            "worker_streams",
            "worker_messages",
            "responses",
            "views",
            "admin",
            "wasm",
            "compilations",
            "queue",
            "forwards",
            "snapshots",
            "modules"
        ]
    );
    assert!(seen.memory.iter().all(|one| one.bytes_max > 0));
    let connections: BTreeMap<&str, u64> = seen
        .connections
        .iter()
        .map(|one| (&*one.port, one.count))
        .collect();
    let ports: Vec<&str> = connections.keys().copied().collect();
    assert_eq!(ports, ["admin", "clients", "http", "peers"]);
    assert!(connections["clients"] > 0 && connections["peers"] > 0);
    assert!(seen.embedded_slots.unwrap().count > 0);
    assert!(seen.installs.is_empty() && seen.omitted_count == 0);

    let seen = inspect(leading, follower, 0).await;
    assert_eq!((seen.node_id, seen.leading), (follower, false));
    assert!(seen.followers.is_empty() && seen.polls.is_empty());
    let watchers = &seen.watchers[0];
    assert_eq!((&*watchers.kind, &*watchers.namespace), ("run", "default"));
    assert_eq!(watchers.count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inspection_is_bounded_and_names_what_it_cannot_reach() {
    let mut nodes = Node::start_cluster().await;
    let leader = leader_of(&nodes[0]).await;
    let seen = inspect(&nodes[0], leader, 1).await;
    assert_eq!(
        (seen.followers.len(), seen.calls_without_token.len()),
        (1, 1)
    );
    assert!(seen.omitted_count > 0, "the other follower");
    let refusal = async |via: &Node, node_id, limit| {
        let request = v1::InspectNodeRequest {
            node_id: Some(node_id),
            limit,
        };
        refused(via.cluster().inspect_node(request).await)
    };
    let too_many = refusal(&nodes[0], 1, 101).await;
    assert_eq!(
        too_many,
        (Code::InvalidArgument, "invalid_argument".to_owned())
    );
    let unknown = refusal(&nodes[0], 9, 0).await;
    assert_eq!(unknown, (Code::NotFound, "node_not_found".to_owned()));
    // Without a quorum, a node still shows what waits on it.
    let last = nodes.remove(0);
    for other in nodes {
        other.stop().await.0.unwrap();
    }
    let silent = refusal(&last, 3, 0).await;
    assert_eq!(
        silent,
        (Code::FailedPrecondition, "node_unreachable".to_owned())
    );
    let request = v1::InspectNodeRequest::default();
    let own = last.cluster().inspect_node(request).await.unwrap();
    assert_eq!(own.into_inner().node_id, 1);
}
