//! Attacks by connections alone: no credentials are needed.

use super::arena::{Arena, Port};
use super::{Abuse, Needs};
use std::net::SocketAddrV4;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{interval, sleep};

/// What an HTTP/2 client sends first: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The beginning of a request over HTTP/1.
const HEADERS: &[u8] =
    b"GET /livez HTTP/1.1\r\nHost: a\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// How long a slow caller waits before each byte.
const BYTE_PAUSE: Duration = Duration::from_millis(500);
/// How long an attacker waits before it connects again. The attackers share the processors with the nodes, so thousands of
/// connections a second would measure the attackers.
const RECONNECT_PAUSE: Duration = Duration::from_secs(5);

/// Many callers that send one byte at a time, to every port.
pub(super) struct Slowloris;

impl Slowloris {
    /// Callers of each port of each node.
    const CALLERS: usize = 200;
}

impl Abuse for Slowloris {
    fn name(&self) -> &'static str {
        "slowloris"
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let ports = [
            (Port::Clients, PREFACE),
            (Port::Peers, PREFACE),
            (Port::Http, HEADERS),
        ];
        for (port, text) in ports {
            for address in arena.addresses(port) {
                for _ in 0..Self::CALLERS {
                    arena.spawn(creep(address, text));
                }
            }
        }
        format!(
            "{} callers of each of the three ports of each node send a byte every {} ms",
            Self::CALLERS,
            BYTE_PAUSE.as_millis()
        )
    }
}

/// Sends a text byte by byte, again and again.
async fn creep(address: SocketAddrV4, text: &'static [u8]) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            for byte in text {
                if stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                sleep(BYTE_PAUSE).await;
            }
        }
        sleep(RECONNECT_PAUSE).await;
    }
}

/// Many connections that do nothing.
pub(super) struct IdleConnections;

impl IdleConnections {
    /// Connections to all nodes together.
    const CONNECTIONS: usize = 10_000;
}

impl Abuse for IdleConnections {
    fn name(&self) -> &'static str {
        "idle-connections"
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let addresses = arena.addresses(Port::Clients);
        for number in 0..Self::CONNECTIONS {
            arena.spawn(idle(addresses[number % addresses.len()], PREFACE));
        }
        format!(
            "{} connections of HTTP/2 that make no call",
            Self::CONNECTIONS
        )
    }
}

/// Keeps a connection open on which nothing is sent after its first bytes.
async fn idle(address: SocketAddrV4, first: &'static [u8]) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await
            && stream.write_all(first).await.is_ok()
        {
            // Until the node closes it.
            let mut answer = [0; 64];
            while matches!(stream.read(&mut answer).await, Ok(1..)) {}
        }
        sleep(RECONNECT_PAUSE).await;
    }
}

/// New connections that never do their TLS handshake.
pub(super) struct HandshakeFlood;

impl HandshakeFlood {
    /// New connections to each port of each node in a second.
    const PER_SECOND: u32 = 200;
}

impl Abuse for HandshakeFlood {
    fn name(&self) -> &'static str {
        "handshake-flood"
    }

    fn needs(&self) -> Needs {
        Needs {
            is_secured: true,
            ..Needs::default()
        }
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        for port in [Port::Clients, Port::Peers] {
            for address in arena.addresses(port) {
                arena.spawn(flood(address));
            }
        }
        format!(
            "{} connections a second to the ports for clients and peers of each node, without a handshake",
            Self::PER_SECOND
        )
    }
}

async fn flood(address: SocketAddrV4) {
    let mut ticks = interval(Duration::from_secs(1) / HandshakeFlood::PER_SECOND);
    let mut open = tokio::task::JoinSet::new();
    loop {
        ticks.tick().await;
        open.spawn(async move {
            if let Ok(mut stream) = TcpStream::connect(address).await {
                // Until the node closes it.
                let _ = stream.read(&mut [0; 1]).await;
            }
        });
        while open.try_join_next().is_some() {}
    }
}

/// More connections than a node may open files. Its ports accept at most half as many, so that its stores do not fail.
pub(super) struct ExhaustedFiles;

impl ExhaustedFiles {
    /// The open files of each node.
    const FILES: u64 = 1_024;
    /// Connections to each port of each node.
    const CONNECTIONS: usize = 1_000;
}

impl Abuse for ExhaustedFiles {
    fn name(&self) -> &'static str {
        "exhausted-files"
    }

    fn needs(&self) -> Needs {
        Needs {
            open_files: Some(Self::FILES),
            ..Needs::default()
        }
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        for (port, first) in [
            (Port::Clients, PREFACE),
            (Port::Peers, PREFACE),
            (Port::Http, &HEADERS[..1]),
        ] {
            for address in arena.addresses(port) {
                for _ in 0..Self::CONNECTIONS {
                    arena.spawn(idle(address, first));
                }
            }
        }
        format!(
            "{} connections to each of the three ports of each node, which may open {} files",
            Self::CONNECTIONS,
            Self::FILES
        )
    }
}
