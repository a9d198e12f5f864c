//! Follows a run with server-sent events, as a browser does: a client that reconnects says which event it has.

use super::Session;
use super::watch::Seen;
use rand::RngExt;
use rand::rngs::StdRng;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a client waits for a node, or for the next line, before it tries another node.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How long it waits before it reconnects.
const PAUSE: Duration = Duration::from_millis(50);
/// On average, a client connects to another node after this many events, although the connection works.
const EVENTS_PER_MOVE: u32 = 3;

/// What ended a connection.
enum Ending {
    /// The run has ended.
    Ended,
    /// The client has to reconnect.
    Broken,
}

/// Follows the run until it has ended or the session stops. With TLS it follows nothing: only the Rust client has
/// certificates.
pub(super) async fn follow(session: &Session, run_id: &str, random: &mut StdRng) -> Seen {
    let mut seen = Seen::default();
    let addresses = &session.nodes.http_addresses;
    if session.nodes.tls.is_some() {
        return seen;
    }
    for address in addresses.iter().cycle() {
        let ending = tokio::select! {
            ending = read_events(address, run_id, &mut seen, random) => ending,
            () = session.stop.cancelled() => return seen,
        };
        match ending {
            Ok(Ending::Ended) => {
                seen.is_ended = true;
                return seen;
            }
            Ok(Ending::Broken) | Err(_) => session.rest(PAUSE).await,
        }
    }
    seen
}

/// Follows the run at one node.
async fn read_events(
    address: &str,
    run_id: &str,
    seen: &mut Seen,
    random: &mut StdRng,
) -> io::Result<Ending> {
    let stream = timeout(SILENCE_MAX, TcpStream::connect(address)).await??;
    let mut stream = BufReader::new(stream);
    let path = format!("/v1/namespaces/default/runs/{run_id}/events");
    // HTTP/1.0, so that the body is not in chunks.
    let mut request = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n");
    if let Some(last) = seen.seqs.last() {
        request.push_str(&format!("last-event-id: {last}\r\n"));
    }
    stream
        .write_all(format!("{request}\r\n").as_bytes())
        .await?;
    let status = line(&mut stream).await?;
    match status.split(' ').nth(1) {
        Some("200") => {}
        // The client has all events of an ended run.
        Some("204") => return Ok(Ending::Ended),
        _ => return Ok(Ending::Broken),
    }
    let (mut name, mut id) = (String::new(), None);
    loop {
        let line = line(&mut stream).await?;
        if let Some(value) = line.strip_prefix("event: ") {
            name = value.to_owned();
        } else if let Some(value) = line.strip_prefix("id: ") {
            id = value.parse().ok();
        } else if line.is_empty() {
            match (name.as_str(), id) {
                ("history", Some(seq)) => {
                    seen.seqs.push(seq);
                    if random.random_ratio(1, EVENTS_PER_MOVE) {
                        return Ok(Ending::Broken);
                    }
                }
                ("reset", _) => seen.resets += 1,
                ("stream-end", _) => return Ok(Ending::Ended),
                _ => {}
            }
            (name, id) = (String::new(), None);
        }
    }
}

/// The next line, without its end.
async fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    let bytes = timeout(SILENCE_MAX, stream.read_line(&mut line)).await??;
    match bytes {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}
