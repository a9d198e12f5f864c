//! A separate network for each node: a namespace, joined to one bridge by a pair of virtual cards.
//!
//! The bridge has a separate namespace, too. The kernel applies a firewall's rules to what a bridge forwards
//! (`net.bridge.bridge-nf-call-iptables`), and uses the rules of the bridge's namespace: here it has no rules. In
//! the machine's own namespace they would be the machine's, and a machine with Docker forwards nothing by default.
//! This process reaches the nodes over one more pair of cards. For the machine that is input and output, not
//! forwarding.
//!
//! A cut gives the sender a wrong hardware address for the receiver: frames are sent and no card accepts
//! them, as behind a broken switch. That needs only `ip`, works in one direction and on existing connections,
//! and does not affect this process's own connections to the nodes.

use super::cleanup::{Cleanup, remove_leftovers};
use super::names::Names;
use super::namespace::{inside, ip, ip_within};
use super::probe::{End, Unreachable, probe};
use flotilla_tests::Host;
use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

/// A hardware address that no card has.
const NOWHERE: &str = "02:00:00:00:00:00";
const PORT: u16 = 9_000;
/// In the bridge's namespace.
const BRIDGE: &str = "bridge0";
/// The last byte of this process's own address.
const CLIENTS: u8 = 254;

/// The networks of nodes; dropping it removes them.
#[derive(Debug)]
pub(crate) struct Namespaces {
    names: Names,
    nodes: Vec<u64>,
    cuts: Vec<(u64, u64)>,
    _cleanup: Cleanup,
}

impl Namespaces {
    /// Makes a network for each node.
    ///
    /// # Errors
    /// When this machine does not allow it, with the reason.
    pub(crate) fn create(nodes: &[u64]) -> Result<Self, String> {
        remove_leftovers();
        let names = Names::draw();
        let namespaces = nodes.iter().map(|&node| names.node(node));
        let namespaces: Vec<String> = namespaces.chain([names.switch()]).collect();
        let cleanup = Cleanup::of(&namespaces);
        let created = Self {
            names,
            nodes: nodes.to_vec(),
            cuts: Vec::new(),
            _cleanup: cleanup.map_err(|error| format!("`sh` cannot be run: {error}"))?,
        };
        created.place_switch()?;
        for &node in nodes {
            created.connect(node)?;
        }
        Ok(created)
    }

    /// Checks that this process reaches each node, and each node the others.
    ///
    /// # Errors
    /// The two ends that do not reach each other, what was tried, and where to look for the cause.
    pub(crate) fn prove(&self) -> Result<(), String> {
        let nodes: Vec<End> = self.nodes.iter().map(|&node| self.end(node)).collect();
        let clients = End {
            name: "this process".to_owned(),
            address: self.names.address(CLIENTS),
            namespace: None,
        };
        probe(&nodes, &[clients]).map_err(|unreachable| self.explain(&unreachable))
    }

    fn end(&self, node: u64) -> End {
        End {
            name: format!("node {node}"),
            address: self.address(node),
            namespace: Some(self.names.node(node)),
        }
    }

    /// The end of a node.
    pub(crate) fn host(&self, node: u64) -> Host {
        let launcher = ["ip", "netns", "exec", &self.names.node(node)].map(OsString::from);
        Host {
            launcher: launcher.to_vec(),
            ..Host::at(node, self.address(node), PORT)
        }
    }

    /// Drops all messages from one node to another.
    pub(crate) fn cut(&mut self, from: u64, to: u64) {
        let to_address = self.address(to).to_string();
        let change = ["neigh", "replace", &to_address, "lladdr", NOWHERE];
        let how = ["dev", "eth0", "nud", "permanent"];
        let done = self.within(from, &[&change[..], &how].concat());
        done.expect("a network that was made can be changed");
        self.cuts.push((from, to));
    }

    /// Heals all faults.
    pub(crate) fn heal(&mut self) {
        for (from, to) in std::mem::take(&mut self.cuts) {
            let change = ["neigh", "del", &self.address(to).to_string(), "dev", "eth0"];
            let done = self.within(from, &change);
            done.expect("a network that was made can be changed");
        }
    }

    /// Makes the bridge, and this process's connection to it.
    fn place_switch(&self) -> Result<(), String> {
        let (switch, card) = (self.names.switch(), self.names.card());
        ip(&["netns", "add", &switch])?;
        ip_within(&switch, &["link", "add", BRIDGE, "type", "bridge"])?;
        ip_within(&switch, &["link", "set", BRIDGE, "up"])?;
        let pair = ["type", "veth", "peer", "name", "clients", "netns", &switch];
        ip(&[&["link", "add", &card][..], &pair].concat())?;
        ip_within(&switch, &["link", "set", "clients", "master", BRIDGE, "up"])?;
        let own = format!("{}/24", self.names.address(CLIENTS));
        ip(&["addr", "add", &own, "dev", &card])?;
        ip(&["link", "set", &card, "up"])
    }

