//! Members of a closed cluster without TLS prove themselves with a secret from the keyring (X14).

use crate::access::{create_token, with_token};
use crate::node::{APPROVAL, Node, refused, start_of};
use crate::wait::until;
use flotilla_api::v1;
use flotilla_replica::protocol::peer_client::PeerClient;
use flotilla_replica::protocol::{
    AppendRequest, ForwardRequest, ProbeRequest, Sender, SnapshotPart, StatusRequest,
    TransferLeaderRequest, VoteRequest, forward_request,
};
use flotilla_server::generate_keyring;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;
use tokio_stream::StreamExt;
use tonic::metadata::BinaryMetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;
use v1::access_service_client::AccessServiceClient;
use v1::worker_service_client::WorkerServiceClient;

/// Three members of an open cluster, each with its own keyring file.
struct Cluster {
    nodes: Vec<Node>,
    /// The token of an administrator.
    root: String,
    files: TempDir,
}

impl Cluster {
    async fn start() -> Self {
        let files = tempfile::tempdir().unwrap();
        let keyring = generate_keyring();
        for node_id in 1..=3 {
            write(&keyring_file(files.path(), node_id), &keyring);
        }
        let nodes = Node::start_cluster_with(|config| {
            config.keyring_file = Some(keyring_file(files.path(), config.node_id));
        })
        .await;
        nodes[0].create(APPROVAL).await;
        let (root, _) = create_token(&nodes[0], "cluster-admin", None).await;
        Self { nodes, root, files }
    }

    async fn set_mode(&self, mode: v1::AccessMode) {
        let request = v1::SetAccessRequest {
            mode: mode.into(),
            ..Default::default()
        };
        let mut access = AccessServiceClient::new(self.nodes[1].channel());
        access
            .set_access(with_token(request, &self.root))
            .await
            .unwrap();
    }

    /// Connects to the peer port of the first node.
    async fn connect(&self) -> Channel {
        let address = self.nodes[0].peer_address.as_deref().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        endpoint.connect().await.unwrap()
    }

    /// What a member would say of itself: a stranger can say it too.
    async fn sender(&self) -> Sender {
        let mut peer = PeerClient::new(self.connect().await);
        let probed = peer.probe(ProbeRequest::default()).await.unwrap();
        Sender {
            cluster_id: probed.into_inner().cluster_id,
            node_id: 2,
            target_node_id: 1,
            ..Default::default()
        }
    }

    /// Starts a run through each node.
    async fn start_runs(&self) {
        for node in &self.nodes {
            self.start_run(node).await.unwrap();
        }
    }

    async fn start_run(&self, node: &Node) -> Result<(), Status> {
        let request = with_token(start_of("approval", ""), &self.root);
        node.workflows().start_run(request).await.map(drop)
    }

    /// Writes these keys, the first one active, to the file of each node in turn, and waits until the node uses them.
    async fn set_keys(&self, keys: &[&str]) {
        for (node, node_id) in self.nodes.iter().zip(1..) {
            let before = until("the keyring of the node", async || {
                self.keyring(node_id).await.ok()
            })
            .await;
            write(&keyring_file(self.files.path(), node_id), &keys.concat());
            until("the node to use its keyring", async || {
                let keyring = self.keyring(node_id).await.ok()?;
                (keyring != before).then_some(())
            })
            .await;
            // Each intermediate state works. A call that was in progress when its key was removed has an unknown outcome.
            until("a run to start", async || self.start_run(node).await.ok()).await;
        }
    }

    /// The ids of the keys of a node.
    async fn keyring(&self, node_id: u64) -> Result<String, Status> {
        let request = v1::InspectNodeRequest {
            node_id: Some(node_id),
            ..Default::default()
        };
        let mut cluster = self.nodes[0].cluster();
        let inspected = cluster.inspect_node(with_token(request, &self.root));
        Ok(inspected.await?.into_inner().keyring)
    }
}

fn keyring_file(files: &Path, node_id: u64) -> PathBuf {
    files.join(format!("keyring-{node_id}"))
}

/// Replaces the file in one step: a node may read it at any time.
fn write(file: &Path, content: &str) {
    let directory = file.parent().unwrap();
    let new = tempfile::NamedTempFile::new_in(directory).unwrap();
    std::fs::write(new.path(), content).unwrap();
    new.persist(file).unwrap();
}

