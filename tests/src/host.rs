//! The host of a node.

use crate::certificates::Certificates;
use crate::ports;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// The host of a node: its addresses, its disk, and how its process is started there.
#[derive(Clone, Debug)]
pub struct Host {
    /// The node's id.
    pub node_id: u64,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its first port P: P for clients, P+1 for peers and P+2 for HTTP.
    pub port: u16,
    /// The address at which peers reach it; its own peer port unless there is a proxy before it.
    pub peer_address: SocketAddrV4,
    /// A program with arguments that starts the process, such as `ip netns exec NAME`; empty for none.
    pub launcher: Vec<OsString>,
    /// Its data directory, if it is not in the cluster's folder.
    pub data_dir: Option<PathBuf>,
    /// Its certificates, if they are not the cluster's.
    pub certificates: Option<Certificates>,
    /// Environment variables of its process.
    pub environment: Vec<(String, OsString)>,
}

impl Host {
    /// On loopback, with free ports.
    #[must_use]
    pub fn local(node_id: u64) -> Self {
        Self::at(node_id, Ipv4Addr::LOCALHOST, ports::draw(3))
    }

    /// With this address and these ports, without a proxy.
    #[must_use]
    pub fn at(node_id: u64, ip: Ipv4Addr, port: u16) -> Self {
        Self {
            node_id,
            ip,
            port,
            peer_address: SocketAddrV4::new(ip, port + 1),
            launcher: Vec::new(),
            data_dir: None,
            certificates: None,
            environment: Vec::new(),
        }
    }

    pub(crate) fn address(&self, offset: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.ip, self.port + offset)
    }
}
