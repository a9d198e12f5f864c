//! A network of its own for each node: namespaces, and pairs of virtual cards on one bridge.
//!
//! A cut tells the sender a wrong hardware address for the receiver: frames leave and nobody takes
//! them, as behind a broken switch. That needs only `ip`, works in one direction and on connections
//! that stand, and leaves this process's own connections to the nodes alone.
//!
//! Names carry this process's id. What a killed process has left is removed by the next one.

use flotilla_tests::Host;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{self, Command};

const PREFIX: &str = "flo-jepsen";
/// Nobody's hardware address.
const NOWHERE: &str = "02:00:00:00:00:00";
const PORT: u16 = 9_000;

/// Networks of nodes; dropping it removes them.
#[derive(Debug)]
pub(crate) struct Namespaces {
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
            nodes: nodes.to_vec(),
            cuts: Vec::new(),
        };
        let bridge = bridge();
        ip(&["link", "add", &bridge, "type", "bridge"])?;
        let own = format!("{}/24", address(254));
        ip(&["addr", "add", &own, "dev", &bridge])?;
        ip(&["link", "set", &bridge, "up"])?;
        for &node in nodes {
            connect(node)?;
        }
        Ok(created)
    }

    /// The place of a node.
    pub(crate) fn host(node: u64) -> Host {
        let launcher = ["ip", "netns", "exec", &namespace(node)].map(OsString::from);
        Host {
            launcher: launcher.to_vec(),
            ..Host::at(node, address(node), PORT)
        }
    }

    /// Loses all messages from one node to another.
    pub(crate) fn cut(&mut self, from: u64, to: u64) {
        let change = [
            "neigh",
            "replace",
            &address(to).to_string(),
            "lladdr",
            NOWHERE,
        ];
        let how = ["dev", "eth0", "nud", "permanent"];
        let done = within(from, &[&change[..], &how].concat());
        done.expect("a network that was made can be changed");
        self.cuts.push((from, to));
    }

    /// Mends everything.
    pub(crate) fn heal(&mut self) {
        for (from, to) in std::mem::take(&mut self.cuts) {
            let change = ["neigh", "del", &address(to).to_string(), "dev", "eth0"];
            within(from, &change).expect("a network that was made can be changed");
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // What could not be made cannot be removed either.
        for &node in &self.nodes {
            let _ = ip(&["netns", "del", &namespace(node)]);
        }
        let _ = ip(&["link", "del", &bridge()]);
    }
}

fn connect(node: u64) -> Result<(), String> {
    let (namespace, card) = (namespace(node), format!("fj{}n{node}", process::id()));
    ip(&["netns", "add", &namespace])?;
    let pair = ["type", "veth", "peer", "name", "eth0", "netns", &namespace];
    ip(&[&["link", "add", &card][..], &pair].concat())?;
    ip(&["link", "set", &card, "master", &bridge(), "up"])?;
    let own = format!("{}/24", address(node));
    within(node, &["addr", "add", &own, "dev", "eth0"])?;
    within(node, &["link", "set", "eth0", "up"])?;
    within(node, &["link", "set", "lo", "up"])
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
            let _ = ip(&["link", "del", &format!("fj{owner}")]);
        }
    }
}

/// The id of the process that made a namespace.
fn owner(namespace: &str) -> Option<&str> {
    let rest = namespace.strip_prefix(PREFIX)?.strip_prefix('-')?;
    let (owner, _) = rest.split_once('-')?;
    Some(owner)
}

fn namespace(node: u64) -> String {
    format!("{PREFIX}-{}-{node}", process::id())
}

fn bridge() -> String {
    format!("fj{}", process::id())
}

/// In a network that no two processes at a time are likely to share.
fn address(last: u64) -> Ipv4Addr {
    let [.., high, low] = process::id().to_be_bytes();
    let last = u8::try_from(last).expect("a cluster is small");
    Ipv4Addr::new(10, 192 | (high & 63), low, last)
}

fn within(node: u64, arguments: &[&str]) -> Result<(), String> {
    ip(&[&["-n", &namespace(node)][..], arguments].concat())
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| format!("`ip` cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "`ip {}` failed: {}",
        arguments.join(" "),
        said.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_names_its_owner() {
        assert_eq!(owner("flo-jepsen-77-2"), Some("77"));
        assert_eq!(
            owner(&namespace(1)),
            Some(process::id().to_string().as_str())
        );
        assert_eq!(owner("someone-else"), None);
    }
}
