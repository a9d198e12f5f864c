//! Checks that each end of a network reaches the others, before it is used.
//!
//! A probe is a TCP connection, made in the namespaces by this process: nodes speak TCP too, and `ping` is not
//! installed everywhere.

use super::namespace::inside;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long a connection may take: a lost first packet is sent again after one second, and again after two.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One end of a network.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// A readable name.
    pub(super) name: String,
    pub(super) address: Ipv4Addr,
    /// The namespace; absent for this process's own.
    pub(super) namespace: Option<String>,
}

/// One end does not reach another.
#[derive(Debug)]
pub(super) struct Unreachable {
    pub(super) from: End,
    pub(super) to: End,
    error: io::Error,
}

/// Connects each client to each server, and the servers to each other. Servers have namespaces.
///
/// # Errors
/// The first pair that fails.
pub(super) fn probe(servers: &[End], clients: &[End]) -> Result<(), Unreachable> {
    for to in servers {
        let fail = |from: &End, error| Unreachable {
            from: from.clone(),
            to: to.clone(),
            error,
        };
        // The kernel accepts connections for a listener; no process has to.
        let listener = to.run(|| TcpListener::bind((to.address, 0)));
        let listener = listener.map_err(|error| fail(to, error))?;
        let target = listener.local_addr().map_err(|error| fail(to, error))?;
        let others = servers.iter().filter(|from| from.address != to.address);
        for from in clients.iter().chain(others) {
            from.connect(target).map_err(|error| fail(from, error))?;
        }
    }
    Ok(())
}

impl End {
    fn connect(&self, target: SocketAddr) -> io::Result<()> {
        self.run(|| TcpStream::connect_timeout(&target, TIMEOUT))
            .map(drop)
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        match &self.namespace {
            Some(namespace) => inside(namespace, work)?,
            None => work(),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, address, .. } = self;
        match &self.namespace {
            Some(namespace) => write!(formatter, "{name} ({address} in namespace {namespace})"),
            None => write!(formatter, "{name} ({address})"),
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, error } = self;
        write!(
            formatter,
            "expected {from} to reach {to}, but a TCP connection failed within {TIMEOUT:?}: {error}"
        )
    }
}
