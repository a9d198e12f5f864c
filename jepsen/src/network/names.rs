//! The names and addresses of the parts of a network.

use std::net::Ipv4Addr;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "flo-jepsen";
/// Spreads the networks of one process over addresses that other processes are unlikely to use.
const STRIDE: u32 = 4_099;

/// The names of one network. They are unique: they contain the id of this process and a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    process: u32,
    number: u32,
}

impl Names {
    /// The names of a new network.
    pub(super) fn draw() -> Self {
        static DRAWN: AtomicU32 = AtomicU32::new(0);
        Self {
            process: process::id(),
            number: DRAWN.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The namespace of a node.
    pub(super) fn node(self, node: u64) -> String {
        self.namespace(&node.to_string())
    }

    /// The namespace of the bridge.
    pub(super) fn switch(self) -> String {
        self.namespace("switch")
    }

    fn namespace(self, part: &str) -> String {
        format!("{PREFIX}-{}-{}-{part}", self.process, self.number)
    }

    /// A virtual card in this process's network; the kernel allows names of 15 bytes.
    pub(super) fn card(self) -> String {
        format!("fj{}x{}", self.process, self.number)
    }

    /// An address, in a subnet that two networks are unlikely to share.
    pub(super) fn address(self, last: u8) -> Ipv4Addr {
        let subnet = self.process.wrapping_add(self.number.wrapping_mul(STRIDE));
        let [.., high, low] = subnet.to_be_bytes();
        Ipv4Addr::new(10, 192 | (high & 63), low, last)
    }
}

/// The id of the process that made a namespace.
pub(super) fn owner(namespace: &str) -> Option<&str> {
    let rest = namespace.strip_prefix(PREFIX)?.strip_prefix('-')?;
    let (owner, _) = rest.split_once('-')?;
    Some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_names_its_owner() {
        assert_eq!(owner("flo-jepsen-77-0-2"), Some("77"));
        let own = process::id().to_string();
        assert_eq!(owner(&Names::draw().node(1)), Some(own.as_str()));
        assert_eq!(owner("someone-else"), None);
    }

    #[test]
    fn two_networks_of_one_process_share_neither_names_nor_addresses() {
        let (one, other) = (Names::draw(), Names::draw());
        assert_ne!(one.node(1), other.node(1));
        assert_ne!(one.card(), other.card());
        assert_ne!(one.address(1), other.address(1));
    }

    #[test]
    fn the_kernel_allows_the_name_of_every_card() {
        let names = Names {
            process: 4_194_304,
            number: 9_999,
        };
        assert!(names.card().len() <= 15, "{}", names.card());
    }
}
