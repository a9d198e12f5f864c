//! When a node serves that was killed and started again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cluster::{Cluster, NodeId};
use crate::interrupt::Interrupt;
use crate::patience::wait_for;

/// How long a node may take.
const LIMIT: Duration = Duration::from_secs(900);

/// How long it may take to answer one question.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// What every good answer begins with.
const GOOD: &[u8] = b"HTTP/1.1 200 ";

/// Kills a follower and starts it again, and says how long it took from its start until it was ready. Afterwards
/// all nodes hold the same state.
///
/// # Errors
/// If it does not start, or is not ready in time.
pub(super) fn time_of_restart(cluster: &mut Cluster, interrupt: &Interrupt) -> Result<Duration> {
    let leader = cluster.wait_for_leader(None, interrupt)?.node_id;
    let follower = cluster.node_ids().find(|node_id| *node_id != leader);
    let follower = follower.context("expected a follower")?;
    cluster.kill(follower)?;
    let began = Instant::now();
    cluster.restart(follower)?;
    wait_until_ready(cluster, follower, interrupt)?;
    let took = began.elapsed();
    cluster.wait_for_agreement(interrupt)?;
    Ok(took)
}

fn wait_until_ready(cluster: &mut Cluster, node_id: NodeId, interrupt: &Interrupt) -> Result<()> {
    let [_, _, http] = cluster.addresses(node_id);
    let http: SocketAddr = http.parse()?;
    let what = format!("node {node_id} to be ready");
    wait_for(&what, LIMIT, interrupt, || {
        cluster.process_mut(node_id).expect_running()?;
        Ok(is_ready(http).then_some(()))
    })
}

/// What `/readyz` says: that the node has caught up with a leader, which has a quorum. Whoever does not answer is
/// not ready.
fn is_ready(address: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let question =
            format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(question.as_bytes())?;
        let mut answer = [0; GOOD.len()];
        stream.read_exact(&mut answer)?;
        std::io::Result::Ok(answer == GOOD)
    };
    ask().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn judge(answer: &'static str) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 19];
            stream.read_exact(&mut question).unwrap();
            assert!(question.starts_with(b"GET /readyz "));
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let is_ready = is_ready(address);
        server.join().unwrap();
        is_ready
    }

    #[test]
    fn only_a_good_answer_says_that_a_node_is_ready() {
        assert!(judge("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(!judge("HTTP/1.1 503 Service Unavailable\r\n\r\n"));
        assert!(!judge(""));
    }

    #[test]
    fn a_node_that_does_not_listen_is_not_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(!is_ready(address));
    }
}