    fn connect(&self, node: u64) -> Result<(), String> {
        let (namespace, switch) = (self.names.node(node), self.names.switch());
        let card = format!("node{node}");
        ip(&["netns", "add", &namespace])?;
        let pair = ["type", "veth", "peer", "name", "eth0", "netns", &namespace];
        ip_within(&switch, &[&["link", "add", &card][..], &pair].concat())?;
        ip_within(&switch, &["link", "set", &card, "master", BRIDGE, "up"])?;
        let own = format!("{}/24", self.address(node));
        self.within(node, &["addr", "add", &own, "dev", "eth0"])?;
        self.within(node, &["link", "set", "eth0", "up"])?;
        self.within(node, &["link", "set", "lo", "up"])
    }

    /// What is known about the cause.
    fn explain(&self, unreachable: &Unreachable) -> String {
        let rules = self.forward_rules();
        if unreachable.from.namespace.is_some() {
            return format!("{unreachable}; {rules}");
        }
        let subnet = self.names.address(0);
        format!(
            "{unreachable}; {rules}; also see this machine's rules for input and output (`iptables -S`, \
             `nft list ruleset`), and whether another network has {subnet}/24 (`ip route`)"
        )
    }

    /// The rules of the bridge's namespace, as text: the namespace is gone before a person could look.
    fn forward_rules(&self) -> String {
        let switch = self.names.switch();
        let found = inside(&switch, || {
            let is_filtered = fs::read_to_string("/proc/sys/net/bridge/bridge-nf-call-iptables");
            let rules = Command::new("iptables").args(["-S", "FORWARD"]).output();
            (is_filtered.ok(), rules.ok())
        });
        let (is_filtered, rules) = found.unwrap_or_default();
        let rules = rules.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let show = |found: Option<String>| match found {
            Some(found) => found.trim().replace('\n', ", "),
            None => "unknown".to_owned(),
        };
        format!(
            "a firewall may drop what the bridge in namespace {switch} forwards: net.bridge.bridge-nf-call-iptables \
             is {} there, and the forward policy and rules are: {}",
            show(is_filtered),
            show(rules)
        )
    }

    fn within(&self, node: u64, arguments: &[&str]) -> Result<(), String> {
        ip_within(&self.names.node(node), arguments)
    }

    fn address(&self, node: u64) -> Ipv4Addr {
        let last = u8::try_from(node).expect("a cluster is small");
        self.names.address(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::names::owner;
    use nix::sched::{CloneFlags, unshare};
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
    use std::thread;
    use std::time::{Duration, Instant};

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

    /// A machine with Docker forwards nothing by default, not even between the ports of a bridge.
    #[test]
    fn rules_of_the_machine_do_not_reach_the_nodes() {
        let test = || {
            if !forbid_forwarding(Command::new("iptables")) {
                println!("not tried: `iptables` cannot be run");
                return;
            }
            let Some(network) = network() else { return };
            network.prove().unwrap();
            // The same rules in the bridge's namespace: they have the effect that they had in the machine's.
            let mut within = Command::new("ip");
            within.args(["netns", "exec", &network.names.switch(), "iptables"]);
            assert!(forbid_forwarding(within));
            let started = Instant::now();
            let said = network.prove().unwrap_err();
            assert!(started.elapsed() < Duration::from_secs(10));
            assert!(said.contains("bridge-nf-call-iptables is 1"), "{said}");
            assert!(said.contains("-P FORWARD DROP"), "{said}");
        };
        in_a_machine_of_its_own(test);
    }

    #[test]
    fn nothing_is_left_of_a_network_and_of_what_runs_in_it() {
        let Some(network) = network() else { return };
        let mut node = Command::new("ip");
        node.args(["netns", "exec", &network.names.node(1)]);
        node.args(["sh", "-c", "echo inside; exec sleep 600"]);
        let mut node = node.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(node.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "inside");
        let (first, switch) = (network.names.node(1), network.names.switch());
        drop(network);
        assert_eq!(node.wait().unwrap().signal(), Some(9));
        for namespace in [first, switch] {
            inside(&namespace, || ()).unwrap_err();
        }
    }

    #[test]
    fn what_a_dead_process_has_left_is_removed() {
        let mut dead = Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let left = format!("flo-jepsen-{}-0-1", dead.id());
        assert_eq!(owner(&left), Some(dead.id().to_string().as_str()));
        if let Err(reason) = ip(&["netns", "add", &left]) {
            println!("not tried: {reason}");
            return;
        }
        remove_leftovers();
        inside(&left, || ()).unwrap_err();
    }

    /// A network of three nodes, where the machine allows it.
    fn network() -> Option<Namespaces> {
        let network = Namespaces::create(&[1, 2, 3]);
        network
            .inspect_err(|reason| println!("not tried: {reason}"))
            .ok()
    }

    /// Runs the test in a thread with a separate network namespace, so that it may change the rules.
    fn in_a_machine_of_its_own(test: impl FnOnce() + Send + 'static) {
        let thread = thread::spawn(|| match unshare(CloneFlags::CLONE_NEWNET) {
            Ok(()) => test(),
            Err(error) => println!("not tried: {error}"),
        });
        thread.join().unwrap();
    }

    /// Does what Docker does when it starts.
    fn forbid_forwarding(mut iptables: Command) -> bool {
        let done = iptables.args(["-P", "FORWARD", "DROP"]).status();
        done.is_ok_and(|status| status.success())
    }
}
