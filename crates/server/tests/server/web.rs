//! One request over plain HTTP.

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
