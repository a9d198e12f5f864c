//! The nodes that a client knows, and which of them to call next.

use crate::code::ClientCode;
use crate::dialer::Dialer;
use crate::error::ClientError;
use crate::finding::{Finding, Findings};
use crate::leaders::Leaders;
use crate::options::ClientOptions;
use crate::tls::TlsOptions;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};

/// The metadata key in which a response names the client endpoint of its namespace's leader.
pub(crate) const LEADER: &str = "flo-leader";

/// How long an unreachable node is avoided while another one is available.
const AVOIDED_FOR: Duration = Duration::from_millis(500);
/// Leaders are learned until the list has this many nodes.
const NODES_MAX: usize = 64;
/// The interval of keep-alive probes. A connection is closed if a probe gets no response for as
/// long again, so that a client leaves a hung node within seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// The nodes that a client knows.
#[derive(Debug)]
pub(crate) struct Nodes {
    connector: Connector,
    // A std mutex and not tokio's because it is never held across an await.
    list: Mutex<List>,
}

/// How to connect to nodes.
#[derive(Clone, Debug)]
struct Connector {
    connect_timeout: Duration,
    tls: Option<Arc<TlsOptions>>,
}

/// The node to call.
#[derive(Clone, Debug)]
pub(crate) struct PickedNode {
    /// Its position in the list.
    pub(crate) position: usize,
    /// Its address.
    pub(crate) address: Arc<str>,
    /// Its connection, made on first use.
    pub(crate) channel: Channel,
}

#[derive(Debug, Default)]
struct List {
    nodes: Vec<Node>,
    leaders: Leaders,
    next: usize,
}

#[derive(Debug)]
struct Node {
    address: Arc<str>,
    channel: Channel,
    findings: Findings,
    avoided_until: Option<Instant>,
}

