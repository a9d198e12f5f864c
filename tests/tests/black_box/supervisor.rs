//! What a node tells systemd.

use flotilla_tests::{Cluster, Host, Scratch, TIMEOUT, wait_until};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;

/// Starts a process once the file `$GATE` exists.
const BEHIND_GATE: &str = "while [ ! -e \"$GATE\" ]; do sleep 0.05; done; exec \"$0\" \"$@\"";

/// The next notification.
fn next(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 256];
    let count = socket.recv(&mut bytes).expect("a notification");
    String::from_utf8_lossy(&bytes[..count]).trim().to_owned()
}

#[test]
fn a_node_tells_systemd_when_it_serves_that_it_lives_and_when_it_stops() {
    let scratch = Scratch::new();
    let (path, gate) = (scratch.path("notify"), scratch.path("gate"));
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let supervised = Host {
        environment: vec![
            ("NOTIFY_SOCKET".to_owned(), path.into()),
            ("WATCHDOG_USEC".to_owned(), "300000".into()),
        ],
        ..Host::local(1)
    };
    let late = Host {
        launcher: ["sh", "-c", BEHIND_GATE].map(OsString::from).to_vec(),
        environment: vec![("GATE".to_owned(), gate.clone().into())],
        ..Host::local(2)
    };
    let mut cluster = Cluster::unformed_on(scratch, &[supervised, late], &[]);
    wait_until("the node to wait for the other one", TIMEOUT, || {
        let output = cluster.nodes()[0].output();
        match output.contains("the node waits") {
            true => Ok(()),
            false => Err(output),
        }
    });
    socket.set_nonblocking(true).expect("a socket");
    let early = socket.recv(&mut [0; 256]).expect_err("it has no leader");
    assert_eq!(early.kind(), ErrorKind::WouldBlock);
    socket.set_nonblocking(false).expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    fs::write(gate, "").expect("a file");
    cluster.form();
    assert_eq!(next(&socket), "READY=1");
    cluster.await_health();
    for _ in 0..3 {
        assert_eq!(next(&socket), "WATCHDOG=1");
    }
    assert!(cluster.node_mut(1).stop().success());
    let mut rest = std::iter::repeat_with(|| next(&socket));
    let stopping = rest.find(|notification| notification != "WATCHDOG=1");
    assert_eq!(stopping.as_deref(), Some("STOPPING=1"));
}
