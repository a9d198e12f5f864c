//! The network between the nodes, and how it fails.

mod cleanup;
mod names;
mod namespace;
mod namespaces;
mod probe;
mod proxies;
mod rules;
mod source;

pub(crate) use namespaces::Namespaces;
pub(crate) use proxies::Proxies;

use std::net::SocketAddrV4;
use std::time::Duration;

/// The capability that a nemesis needs from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// None: loopback.
    Plain,
    /// Messages between two nodes can be dropped.
    Cuttable,
    /// Messages can also be delayed, and connections break.
    Shaped,
}

/// The network between the nodes.
pub(crate) enum Network {
    /// Loopback; it never fails.
    Plain,
    /// Each node has a separate network namespace; a bridge, in another one, connects them.
    Namespaces(Namespaces),
    /// A proxy before each node's peer port.
    Proxies(Proxies),
}

impl Network {
    /// Drops all messages from one node to another.
    ///
    /// # Panics
    /// When the network cannot; the stage must provide one that can.
    pub(crate) fn cut(&mut self, from: u64, to: u64) {
        match self {
            Self::Plain => panic!("expected a network that can be cut, but this is loopback"),
            Self::Namespaces(namespaces) => namespaces.cut(from, to),
            Self::Proxies(proxies) => proxies.change(|rules| {
                rules.cut.insert((from, to));
            }),
        }
    }

    /// Delays all messages by this duration, plus or minus a half.
    ///
    /// # Panics
    /// When the network cannot.
    pub(crate) fn slow(&mut self, delay: Duration) {
        self.shaped().change(|rules| rules.delay = delay);
    }

    /// Breaks the connection at this many of 1000 messages.
    ///
    /// # Panics
    /// When the network cannot.
    pub(crate) fn lose(&mut self, per_mille: u32) {
        self.shaped()
            .change(|rules| rules.resets_per_mille = per_mille);
    }

    /// Breaks each connection once, even an idle one; nodes reconnect.
    ///
    /// # Panics
    /// When the network cannot.
    pub(crate) fn renew(&mut self) {
        self.shaped().change(|rules| rules.breaks_count += 1);
    }

    /// Redirects new connections to a node to another address.
    ///
    /// # Panics
    /// When the network cannot.
    pub(crate) fn redirect(&mut self, node: u64, to: SocketAddrV4) {
        self.shaped().change(|rules| {
            rules.redirected.insert(node, to);
        });
    }

    /// Heals all faults.
    pub(crate) fn heal(&mut self) {
        match self {
            Self::Plain => {}
            Self::Namespaces(namespaces) => namespaces.heal(),
            Self::Proxies(proxies) => proxies.change(rules::Rules::mend),
        }
    }

    fn shaped(&self) -> &Proxies {
        match self {
            Self::Proxies(proxies) => proxies,
            Self::Plain | Self::Namespaces(_) => {
                panic!("expected a network of proxies, but it is of another kind")
            }
        }
    }
}
