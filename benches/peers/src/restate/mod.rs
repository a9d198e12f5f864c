//! Three-step invocations on Restate, over its HTTP ingress.

mod connection;
mod prepare;

pub(crate) use prepare::Prepare;

use crate::closed_loop::{Caller, Pace};
use crate::fault::Fault;
use crate::report::{Report, Verified};
use bytes::Bytes;
use clap::Args;
use connection::Connection;
use hyper::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// The service of `benches/restate`: its name and its handler.
const PATH: &str = "/steps/run";
/// How long an invocation may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Measure three-step invocations on Restate, in a closed loop
///
/// Each client keeps one connection to an ingress and calls the service of `benches/restate`. The output of
/// each invocation must be what its three steps make of the input.
#[derive(Debug, Args)]
pub(crate) struct Restate {
    /// The ingresses, as addresses; clients are spread over them
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', required = true)]
    ingress: Vec<SocketAddr>,

    #[command(flatten)]
    pace: Pace,
}

impl Restate {
    /// Measures and prints.
    ///
    /// # Errors
    /// If no invocation succeeded.
    pub(crate) async fn run(self) -> Result<(), Fault> {
        let clients = self.ingress.iter().cycle().take(self.pace.clients_count());
        let clients = clients.map(|ingress| Client::new(*ingress)).collect();
        let measured = self.pace.run(clients).await;
        let verified = Verified {
            count: measured.succeeded,
            by: "the output of each invocation",
        };
        Report::new("steps", self.pace.clients_count(), &measured, verified).print()
    }
}

/// One client, which reconnects when its connection breaks.
struct Client {
    ingress: SocketAddr,
    connection: Option<Connection>,
}

#[derive(Serialize)]
struct Input {
    number: u32,
}

impl Client {
    fn new(ingress: SocketAddr) -> Self {
        Self {
            ingress,
            connection: None,
        }
    }

    async fn invoke(&mut self, number: u32) -> Result<(), Fault> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.ingress).await?,
        };
        let body = serde_json::to_vec(&Input { number })?;
        let (status, answer) = connection.post(PATH, body).await?;
        expect_output(status, &answer, number)?;
        // A failed connection is not used again.
        self.connection = Some(connection);
        Ok(())
    }
}

impl Caller for Client {
    async fn call(&mut self) -> Result<(), Fault> {
        timeout(TIMEOUT, self.invoke(rand::random())).await?
    }
}

/// Each step names itself and adds one to the previous number.
fn expect_output(status: StatusCode, answer: &Bytes, number: u32) -> Result<(), Fault> {
    let number = u64::from(number);
    let expected = json!({"first": number + 1, "second": number + 2, "third": number + 3});
    if status.is_success() && serde_json::from_slice::<Value>(answer)? == expected {
        return Ok(());
    }
    let answer = String::from_utf8_lossy(answer);
    Err(Fault::new(format!(
        "expected {expected}, but got {status}: {answer}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, answer: &'static str) -> Result<(), Fault> {
        let status = StatusCode::from_u16(status).unwrap();
        expect_output(status, &Bytes::from_static(answer.as_bytes()), 7)
    }

    #[test]
    fn only_the_output_of_all_three_steps_is_right() {
        assert_eq!(
            check(200, r#"{"first": 8, "second": 9, "third": 10}"#),
            Ok(())
        );
        for answer in [
            r#"{"first": 8, "second": 9}"#,
            r#"{"first": 8, "second": 9, "third": 9}"#,
            "null",
            "",
        ] {
            assert!(check(200, answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn a_refusal_shows_its_status_and_its_text() {
        let fault = check(404, r#""service 'steps' not found""#).unwrap_err();
        assert!(fault.0.contains("404"), "{fault}");
        assert!(fault.0.contains("not found"), "{fault}");
    }
}
