//! A network of its own for each node: namespaces, and pairs of virtual cards on one bridge.
//!
//! A cut tells the sender a wrong hardware address for the receiver: frames leave and nobody takes
//! them, as behind a broken switch. That needs only `ip`, works in one direction and on connections
//! that stand, and leaves this process's own connections to the nodes alone.
//!
//! Names carry this process's id. What a killed process has left is removed by the next one.

use super::names::{Names, owner};
use super::namespace::{ip, ip_within};
use super::probe::{End, probe};
use flotilla_tests::Host;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

/// Nobody's hardware address.
const NOWHERE: &str = "02:00:00:00:00:00";
const PORT: u16 = 9_000;
/// The last byte of this process's own address.
const CLIENTS: u8 = 254;

/// Networks of nodes; dropping it removes them.
#[derive(Debug)]
pub(crate) struct Namespaces {
    names: Names,
    nodes: Vec<u64>,
    cuts: Vec<(u64, u64)>,
}

impl Namespaces {
    /// Makes a network for each node.
    ///
    /// # Errors
    /// Why this machine does not allow it.
    pub(crate) fn create(nodes: &[u64]) -> Result<Self, String> {
        remove_leftovers();
        let created = Self {
            names: Names::draw(),
            nodes: nodes.to_vec(),
            cuts: Vec::new(),
        };
        let bridge = created.names.card();
        ip(&["link", "add", &bridge, "type", "bridge"])?;
        let own = format!("{}/24", created.names.address(CLIENTS));
        ip(&["addr", "add", &own, "dev", &bridge])?;
        ip(&["link", "set", &bridge, "up"])?;
        for &node in nodes {
            created.connect(node)?;
        }
        Ok(created)
    }

    /// Tries whether this process reaches each node, and each node the others.
    ///
    /// # Errors
    /// Which two ends do not reach each other, what was tried, and where to look for the reason.
    pub(crate) fn prove(&self) -> Result<(), String> {
        let nodes: Vec<End> = self.nodes.iter().map(|&node| self.end(node)).collect();
        let clients = End {
            name: "this process".to_owned(),
            address: self.names.address(CLIENTS),
            namespace: None,
        };
        probe(&nodes, &[clients]).map_err(|unreachable| unreachable.to_string())
    }

    fn end(&self, node: u64) -> End {
        End {
            name: format!("node {node}"),
            address: self.address(node),
            namespace: Some(self.names.node(node)),
        }
    }

    /// The place of a node.
    pub(crate) fn host(&self, node: u64) -> Host {
        let launcher = ["ip", "netns", "exec", &self.names.node(node)].map(OsString::from);
        Host {
            launcher: launcher.to_vec(),
            ..Host::at(node, self.address(node), PORT)
        }
    }

    /// Loses all messages from one node to another.
    pub(crate) fn cut(&mut self, from: u64, to: u64) {
        let to_address = self.address(to).to_string();
        let change = ["neigh", "replace", &to_address, "lladdr", NOWHERE];
        let how = ["dev", "eth0", "nud", "permanent"];
        let done = self.within(from, &[&change[..], &how].concat());
        done.expect("a network that was made can be changed");
        self.cuts.push((from, to));
    }

    /// Mends everything.
    pub(crate) fn heal(&mut self) {
        for (from, to) in std::mem::take(&mut self.cuts) {
            let change = ["neigh", "del", &self.address(to).to_string(), "dev", "eth0"];
            let done = self.within(from, &change);
            done.expect("a network that was made can be changed");
        }
    }

    fn connect(&self, node: u64) -> Result<(), String> {
        let (namespace, card) = (
            self.names.node(node),
            format!("{}n{node}", self.names.card()),
        );
        ip(&["netns", "add", &namespace])?;
        let pair = ["type", "veth", "peer", "name", "eth0", "netns", &namespace];
        ip(&[&["link", "add", &card][..], &pair].concat())?;
        ip(&["link", "set", &card, "master", &self.names.card(), "up"])?;
        let own = format!("{}/24", self.address(node));
        self.within(node, &["addr", "add", &own, "dev", "eth0"])?;
        self.within(node, &["link", "set", "eth0", "up"])?;
        self.within(node, &["link", "set", "lo", "up"])
    }

    fn within(&self, node: u64, arguments: &[&str]) -> Result<(), String> {
        ip_within(&self.names.node(node), arguments)
    }

    fn address(&self, node: u64) -> Ipv4Addr {
        let last = u8::try_from(node).expect("a cluster is small");
        self.names.address(last)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // What could not be made cannot be removed either.
        for &node in &self.nodes {
            let _ = ip(&["netns", "del", &self.names.node(node)]);
        }
        let _ = ip(&["link", "del", &self.names.card()]);
    }
}

/// Removes the networks of processes that are no more.
fn remove_leftovers() {
    let listed = Command::new("ip").args(["netns", "list"]).output();
    let listed = listed.map(|output| output.stdout).unwrap_or_default();
    for line in String::from_utf8_lossy(&listed).lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if let Some(owner) = owner(name)
            && !Path::new("/proc").join(owner).exists()
        {
            // The cards go with the namespace; another process may be removing it too.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_do_not_reach_each_other_are_named() {
        let Some(mut network) = network() else { return };
        network.prove().unwrap();
        network.cut(1, 3);
        let said = network.prove().unwrap_err();
        assert!(said.contains("node 1 ("), "{said}");
        assert!(said.contains("node 3 ("), "{said}");
        assert!(said.contains("TCP connection"), "{said}");
        network.heal();
        network.prove().unwrap();
    }

    /// Where the machine allows it.
    fn network() -> Option<Namespaces> {
        let network = Namespaces::create(&[1, 2, 3]);
        network
            .inspect_err(|reason| println!("not tried: {reason}"))
            .ok()
    }
}
