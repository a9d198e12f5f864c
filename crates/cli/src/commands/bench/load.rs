//! A closed loop: each client works without a pause.

use flotilla_client::{Client, ClientError};
use hdrhistogram::Histogram;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Longer latencies count as this one: an hour.
const LATENCY_MAX_MICROSECONDS: u64 = 3_600_000_000;
/// Three digits of a latency are kept.
const DIGITS: u8 = 3;

/// Who works, and for how long.
pub(super) struct Load {
    /// One for each loop.
    pub(super) clients: Vec<Client>,
    /// No piece of work begins after this.
    pub(super) length: Duration,
}

/// What came of it.
pub(super) struct Measured {
    /// In microseconds, one for each piece of work that was done.
    pub(super) latencies: Histogram<u64>,
    /// How many pieces of work failed.
    pub(super) errors: u64,
    /// One of the reasons.
    pub(super) error: Option<ClientError>,
    /// From the first beginning to the last end.
    pub(super) elapsed: Duration,
}

impl Load {
    /// Repeats a piece of work in every loop.
    pub(super) async fn run<W, F>(self, work: W) -> Measured
    where
        W: Fn(Client) -> F + Clone + Send + 'static,
        F: Future<Output = Result<(), ClientError>> + Send + 'static,
    {
        let started = Instant::now();
        let end = started + self.length;
        let mut loops = JoinSet::new();
        for client in self.clients {
            loops.spawn(repeat(client, end, work.clone()));
        }
        let mut total = Measured::nothing();
        for measured in loops.join_all().await {
            total.add(measured);
        }
        total.elapsed = started.elapsed();
        total
    }
}

impl Measured {
    /// How many pieces of work were done.
    pub(super) fn completed(&self) -> u64 {
        self.latencies.len()
    }

    fn nothing() -> Self {
        Self {
            latencies: Histogram::new_with_max(LATENCY_MAX_MICROSECONDS, DIGITS)
                .expect("three digits are at most five, and an hour is more than two"),
            errors: 0,
            error: None,
            elapsed: Duration::ZERO,
        }
    }

    fn note(&mut self, latency: Duration, result: Result<(), ClientError>) {
        match result {
            Ok(()) => {
                let latency = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
                self.latencies.saturating_record(latency);
            }
            Err(error) => {
                self.errors += 1;
                self.error = Some(error);
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.latencies += other.latencies;
        self.errors += other.errors;
        self.error = self.error.take().or(other.error);
    }
}

async fn repeat<W, F>(client: Client, end: Instant, work: W) -> Measured
where
    W: Fn(Client) -> F,
    F: Future<Output = Result<(), ClientError>>,
{
    let mut measured = Measured::nothing();
    loop {
        let began = Instant::now();
        if began >= end {
            return measured;
        }
        let result = work(client.clone()).await;
        measured.note(began.elapsed(), result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_client::{ClientCode, ClientOptions};

    #[tokio::test(start_paused = true)]
    async fn every_loop_works_until_the_end() {
        let client = || Client::connect(ClientOptions::default()).expect("an endpoint");
        let load = Load {
            clients: vec![client(), client()],
            length: Duration::from_secs(1),
        };
        let measured = load
            .run(|_| async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(())
            })
            .await;
        assert_eq!(measured.completed(), 20);
        assert_eq!(measured.errors, 0);
        assert_eq!(measured.elapsed, Duration::from_secs(1));
    }

    #[test]
    fn failures_are_counted_and_one_is_kept() {
        let mut total = Measured::nothing();
        let mut one = Measured::nothing();
        let error = ClientError::new(ClientCode::Timeout, "not now");
        one.note(Duration::from_millis(5), Ok(()));
        one.note(Duration::from_millis(5), Err(error.clone()));
        total.add(one);
        assert_eq!((total.completed(), total.errors), (1, 1));
        assert_eq!(total.error, Some(error));
    }
}
