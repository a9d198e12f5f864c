//! Free ports for nodes that are killed and started again.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;

use anyhow::{Result, bail};

/// Below the ephemeral ports: no other process gets a node's port while the node is down.
const CANDIDATES: Range<u16> = 20_000..32_000;

/// How many ports a node needs.
const PORTS: usize = 3;

/// How many nodes there are.
const NODES: usize = 3;

/// The ports of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) client: u16,
    pub(super) peer: u16,
    pub(super) http: u16,
}

impl Ports {
    /// The nodes' peer addresses, as `flo server --peers` takes them.
    pub(super) fn peers(nodes: &[Self]) -> String {
        let peers = (1..).zip(nodes);
        let peers = peers.map(|(id, ports): (u32, _)| format!("{id}={}", address(ports.peer)));
        peers.collect::<Vec<_>>().join(",")
    }
}

/// The first port in the files of `deploy/local`.
pub(crate) const PORT_CONFIGURED: u16 = 9000;

/// The greatest first port, so that the last port is valid too.
pub(crate) const PORT_MAX: u16 = u16::MAX - 22;

/// All ports from the first one, numbered as in the files of `deploy/local`.
pub(super) fn from(first: u16) -> Vec<Ports> {
    let node = |offset| Ports {
        client: first + offset,
        peer: first + offset + 1,
        http: first + offset + 2,
    };
    [0, 10, 20].map(node).to_vec()
}

/// A port on loopback only.
pub(crate) fn address(port: u16) -> String {
    format!("{}:{port}", Ipv4Addr::LOCALHOST)
}

/// Chooses the ports of all nodes.
///
/// # Errors
/// If there are not enough free ports.
pub(super) fn choose() -> Result<Vec<Ports>> {
    let free = free(NODES * PORTS)?;
    let node = |ports: &[u16]| Ports {
        client: ports[0],
        peer: ports[1],
        http: ports[2],
    };
    Ok(free.chunks(PORTS).map(node).collect())
}

/// Chooses `count` ports.
///
/// # Errors
/// If there are not enough free ports.
pub(crate) fn free(count: usize) -> Result<Vec<u16>> {
    // Two clusters that start at the same time begin their search at different ports.
    let offset = usize::try_from(process::id())?.wrapping_mul(NODES * PORTS);
    pick(offset, count, is_free)
}

fn pick(offset: usize, count: usize, is_free: impl Fn(u16) -> bool) -> Result<Vec<u16>> {
    let offset = offset % CANDIDATES.len();
    let candidates = CANDIDATES.skip(offset).chain(CANDIDATES.take(offset));
    let free = candidates.filter(|port| is_free(*port));
    let free: Vec<u16> = free.take(count).collect();
    if free.len() < count {
        bail!("expected {count} free ports, but found {}", free.len());
    }
    Ok(free)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_ports_are_left_out() {
        let ports = pick(0, 9, |port| port % 2 == 1).unwrap();
        let expected: Vec<u16> = (20_001..20_019).step_by(2).collect();
        assert_eq!(ports, expected);
    }

    #[test]
    fn the_search_goes_round() {
        let ports = pick(CANDIDATES.len() * 7 + 11_998, 3, |_| true).unwrap();
        assert_eq!(ports, [31_998, 31_999, 20_000]);
    }

    #[test]
    fn a_machine_without_free_ports_is_an_error() {
        let error = pick(3, 9, |port| port < 20_008).unwrap_err().to_string();
        assert_eq!(error, "expected 9 free ports, but found 8");
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
    }

    #[test]
    fn peers_are_named_by_id() {
        let nodes = from(9000);
        let expected = "1=127.0.0.1:9001,2=127.0.0.1:9011,3=127.0.0.1:9021";
        assert_eq!(Ports::peers(&nodes), expected);
    }
}
