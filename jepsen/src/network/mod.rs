//! What is between the nodes, and how it fails.

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

use std::time::Duration;

/// What a nemesis needs of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// Nothing: loopback.
    Plain,
    /// Messages can be lost for good between two nodes.
    Cuttable,
    /// Messages can also be late, and connections break.
    Shaped,
}

/// What is between the nodes.
pub(crate) enum Network {
    /// Loopback; it never fails.
    Plain,
    /// Each node has a network of its own; a bridge, which has one too, connects them.
    Namespaces(Namespaces),
    /// A proxy before each node's port for peers.
    Proxies(Proxies),
}

impl Network {
    /// Loses all messages from one node to another.
    ///
    /// # Panics
    /// When the network cannot, which whoever set the stage has to see to.
    pub(crate) fn cut(&mut self, from: u64, to: u64) {
        match self {
            Self::Plain => panic!("expected a network that can be cut, but this is loopback"),
            Self::Namespaces(namespaces) => namespaces.cut(from, to),
            Self::Proxies(proxies) => proxies.change(|rules| {
                rules.cut.insert((from, to));
            }),
        }
    }

    /// Delays all messages by so long, give or take a half.
    ///
    /// # Panics
    /// When the network cannot.
    pub(crate) fn slow(&mut self, delay: Duration) {
        self.shaped().change(|rules| rules.delay = delay);
    }

    /// Breaks the connection at so many of a thousand messages.
    ///
    /// # Panics
    /// When the network cannot.
    pub(crate) fn lose(&mut self, per_mille: u32) {
        self.shaped()
            .change(|rules| rules.resets_per_mille = per_mille);
    }

    /// Breaks each connection once, also one that is idle; nodes make new ones.
    ///
    /// # Panics
    /// When the network cannot.
    pub(crate) fn renew(&mut self) {
        self.shaped().change(|rules| rules.breaks_count += 1);
    }

    /// Mends everything.
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
                panic!("expected a network of proxies, but there is another one")
            }
        }
    }
}
