//! The nodes that a client knows, and which of them to call next.

use crate::code::ClientCode;
use crate::dialer::Dialer;
use crate::error::ClientError;
use crate::finding::{Finding, Findings};
use crate::options::ClientOptions;
use crate::tls::TlsOptions;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};

/// The metadata in which a reply names the leader's client endpoint.
pub(crate) const LEADER: &str = "flo-leader";

/// How long a node that could not be reached is left alone while another can be asked.
const AVOIDED_FOR: Duration = Duration::from_millis(500);
/// Leaders are learnt up to this many nodes in all.
const NODES_MAX: usize = 64;
/// A connection is checked this often, and given up when no answer comes as long again: so a node
/// that is stopped but not dead is left within seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// The nodes that a client knows.
#[derive(Debug)]
pub(crate) struct Nodes {
    way: Way,
    // A std mutex and not tokio's because it is never held across an await.
    list: Mutex<List>,
}

/// How nodes are connected to.
#[derive(Clone, Debug)]
struct Way {
    connect_timeout: Duration,
    tls: Option<Arc<TlsOptions>>,
}

/// The node to call.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    /// Its position in the list.
    pub(crate) position: usize,
    /// Its address.
    pub(crate) address: Arc<str>,
    /// Its connection, made when it is first used.
    pub(crate) channel: Channel,
}

#[derive(Debug, Default)]
struct List {
    nodes: Vec<Node>,
    leader: Option<usize>,
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
    /// Knows the endpoints of the options; connects to none yet.
    ///
    /// # Errors
    /// `Usage` without endpoints, with one that is not `host:port`, or with files for TLS that are no good.
    pub(crate) fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        if let Some(tls) = &options.tls {
            // Whatever is wrong with them is told at once.
            tls.load()?;
        }
        let way = Way {
            connect_timeout: options.connect_timeout,
            tls: options.tls.clone().map(Arc::new),
        };
        let mut list = List::default();
        for address in &options.endpoints {
            list.add(address.trim(), &way)?;
        }
        if list.nodes.is_empty() {
            let message = "expected at least one endpoint, but there is none";
            return Err(ClientError::new(ClientCode::EndpointInvalid, message));
        }
        Ok(Self {
            way,
            list: Mutex::new(list),
        })
    }

    /// How many nodes are known.
    pub(crate) fn count(&self) -> usize {
        self.lock().nodes.len()
    }

    /// The address of the node at `position`.
    pub(crate) fn address(&self, position: usize) -> Arc<str> {
        self.lock().nodes[position].address.clone()
    }

    /// Why the newest connection to the node at `position` could not be made safe, if it could not.
    pub(crate) fn finding(&self, position: usize) -> Option<Finding> {
        self.lock().nodes[position].findings.last()
    }

    /// The leader if it is known and was not just found unreachable, else the next node in turn.
    pub(crate) fn pick(&self) -> Picked {
        let now = Instant::now();
        let list = self.lock();
        let turn = (0..list.nodes.len()).map(|step| (list.next + step) % list.nodes.len());
        let position = list
            .leader
            .into_iter()
            .chain(turn)
            .min_by_key(|position| {
                list.nodes[*position]
                    .avoided_until
                    .filter(|until| *until > now)
            })
            .expect("there is at least one node, and none is ever removed");
        let node = &list.nodes[position];
        Picked {
            position,
            address: node.address.clone(),
            channel: node.channel.clone(),
        }
    }

    /// Remembers that a node could not be reached: it is avoided for a while.
    pub(crate) fn mark_unreachable(&self, position: usize) {
        let mut list = self.lock();
        list.nodes[position].avoided_until = Some(Instant::now() + AVOIDED_FOR);
        list.pass_over(position);
    }

    /// Remembers that a node is there but did not serve: another one is next. It is not avoided,
    /// since it may become the leader at any time.
    pub(crate) fn mark_not_serving(&self, position: usize) {
        self.lock().pass_over(position);
    }

    /// Remembers that a node served a call.
    pub(crate) fn mark_served(&self, position: usize) {
        let mut list = self.lock();
        list.nodes[position].avoided_until = None;
        list.next = position;
    }

    /// Remembers the leader that a reply names; an address that is none is ignored.
    pub(crate) fn learn_leader(&self, metadata: &MetadataMap) {
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
            None => list.add(address, &self.way),
        };
        match leader {
            Ok(position) => list.leader = Some(position),
            Err(error) => tracing::debug!(%error, "a reply names a leader that is no endpoint"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // Every change is one assignment, so a panic elsewhere leaves nothing half done.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    fn add(&mut self, address: &str, way: &Way) -> Result<usize, ClientError> {
        let findings = Findings::default();
        let channel = way.channel(address, findings.clone())?;
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
        self.leader = self.leader.filter(|leader| *leader != position);
    }
}

impl Way {
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
        assert_eq!(nodes.pick().position, 0);
        nodes.mark_unreachable(0);
        assert_eq!(nodes.pick().position, 1);
        tokio::time::advance(AVOIDED_FOR / 2).await;
        nodes.mark_unreachable(1);
        assert_eq!(nodes.pick().position, 0, "it failed the longest time ago");
    }

    #[tokio::test(start_paused = true)]
    async fn the_leader_is_asked_first_unless_it_is_unreachable() {
        let nodes = nodes(&["a:1", "b:1"]).expect("well-formed");
        nodes.learn_leader(&leader_is("c:1"));
        assert_eq!(nodes.pick().position, 2);
        nodes.mark_unreachable(2);
        nodes.learn_leader(&leader_is("c:1"));
        assert_eq!(
            nodes.pick().position,
            0,
            "a follower that lags still names the dead leader"
        );
        tokio::time::advance(AVOIDED_FOR).await;
        assert_eq!(nodes.pick().position, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_did_not_serve_may_be_the_leader_a_moment_later() {
        let nodes = nodes(&["a:1", "b:1"]).expect("well-formed");
        nodes.mark_not_serving(0);
        assert_eq!(nodes.pick().position, 1);
        nodes.learn_leader(&leader_is("a:1"));
        assert_eq!(nodes.pick().position, 0);
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
