//! A cluster in one process, for the tests.

use flotilla_engine::ActionType;
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::{
    Body, Command, ENGINE_VERSION, NodeId, RegisterAction, Rejection, Reply, reply,
};
use flotilla_replica::{
    ChangeError, ClusterChange, Config, Environment, Formation, FormedCluster, Replica,
    SubmitError, Tuning,
};
use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;

/// Long enough for anything that should happen at all.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Nodes numbered from 1, each with a directory that outlives it.
pub(crate) struct Cluster {
    /// First, so that all are closed before their directories are deleted.
    replicas: BTreeMap<u64, Replica>,
    directory: TempDir,
    peers: BTreeMap<NodeId, String>,
    tuning: Tuning,
    /// Reserves the address of a node that has not started.
    reserved: BTreeMap<u64, TcpListener>,
    /// The newest engine versions of nodes that differ from this build's.
    engine_versions: BTreeMap<u64, u32>,
    /// What the hosts of nodes require of a new cluster.
    formation_requirements: BTreeMap<u64, String>,
}

impl Cluster {
    /// A cluster of `nodes_count` nodes, none of them started.
    pub(crate) fn new(nodes_count: u64, tuning: Tuning) -> Self {
        let listen = |id| (id, TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let reserved: BTreeMap<u64, _> = (1..=nodes_count).map(listen).collect();
        let address = |listener: &TcpListener| listener.local_addr().expect("a bound address");
        let peers = reserved
            .iter()
            .map(|(id, listener)| (NodeId(*id), address(listener).to_string()))
            .collect();
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self {
            replicas: BTreeMap::new(),
            directory,
            peers,
            tuning,
            reserved,
            engine_versions: BTreeMap::new(),
            formation_requirements: BTreeMap::new(),
        }
    }

    /// Sets a node's engine version for its next start, as another release would have it.
    pub(crate) fn set_engine_version(&mut self, id: u64, version: u32) {
        self.engine_versions.insert(id, version);
    }

    /// Sets what a node's host requires of a new cluster.
    pub(crate) fn set_formation_terms(&mut self, id: u64, terms: &str) {
        self.formation_requirements.insert(id, terms.to_owned());
    }

    /// A started cluster with a leader.
    pub(crate) async fn started(nodes_count: u64, tuning: Tuning) -> Self {
        let mut cluster = Self::new(nodes_count, tuning);
        for id in 1..=nodes_count {
            cluster.start(id).await;
        }
        cluster.form(1).await;
        cluster.leader().await;
        cluster
    }

    /// Asks a first member to form the cluster, and waits until it belongs to it.
    pub(crate) async fn form(&self, via: u64) -> FormedCluster {
        let formed = self.node(via).form(Instant::now() + LONG).await;
        formed.expect("the cluster is formed in time")
    }

    pub(crate) fn data_directory(&self, id: u64) -> PathBuf {
        self.directory.path().join(format!("node-{id}"))
    }

    pub(crate) fn config(&self, id: u64) -> Config {
        let node_id = NodeId(id);
        let peer_listen: SocketAddr = self.peers[&node_id].parse().expect("an address");
        Config {
            node_id,
            formation: Formation::Found {
                peers: self.peers.clone(),
            },
            peer_listen,
            formation_requirements: self
                .formation_requirements
                .get(&id)
                .cloned()
                .unwrap_or_default(),
            peer_names: Vec::new(),
            client_address: format!("client-{id}:9000"),
            data_directory: self.data_directory(id),
            version: "test".to_owned(),
            engine_version: *self.engine_versions.get(&id).unwrap_or(&ENGINE_VERSION),
            tuning: self.tuning.clone(),
        }
    }

    /// Starts a node.
    pub(crate) async fn start(&mut self, id: u64) {
        self.start_with(id, Environment::default()).await;
    }

    /// Starts a node in another environment.
    pub(crate) async fn start_with(&mut self, id: u64, environment: Environment) {
        self.reserved.remove(&id);
        let started = Replica::start(self.config(id), environment).await;
        self.replicas.insert(id, started.expect("the node starts"));
    }

    /// The configuration of a node that joins, with a reserved address.
    pub(crate) fn joining_config(&mut self, id: u64) -> Config {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let seeds = self.peers.values().cloned().collect();
        self.peers.insert(NodeId(id), address.to_string());
        Config {
            formation: Formation::Join { seeds },
            ..self.config(id)
        }
    }

    /// Starts a node that joins, and returns its peer address.
    pub(crate) async fn join(&mut self, id: u64) -> String {
        let config = self.joining_config(id);
        let address = config.peer_listen.to_string();
        let started = Replica::start(config, Environment::default()).await;
        self.replicas.insert(id, started.expect("the node starts"));
        address
    }

    /// Starts a node that joins, and promotes it.
    pub(crate) async fn grow(&mut self, via: u64, id: u64) {
        let peer_address = self.join(id).await;
        let node_id = NodeId(id);
        let add = ClusterChange::AddLearner {
            node_id,
            peer_address,
        };
        assert!(self.change(via, add).await.expect("the node is added"));
        let promote = ClusterChange::PromoteLearner { node_id };
        assert!(self.change(via, promote).await.expect("it gets a vote"));
    }

    /// Asks a node for a change.
    pub(crate) async fn change(
        &self,
        via: u64,
        change: ClusterChange,
    ) -> Result<bool, ChangeError> {
        self.node(via).change(change, Instant::now() + LONG).await
    }

    /// Asks a node to transfer leadership.
    pub(crate) async fn transfer(&self, via: u64, to: u64) -> Result<bool, ChangeError> {
        let to = Some(NodeId(to));
        self.change(via, ClusterChange::TransferLeader { to }).await
    }

    /// The configuration of a node that the test starts itself.
    pub(crate) fn taken_config(&mut self, id: u64) -> Config {
        self.reserved.remove(&id);
        self.config(id)
    }

    /// Kills a node.
    pub(crate) fn kill(&mut self, id: u64) {
        drop(self.replicas.remove(&id).expect("a running node"));
    }

    /// Shuts a node down.
    pub(crate) async fn stop(&mut self, id: u64) {
        let replica = self.replicas.remove(&id).expect("a running node");
        replica.shutdown().await;
    }

    pub(crate) fn node(&self, id: u64) -> &Replica {
        &self.replicas[&id]
    }

    pub(crate) fn ids(&self) -> Vec<u64> {
        self.replicas.keys().copied().collect()
    }

    /// The id of the leader, once one is ready and every running node knows it.
    pub(crate) async fn leader(&self) -> u64 {
        let search = async {
            loop {
                let known: Vec<_> = self
                    .replicas
                    .values()
                    .map(|r| r.leadership().borrow().clone())
                    .collect();
                let ready = self
                    .replicas
                    .iter()
                    .find(|(_, replica)| replica.leadership().borrow().is_ready)
                    .map(|(id, _)| *id);
                if let Some(id) = ready
                    && known
                        .iter()
                        .all(|l| l.leader.as_ref().is_some_and(|l| l.node_id.0 == id))
                {
                    return id;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(LONG, search).await;
        found.unwrap_or_else(|_| {
            let known = self.replicas.iter();
            let known: Vec<_> = known
                .map(|(id, replica)| (*id, replica.leadership().borrow().clone()))
                .collect();
            panic!("no leader is elected that all know: {known:?}");
        })
    }

    /// A node that does not lead.
    pub(crate) async fn follower(&self) -> u64 {
        let leader = self.leader().await;
        self.ids()
            .into_iter()
            .find(|id| *id != leader)
            .expect("more than one node")
    }

    /// Waits until the running nodes have applied the same entries, and returns their digest.
    pub(crate) async fn agreed(&self) -> (u64, u128) {
        let search = async {
            loop {
                let mut applied_position: Vec<_> = self
                    .replicas
                    .values()
                    .map(flotilla_replica::Replica::applied_position)
                    .collect();
                applied_position.dedup();
                if let [agreed] = applied_position[..] {
                    return agreed;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let agreed = tokio::time::timeout(LONG, search).await;
        agreed.unwrap_or_else(|_| {
            let applied_position: Vec<_> = self
                .replicas
                .values()
                .map(Replica::applied_position)
                .collect();
            panic!("the nodes do not agree: {applied_position:?}");
        })
    }
}

/// A command that changes the state: registers an action with a unique name.
pub(crate) fn register(name: &str) -> Command {
    let body = Body::RegisterAction(Box::new(RegisterAction {
        name: ActionName::new(name).expect("a legal name"),
        kind: ActionType::User,
        module: None,
        timeout_ms: 30_000,
        max_retries: 0,
        retry_delay_ms: 1_000,
        description: Some("x".repeat(200)),
        is_only_if_missing: false,
    }));
    body.into_command(Namespace::default_namespace())
}

/// Submits a command with a long deadline, and retries while there is no leader: on a busy machine
/// that may take longer than a node waits for one.
pub(crate) async fn submit(
    replica: &Replica,
    command: Command,
) -> Result<Result<Reply, Rejection>, SubmitError> {
    let deadline = Instant::now() + LONG;
    loop {
        match replica.submit(command.clone().by_anyone(), deadline).await {
            Err(SubmitError::NoLeader) if Instant::now() < deadline => {}
            submitted => return submitted,
        }
    }
}

/// Submits a command that may be repeated until its outcome is known.
pub(crate) async fn submit_surely(replica: &Replica, command: Command) -> Result<Reply, Rejection> {
    let attempts = async {
        loop {
            match submit(replica, command.clone()).await {
                Ok(answer) => return answer,
                Err(SubmitError::Unknown | SubmitError::NoLeader) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::time::timeout(LONG, attempts)
        .await
        .expect("the command is carried out in time")
}

/// The reply to a first registration.
pub(crate) const REGISTERED: Reply = Reply::ActionRegistered(reply::ActionRegistered {
    version: 1,
    is_changed: true,
});

/// The reply to the same registration again.
pub(crate) const UNCHANGED: Reply = Reply::ActionRegistered(reply::ActionRegistered {
    version: 1,
    is_changed: false,
});

/// Copies a data directory as a killed process leaves it.
pub(crate) fn copy_as_killed(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_as_killed(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}
