//! One request over plain HTTP.

use serde_json::Value;
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends the request as it is, and returns the status line and the body.
pub(crate) async fn exchange(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

/// GETs the path, and returns the status code and the body.
pub(crate) async fn get(address: &str, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.0\r\nHost: node\r\n\r\n");
    let (status, body) = exchange(address, &request).await;
    let code = status.split(' ').nth(1).unwrap();
    (code.parse().unwrap(), body)
}

/// A response of the API.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// By their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Reply {
    /// The status, and the code of the problem.
    pub(crate) fn problem(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or("none"))
    }
}

/// Calls the API: the method and the path, such as `GET /v1/cluster`, headers, each `name: value`, and a body.
pub(crate) async fn call(address: &str, line: &str, headers: &[&str], body: &str) -> Reply {
    let mut request = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|header| header.starts_with("host:")) {
        request.push_str(&format!("host: {address}\r\n"));
    }
    for header in headers {
        request.push_str(&format!("{header}\r\n"));
    }
    if !body.is_empty() {
        request.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("{request}\r\n{body}").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_ascii_lowercase(), value.to_owned())
    });
    Reply {
        status: status.parse().unwrap(),
        headers: headers.collect(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    }
}

/// Calls the API with a body in JSON.
pub(crate) async fn call_with(address: &str, line: &str, body: &str) -> Reply {
    call(address, line, &["content-type: application/json"], body).await
}

/// One server-sent event: its name, its id and its data.
pub(crate) type Event = (String, Option<u64>, String);

/// GETs a stream of events until it ends, and returns the status and the events.
pub(crate) async fn events(address: &str, path: &str, headers: &str) -> (u16, Vec<Event>) {
    // HTTP/1.0, so that the body is not in chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n");
    let (status, body) = exchange(address, &request).await;
    let status = status.split(' ').nth(1).unwrap().parse().unwrap();
    let blocks = body.split("\n\n").filter(|block| block.contains("event: "));
    let events = blocks.map(|block| {
        let field = |name| {
            block
                .lines()
                .filter_map(move |line| line.strip_prefix(name))
        };
        let id = field("id: ").next().map(|id| id.parse().unwrap());
        let data: Vec<&str> = field("data: ").collect();
        (
            field("event: ").next().unwrap().to_owned(),
            id,
            data.join("\n"),
        )
    });
    (status, events.collect())
}
