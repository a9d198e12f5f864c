//! A closed loop: each client calls again as soon as it has its response.

use crate::fault::Fault;
use crate::report::Measured;
use clap::Args;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How long a client waits after a failed call, so that it does not hammer a server that is down.
const PAUSE: Duration = Duration::from_millis(50);

/// How many clients, and for how long.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Pace {
    /// How many clients at a time
    #[arg(long, value_name = "C", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) clients: u16,

    /// How long it is measured
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) seconds: u16,

    /// How long it runs before the measurement
    #[arg(long, value_name = "S", default_value_t = 5)]
    pub(crate) warm_up: u16,
}

/// One client.
pub(crate) trait Caller: Send + 'static {
    /// One call, up to its verified response.
    fn call(&mut self) -> impl Future<Output = Result<(), Fault>> + Send;
}

impl Pace {
    /// How many clients at a time.
    pub(crate) fn clients_count(self) -> usize {
        self.clients.into()
    }

    /// Lets every client call until the time is over.
    pub(crate) async fn run<C: Caller>(self, callers: Vec<C>) -> Measured {
        let measured_from = Instant::now() + Duration::from_secs(self.warm_up.into());
        let end = measured_from + Duration::from_secs(self.seconds.into());
        let mut loops = JoinSet::new();
        for caller in callers {
            loops.spawn(repeat(caller, measured_from, end));
        }
        let mut total = Measured::nothing();
        for measured in loops.join_all().await {
            total.add(measured);
        }
        total.elapsed = measured_from.elapsed();
        total
    }
}

async fn repeat<C: Caller>(mut caller: C, measured_from: Instant, end: Instant) -> Measured {
    let mut measured = Measured::nothing();
    loop {
        let began = Instant::now();
        if began >= end {
            return measured;
        }
        match caller.call().await {
            Ok(()) => {
                measured.succeeded += 1;
                if began >= measured_from {
                    measured.record(began.elapsed());
                }
            }
            Err(fault) => {
                measured.fail(fault);
                sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responds after a tenth of a second; the first few times with a fault.
    struct Slow {
        faults: u32,
    }

    impl Caller for Slow {
        async fn call(&mut self) -> Result<(), Fault> {
            sleep(Duration::from_millis(100)).await;
            match self.faults.checked_sub(1) {
                None => Ok(()),
                Some(left) => {
                    self.faults = left;
                    Err(Fault::new("not yet"))
                }
            }
        }
    }

    const PACE: Pace = Pace {
        clients: 2,
        seconds: 1,
        warm_up: 2,
    };

    #[tokio::test(start_paused = true)]
    async fn every_client_calls_until_the_end_and_its_warm_up_is_not_measured() {
        let measured = PACE.run(vec![Slow { faults: 0 }, Slow { faults: 0 }]).await;
        assert_eq!(measured.latencies.len(), 20);
        assert_eq!(measured.succeeded, 60);
        assert_eq!(measured.elapsed, Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_fail_are_counted_and_followed_by_a_pause() {
        let measured = PACE.run(vec![Slow { faults: 2 }]).await;
        assert_eq!(measured.errors, 2);
        assert_eq!(measured.succeeded, 27);
        assert_eq!(measured.error, Some(Fault::new("not yet")));
    }
}
