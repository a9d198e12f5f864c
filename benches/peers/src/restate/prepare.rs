//! Prepares Restate: registers its service, and waits until each ingress serves it.

use super::Client;
use super::connection::Connection;
use crate::fault::Fault;
use clap::Args;
use hyper::StatusCode;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How often a starting server is polled.
const INTERVAL: Duration = Duration::from_millis(200);
/// How long one call may take; a partition without a leader keeps an invocation waiting.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How many invocations in a row each ingress must answer: enough to reach every partition.
const INVOCATIONS_COUNT: u32 = 100;

/// Register the service of `benches/restate`, and wait until each ingress serves it
#[derive(Debug, Args)]
pub(crate) struct Prepare {
    /// The admin address of Restate
    #[arg(long, value_name = "ADDRESS")]
    admin: SocketAddr,

    /// The address of the service
    #[arg(long, value_name = "ADDRESS")]
    service: SocketAddr,

    /// The ingresses
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', required = true)]
    ingress: Vec<SocketAddr>,

    /// The maximum time to wait
    #[arg(long, value_name = "S", default_value_t = 90)]
    seconds: u16,
}

impl Prepare {
    /// Registers and waits.
    ///
    /// # Errors
    /// If Restate is not ready in time, with its last response.
    pub(crate) async fn run(self) -> Result<(), Fault> {
        let deadline = Instant::now() + Duration::from_secs(self.seconds.into());
        until(deadline, || self.register()).await?;
        for ingress in &self.ingress {
            until(deadline, || try_out(*ingress)).await?;
        }
        Ok(())
    }

    async fn register(&self) -> Result<(), Fault> {
        let body = json!({"uri": format!("http://{}", self.service)});
        let mut connection = Connection::open(self.admin).await?;
        let body = serde_json::to_vec(&body)?;
        match connection.post("/deployments", body).await? {
            (status, _) if status.is_success() => Ok(()),
            // By an attempt whose response was lost.
            (StatusCode::CONFLICT, _) => Ok(()),
            (status, answer) => {
                let answer = String::from_utf8_lossy(&answer);
                Err(Fault::new(format!("{status}: {answer}")))
            }
        }
    }
}

async fn try_out(ingress: SocketAddr) -> Result<(), Fault> {
    let mut client = Client::new(ingress);
    for number in 0..INVOCATIONS_COUNT {
        client.invoke(number).await?;
    }
    Ok(())
}

async fn until<F>(deadline: Instant, mut attempt: impl FnMut() -> F) -> Result<(), Fault>
where
    F: Future<Output = Result<(), Fault>>,
{
    loop {
        let fault = match timeout(TIMEOUT, attempt()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(fault)) => fault,
            Err(elapsed) => elapsed.into(),
        };
        if Instant::now() >= deadline {
            return Err(Fault::new(format!(
                "expected Restate to be ready in time, but: {fault}"
            )));
        }
        sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_asks_until_the_answer_is_good() {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut faults = vec![Fault::new("a"), Fault::new("b")];
        let attempt = || std::future::ready(faults.pop().map_or(Ok(()), Err));
        assert_eq!(until(deadline, attempt).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn patience_ends_with_what_was_said_last() {
        let deadline = Instant::now() + Duration::from_secs(1);
        let attempt = || std::future::ready(Err(Fault::new("no leader")));
        let fault = until(deadline, attempt).await.unwrap_err();
        assert!(fault.0.ends_with("no leader"), "{fault}");
    }
}
