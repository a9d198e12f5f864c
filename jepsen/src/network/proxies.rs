//! A fault proxy before each node's peer port, for machines without network namespaces
//! and for faults that a kernel without netem cannot inject.
//!
//! A proxy copies bytes, so it can do to messages what TCP allows: delay them, hold them
//! as behind a partition, or break the connection, so that data in flight is lost or
//! sent again by the node. Within a connection nothing is lost or reordered.

use super::rules::Rules;
use super::source;
use rand::RngExt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

const BUFFER_BYTES: usize = 64 << 10;

/// Proxies in threads of this process; dropping it ends them.
pub(crate) struct Proxies {
    rules: watch::Sender<Rules>,
    // Dropped with its tasks.
    runtime: Option<Runtime>,
}

/// The path of one connection through a proxy.
#[derive(Clone, Copy)]
struct Route {
    from: u64,
    to: u64,
}

impl Proxies {
    /// Without proxies at first.
    pub(crate) fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        Ok(Self {
            rules: watch::Sender::new(Rules::default()),
            runtime: Some(runtime),
        })
    }

    /// Starts a proxy before a node, and returns the address at which its peers now find it. `folder` is
    /// the folder that the arguments of all nodes of the cluster name.
    pub(crate) fn before(
        &self,
        node: u64,
        target: SocketAddrV4,
        folder: PathBuf,
    ) -> std::io::Result<SocketAddrV4> {
        let runtime = self.runtime.as_ref().expect("it is there until the drop");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let port = listener.local_addr()?.port();
        let rules = self.rules.subscribe();
        runtime.spawn(async move {
            loop {
                // An accept fails when the process is out of descriptors; other connections free theirs.
                let Ok((stream, peer)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                let (rules, folder) = (rules.clone(), folder.clone());
                tokio::spawn(async move {
                    let port = peer.port();
                    let look = move || source::node_at(port, &folder);
                    let from = tokio::task::spawn_blocking(look).await.ok().flatten();
                    // A failed send means that the receiver is gone.
                    let Some(from) = from else { return };
                    pass(stream, target, Route { from, to: node }, rules).await;
                });
            }
        });
        Ok(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
    }

    /// Changes the faults of messages, also of those in flight.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Rules)) {
        self.rules.send_modify(change);
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn pass(
    stream: TcpStream,
    target: SocketAddrV4,
    route: Route,
    rules: watch::Receiver<Rules>,
) {
    let redirected = rules.borrow().redirected.get(&route.to).copied();
    let Ok(onward) = TcpStream::connect(redirected.unwrap_or(target)).await else {
        return;
    };
    for stream in [&stream, &onward] {
        // A proxy must not be slower than its configured delay.
        let _ = stream.set_nodelay(true);
    }
    let (near_read, near_write) = stream.into_split();
    let (far_read, far_write) = onward.into_split();
    let back = Route {
        from: route.to,
        to: route.from,
    };
    // When one direction breaks, so does the other, as in a connection.
    tokio::select! {
        () = pump(near_read, far_write, route, rules.clone()) => {}
        () = pump(far_read, near_write, back, rules) => {}
    }
}

async fn pump(
    mut read: OwnedReadHalf,
    mut write: OwnedWriteHalf,
    route: Route,
    mut rules: watch::Receiver<Rules>,
) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut breaking = rules.clone();
    let breaks_count = rules.borrow().breaks_count;
    loop {
        let taken = tokio::select! {
            taken = read.read(&mut buffer) => taken,
            () = await_break(&mut breaking, breaks_count) => return,
        };
        let Ok(count @ 1..) = taken else {
            return;
        };
        let (delay, is_reset) = {
            let rules = rules.borrow();
            let mut random = rand::rng();
            let percent = random.random_range(50..150);
            let is_reset = random.random_range(0..1_000) < rules.resets_per_mille;
            (rules.delay * percent / 100, is_reset)
        };
        if is_reset {
            return;
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let passable = rules.wait_for(|rules| !rules.is_cut(route.from, route.to));
        if passable.await.is_err() || write.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// Waits until connections that are as old as this count must break.
async fn await_break(rules: &mut watch::Receiver<Rules>, breaks_count: u64) {
    // It fails when the rules are dropped, and then the proxies are, too.
    let _ = rules
        .wait_for(|rules| rules.breaks_count > breaks_count)
        .await;
}
