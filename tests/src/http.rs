//! One HTTP request at a time, as any program could send it.

use crate::wait::TIMEOUT;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};

/// The response of a node over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The body, JSON.
    pub body: Value,
}

impl HttpAnswer {
    /// The status, and the code of the error in the body.
    #[must_use]
    pub fn error(&self) -> (u16, &str) {
        let code = self.body["error"]["code"].as_str();
        (self.status, code.unwrap_or("none"))
    }
}

/// POSTs the body to the URL with these headers, each `Name: value`.
///
/// # Panics
/// When there is no response, or its body is not JSON.
#[must_use]
pub fn post(url: &str, headers: &[&str], body: &str) -> HttpAnswer {
    let (status, body) = send("POST", url, headers, body);
    HttpAnswer {
        status,
        body: serde_json::from_str(&body).expect("a JSON body"),
    }
}

/// GETs the URL with these headers, each `Name: value`; returns the status code and the body.
///
/// # Panics
/// When there is no response.
#[must_use]
pub fn get(url: &str, headers: &[&str]) -> (u16, String) {
    send("GET", url, headers, "")
}

fn send(method: &str, url: &str, headers: &[&str], body: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").expect("a plain URL");
    let (address, path) = rest.split_once('/').expect("a URL with a path");
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    exchange(address, &request)
}

/// The value of a metric without labels, as the node at this address exposes it.
///
/// # Panics
/// When there is no response, or it lacks the metric.
pub(crate) fn metric(address: SocketAddrV4, name: &str) -> f64 {
    let (_, page) = get(&format!("http://{address}/metrics"), &[]);
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("expected the metric {name} at {address}"))
}

/// The status and the body of the response to a request.
fn exchange(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the node serves HTTP");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a bound");
    // A node may respond, and close, before it has read a body that is too long.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("expected an answer from {address}, but {read:?}: {answer}"));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("a status line"), body.to_owned())
}