impl Nodes {
    /// The endpoints of the options, not connected yet.
    ///
    /// # Errors
    /// `Usage` without endpoints, for one that is not `host:port`, or for invalid TLS files.
    pub(crate) fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        if let Some(tls) = &options.tls {
            // Fails early if the files are invalid.
            tls.load()?;
        }
        let connector = Connector {
            connect_timeout: options.connect_timeout,
            tls: options.tls.clone().map(Arc::new),
        };
        let mut list = List::default();
        for address in &options.endpoints {
            list.add(address.trim(), &connector)?;
        }
        if list.nodes.is_empty() {
            let message = "expected at least one endpoint, but the list is empty";
            return Err(ClientError::new(ClientCode::EndpointInvalid, message));
        }
        Ok(Self {
            connector,
            list: Mutex::new(list),
        })
    }

    /// The number of known nodes.
    pub(crate) fn count(&self) -> usize {
        self.lock().nodes.len()
    }

    /// The address of the node at `position`.
    pub(crate) fn address(&self, position: usize) -> Arc<str> {
        self.lock().nodes[position].address.clone()
    }

    /// Why the newest TLS connection to the node at `position` failed, if it did.
    pub(crate) fn finding(&self, position: usize) -> Option<Finding> {
        self.lock().nodes[position].findings.last()
    }

    /// The leader of the namespace, or of the cluster as a whole for `None`, if it is known and not marked as
    /// unreachable; otherwise the next node in turn.
    pub(crate) fn pick(&self, namespace: Option<&str>) -> PickedNode {
        self.pick_besides(namespace, &[])
            .expect("there is at least one node, and nodes are never removed")
    }

    /// As [`Self::pick`], among the nodes other than those at the `busy` positions.
    pub(crate) fn pick_besides(
        &self,
        namespace: Option<&str>,
        busy: &[usize],
    ) -> Option<PickedNode> {
        let now = Instant::now();
        let list = self.lock();
        let turn = (0..list.nodes.len()).map(|step| (list.next + step) % list.nodes.len());
        let leader = list.leaders.of(namespace);
        let position = leader
            .into_iter()
            .chain(turn)
            .filter(|position| !busy.contains(position))
            .min_by_key(|position| {
                list.nodes[*position]
                    .avoided_until
                    .filter(|until| *until > now)
            })?;
        let node = &list.nodes[position];
        Some(PickedNode {
            position,
            address: node.address.clone(),
            channel: node.channel.clone(),
        })
    }

    /// Records that a node could not be reached, or did not respond: it is avoided for a while.
    pub(crate) fn mark_unreachable(&self, position: usize) {
        let mut list = self.lock();
        list.nodes[position].avoided_until = Some(Instant::now() + AVOIDED_FOR);
        list.pass_over(position);
    }

    /// Records that a node answered but did not serve: another one is next. It is not avoided,
    /// because it may become the leader at any time.
    pub(crate) fn mark_not_serving(&self, position: usize) {
        self.lock().pass_over(position);
    }

    /// Records that a node served a call.
    pub(crate) fn mark_served(&self, position: usize) {
        let mut list = self.lock();
        list.nodes[position].avoided_until = None;
        list.next = position;
    }

    /// Learns the leader that a response names for its request's namespace; ignores an invalid address.
    pub(crate) fn learn_leader(&self, namespace: Option<&str>, metadata: &MetadataMap) {
        let Some(address) = metadata.get(LEADER).and_then(|value| value.to_str().ok()) else {
            return;
        };
        let mut list = self.lock();
        let known = list.nodes.iter().position(|node| *node.address == *address);
        if known.is_none() && list.nodes.len() >= NODES_MAX {
            return;
        }
        let leader = match known {
            Some(position) => Ok(position),
            None => list.add(address, &self.connector),
        };
        match leader {
            Ok(position) => list.leaders.learn(namespace, position),
            Err(error) => tracing::debug!(%error, "a response names an invalid leader endpoint"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // A leader is only a hint, and every other change is a single assignment, so a panic elsewhere leaves the list
        // consistent.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    fn add(&mut self, address: &str, connector: &Connector) -> Result<usize, ClientError> {
        let findings = Findings::default();
        let channel = connector.channel(address, findings.clone())?;
        self.nodes.push(Node {
            address: address.into(),
            channel,
            findings,
            avoided_until: None,
        });
        Ok(self.nodes.len() - 1)
    }

    fn pass_over(&mut self, position: usize) {
        self.next = (position + 1) % self.nodes.len();
        self.leaders.forget(position);
    }
}

impl Connector {
    fn channel(&self, address: &str, findings: Findings) -> Result<Channel, ClientError> {
        let invalid = || {
            let message = format!("expected an endpoint to be HOST:PORT, but it is {address:?}");
            ClientError::new(ClientCode::EndpointInvalid, message)
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|_| invalid())?;
        let has_port = endpoint.uri().port_u16().is_some_and(|port| port != 0);
        if !has_port || endpoint.uri().path() != "/" {
            return Err(invalid());
        }
        let dialer = Dialer {
            tls: self.tls.clone(),
            findings,
        };
        Ok(endpoint
            .connect_timeout(self.connect_timeout)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true)
            .connect_with_connector_lazy(dialer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn nodes(endpoints: &[&str]) -> Result<Nodes, ClientError> {
        let endpoints = endpoints
            .iter()
            .map(|&address| address.to_owned())
            .collect();
        Nodes::new(&ClientOptions {
            endpoints,
            ..ClientOptions::default()
        })
    }

    fn leader_is(address: &str) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert(LEADER, address.parse().expect("ASCII"));
        metadata
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_node_waits_until_the_others_are_unreachable_too() {
        let nodes = nodes(&["a:1", "b:1"]).expect("well-formed");
        assert_eq!(nodes.pick(None).position, 0);
        nodes.mark_unreachable(0);
        assert_eq!(nodes.pick(None).position, 1);
        tokio::time::advance(AVOIDED_FOR / 2).await;
        nodes.mark_unreachable(1);
        assert_eq!(
            nodes.pick(None).position,
            0,
            "it failed the longest time ago"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_leader_is_asked_first_unless_it_is_unreachable() {
        let nodes = nodes(&["a:1", "b:1"]).expect("well-formed");
        nodes.learn_leader(None, &leader_is("c:1"));
        assert_eq!(nodes.pick(None).position, 2);
        nodes.mark_unreachable(2);
        nodes.learn_leader(None, &leader_is("c:1"));
        assert_eq!(
            nodes.pick(None).position,
            0,
            "a follower that lags still names the dead leader"
        );
        tokio::time::advance(AVOIDED_FOR).await;
        assert_eq!(nodes.pick(None).position, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_did_not_serve_may_be_the_leader_a_moment_later() {
        let nodes = nodes(&["a:1", "b:1"]).expect("well-formed");
        nodes.mark_not_serving(0);
        assert_eq!(nodes.pick(None).position, 1);
        nodes.learn_leader(None, &leader_is("a:1"));
        assert_eq!(nodes.pick(None).position, 0);
    }

    #[tokio::test]
    async fn endpoints_are_checked() {
        for endpoint in ["", "localhost", "localhost:x", "a:1/path", "a:0", "a b:1"] {
            let error = nodes(&[endpoint]).expect_err(endpoint);
            assert_eq!(error.kind(), ErrorKind::Usage, "{endpoint}");
        }
        assert!(nodes(&[]).is_err());
        assert!(nodes(&["[::1]:9000", "localhost:9000"]).is_ok());
    }
}
