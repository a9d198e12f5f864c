//! A node that may open no more files.

use flotilla_tests::{DevNode, TIMEOUT, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;

/// What an HTTP/2 client sends first: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PROBE: &[u8] = b"GET /livez HTTP/1.1\r\nHost: node\r\n\r\n";

/// A connection on which something was sent.
fn connect(address: &str, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the kernel accepts it");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a bound");
    stream.write_all(first).expect("it is open");
    stream
}

#[test]
fn a_node_that_could_open_no_more_files_accepts_connections_once_it_can() {
    let mut node = DevNode::start();
    let (clients, http) = (node.endpoint(), node.http_address());
    let refusals = |node: &mut DevNode| {
        let output = node.process().output();
        output.matches("a connection was not accepted").count()
    };
    assert_eq!(refusals(&mut node), 0);
    // Its standard streams use these already.
    node.process().limit_files(3);
    for (address, first) in [(&clients, PREFACE), (&http, PROBE)] {
        let before = refusals(&mut node);
        let mut waiting = connect(address, first);
        wait_until(
            "an accept to fail more than once",
            TIMEOUT,
            || match refusals(&mut node).saturating_sub(before) {
                2.. => Ok(()),
                count => Err(format!("{count} failed")),
            },
        );
        node.process().limit_files(1_024);
        // The connection has waited in the kernel.
        let mut response = [0; 9];
        waiting.read_exact(&mut response).expect("it is served");
        if first == PROBE {
            assert_eq!(&response, b"HTTP/1.1 ");
        } else {
            assert_eq!(response[3], 4, "the header of a SETTINGS frame");
        }
        node.process().limit_files(3);
    }
    node.process().limit_files(1_024);
    let flo = node.flo();
    let _ = flo.text(&["kv", "set", "k", "v"]);
    assert_eq!(flo.text(&["kv", "get", "k"]), "v");
}
