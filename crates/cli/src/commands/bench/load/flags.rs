//! The flags that all loads share.

use clap::Args;
use std::time::Duration;

/// The default number of operations in flight in a closed loop.
const CLIENTS_DEFAULT: u16 = 64;
/// The default at a fixed rate, where it is only a limit: far more than a cluster that keeps up has
/// in flight.
const CLIENTS_DEFAULT_AT_RATE: u16 = 1_024;

/// The maximum count: a year's work for the fastest cluster.
const COUNT_MAX: u64 = 1_000_000_000_000;

/// The shape of a load.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(in super::super) struct LoadFlags {
    /// Number of concurrent clients, each with one operation in flight [default: 64]; with --rate,
    /// the maximum [default: 1024]
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=4096))]
    clients: Option<u16>,

    /// Start R operations per second, whether or not earlier ones have finished (open loop);
    /// latencies count from the scheduled start
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,

    /// Number of connections that the clients share
    #[arg(long, value_name = "K", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,

    /// Length of the measurement in seconds
    #[arg(long, value_name = "S", default_value_t = 10, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,

    /// Measure this many operations, however long it takes
    #[arg(long, value_name = "N", conflicts_with = "seconds", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=COUNT_MAX))]
    count: Option<u64>,

    /// Length of the warm-up in seconds; it is not measured
    #[arg(
        long,
        value_name = "S",
        default_value_t = 2,
        allow_negative_numbers = true
    )]
    warm_up: u16,
}

/// When operations begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Pace {
    /// When the previous operation of the client is done (closed loop).
    Closed,
    /// At this rate per second (open loop).
    Open(u32),
}

/// When the measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Until {
    /// After this time.
    Passed(Duration),
    /// After this many operations.
    Done(u64),
}

impl LoadFlags {
    /// A closed loop of this many operations without a warm-up.
    pub(in super::super) fn of_count(count: u64, clients: u16, connections: u16) -> Self {
        Self {
            clients: Some(clients),
            rate: None,
            connections,
            seconds: 0,
            count: Some(count),
            warm_up: 0,
        }
    }

    /// The maximum number of operations in flight.
    pub(in super::super) fn clients(&self) -> u16 {
        let default = match self.pace() {
            Pace::Closed => CLIENTS_DEFAULT,
            Pace::Open(_) => CLIENTS_DEFAULT_AT_RATE,
        };
        self.clients.unwrap_or(default)
    }

    /// When operations begin.
    pub(in super::super) fn pace(&self) -> Pace {
        self.rate.map_or(Pace::Closed, Pace::Open)
    }

    /// The number of shared connections, at most one per client.
    pub(in super::super) fn connections(&self) -> u16 {
        self.connections.min(self.clients())
    }

    /// When the measurement ends.
    pub(in super::super) fn until(&self) -> Until {
        match self.count {
            Some(count) => Until::Done(count),
            None => Until::Passed(Duration::from_secs(self.seconds.into())),
        }
    }

    /// The length of the warm-up.
    pub(in super::super) fn warm_up(&self) -> Duration {
        Duration::from_secs(self.warm_up.into())
    }

    /// A description of the load, for people.
    pub(in super::super) fn text(&self) -> String {
        let clients = self.clients();
        match (self.pace(), self.until()) {
            (Pace::Closed, Until::Passed(length)) => {
                format!("{clients} clients for {} s", length.as_secs())
            }
            (Pace::Closed, Until::Done(count)) => format!("{count} by {clients} clients"),
            (Pace::Open(rate), Until::Passed(length)) => {
                format!("{rate}/s for {} s", length.as_secs())
            }
            (Pace::Open(rate), Until::Done(count)) => format!("{count} at {rate}/s"),
        }
    }
}