fn not_member<T: std::fmt::Debug>(result: Result<T, Status>) {
    let expected = (Code::PermissionDenied, "peer_not_member".to_owned());
    assert_eq!(refused(result), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_at_the_peer_port_of_a_closed_cluster_is_no_member() {
    let cluster = Cluster::start().await;
    let mut peer = PeerClient::new(cluster.connect().await);
    let sender = Some(cluster.sender().await);
    let status = || StatusRequest {
        sender: sender.clone(),
    };
    assert!(peer.status(status()).await.is_ok(), "it is open");
    cluster.set_mode(v1::AccessMode::Closed).await;
    until("the first node to be closed", async || {
        peer.status(status()).await.err().map(drop)
    })
    .await;

    not_member(peer.status(status()).await);
    let vote = VoteRequest {
        sender: sender.clone(),
        ..Default::default()
    };
    not_member(peer.vote(vote).await);
    let transfer = TransferLeaderRequest {
        sender: sender.clone(),
        ..Default::default()
    };
    not_member(peer.transfer_leader(transfer).await);
    let append = AppendRequest {
        sender: sender.clone(),
        ..Default::default()
    };
    not_member(peer.append(tokio_stream::iter([append])).await);
    let parts = tokio_stream::iter([SnapshotPart::default()]);
    not_member(peer.install_snapshot(parts).await);
    let open = ForwardRequest {
        body: sender.clone().map(forward_request::Body::Open),
        ..Default::default()
    };
    not_member(peer.forward(tokio_stream::iter([open])).await);
    // The services for workers too, whatever actor the caller states.
    let mut workers = WorkerServiceClient::new(cluster.connect().await);
    not_member(workers.r#await(v1::AwaitRequest::default()).await);
    let mut wrong = Request::new(status());
    let secret = BinaryMetadataValue::from_bytes(&[7; 32]);
    wrong
        .metadata_mut()
        .insert_bin("flo-member-secret-bin", secret);
    let refusal = peer.status(wrong).await.unwrap_err();
    let hint = refusal.get_details_error_info().unwrap().metadata["hint"].clone();
    assert!(hint.contains("keyring"), "{hint}");
    // A node that is about to join may ask who serves here.
    let probed = peer.probe(ProbeRequest::default()).await.unwrap();
    assert_eq!(probed.into_inner().members.len(), 3);
    cluster.start_runs().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_closed_and_opened_under_load_and_a_stream_of_a_stranger_ends() {
    let cluster = Cluster::start().await;
    let (stopped, started) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = async {
        while !stopped.load(Ordering::Relaxed) {
            cluster.start_runs().await;
            started.fetch_add(1, Ordering::Relaxed);
        }
    };
    let load_continues = async || {
        let before = started.load(Ordering::Relaxed);
        until("the load to continue", async || {
            (started.load(Ordering::Relaxed) > before + 1).then_some(())
        })
        .await;
    };
    let changes = async {
        for _ in 0..3 {
            let mut peer = PeerClient::new(cluster.connect().await);
            let open = ForwardRequest {
                body: Some(forward_request::Body::Open(cluster.sender().await)),
                ..Default::default()
            };
            let requests = tokio_stream::iter([open]).chain(tokio_stream::pending());
            let mut stranger = peer.forward(requests).await.unwrap().into_inner();
            assert!(stranger.message().await.unwrap().is_some(), "it is open");
            cluster.set_mode(v1::AccessMode::Closed).await;
            not_member(stranger.message().await);
            load_continues().await;
            cluster.set_mode(v1::AccessMode::Open).await;
            load_continues().await;
        }
        stopped.store(true, Ordering::Relaxed);
    };
    tokio::join!(load, changes);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_without_losing_the_quorum() {
    let cluster = Cluster::start().await;
    cluster.set_mode(v1::AccessMode::Closed).await;
    let read = std::fs::read_to_string(keyring_file(cluster.files.path(), 1));
    let (old, new) = (read.unwrap(), generate_keyring());
    cluster.set_keys(&[&old, &new]).await;
    cluster.set_keys(&[&new, &old]).await;
    cluster.set_keys(&[&new]).await;
    cluster.start_runs().await;
    // Every node still follows: a member that is refused would be reported as unreachable.
    until("every member to respond", async || {
        let request = with_token(v1::GetStatusRequest {}, &cluster.root);
        let status = cluster.nodes[0].cluster().get_status(request).await;
        let nodes = status.unwrap().into_inner().nodes;
        nodes.iter().all(|node| node.healthy).then_some(())
    })
    .await;
}
