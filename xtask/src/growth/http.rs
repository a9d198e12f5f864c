//! Reads the HTTP ports of nodes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Result;

use crate::cluster::{Cluster, NodeId};

/// How long a response may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The start of every successful response.
const GOOD: &str = "HTTP/1.1 200 ";

/// The HTTP address of a node.
///
/// # Errors
/// If the text is not an address.
pub(super) fn address(cluster: &Cluster, node_id: NodeId) -> Result<SocketAddr> {
    let [_, _, http] = cluster.addresses(node_id);
    Ok(http.parse()?)
}

/// A successful response with its head; `None` for any other response.
///
/// # Errors
/// If there is no response.
pub(super) fn get(address: SocketAddr, path: &str) -> io::Result<Option<String>> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    let question = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with(GOOD).then_some(answer))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn ask(answer: &'static str) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let question = BufReader::new(&stream).lines();
            let question: Vec<String> = question
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty())
                .collect();
            assert_eq!(question[0], "GET /readyz HTTP/1.1");
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let answer = get(address, "/readyz").unwrap();
        server.join().unwrap();
        answer
    }

    #[test]
    fn only_a_good_answer_is_one() {
        let good = "HTTP/1.1 200 OK\r\n\r\nready";
        assert_eq!(ask(good).as_deref(), Some(good));
        assert_eq!(ask("HTTP/1.1 503 Service Unavailable\r\n\r\n"), None);
        assert_eq!(ask(""), None);
    }

    #[test]
    fn a_port_without_a_listener_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(get(address, "/readyz").is_err());
    }
}
