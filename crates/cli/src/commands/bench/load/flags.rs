//! The flags of every load.

use clap::Args;
use std::time::Duration;

/// Pieces of work that are under way at a time, unless it is said.
const CLIENTS_DEFAULT: u16 = 64;
/// The same at a fixed rate, where it is a bound only: far above what a cluster that keeps up has in hand.
const CLIENTS_DEFAULT_AT_RATE: u16 = 1_024;

/// Nobody waits for more: a year's work for the fastest cluster.
const COUNT_MAX: u64 = 1_000_000_000_000;

/// How a load is shaped.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(in super::super) struct LoadFlags {
    /// How many are under way at a time, each beginning when one before it is done [default: 64]; with --rate, how
    /// many at most [default: 1024]
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=4096))]
    clients: Option<u16>,

    /// Begin so many a second, whether those before are done or not; latencies count from when each was to begin
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,

    /// How many connections the clients share
    #[arg(long, value_name = "K", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,

    /// For how long to measure, in seconds
    #[arg(long, value_name = "S", default_value_t = 10, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,

    /// Measure so many, however long it takes
    #[arg(long, value_name = "N", conflicts_with = "seconds", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=COUNT_MAX))]
    count: Option<u64>,

    /// For how many seconds to work before anything is measured
    #[arg(
        long,
        value_name = "S",
        default_value_t = 2,
        allow_negative_numbers = true
    )]
    warm_up: u16,
}

/// When pieces of work begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Pace {
    /// Whenever one before it is done.
    Closed,
    /// So many a second.
    Open(u32),
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Until {
    /// After this time.
    Passed(Duration),
    /// After so many.
    Done(u64),
}

impl LoadFlags {
    /// So many, one after the other by each client, all of which are measured.
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

    /// How many are under way at a time, at most.
    pub(in super::super) fn clients(&self) -> u16 {
        let default = match self.pace() {
            Pace::Closed => CLIENTS_DEFAULT,
            Pace::Open(_) => CLIENTS_DEFAULT_AT_RATE,
        };
        self.clients.unwrap_or(default)
    }

    /// When pieces of work begin.
    pub(in super::super) fn pace(&self) -> Pace {
        self.rate.map_or(Pace::Closed, Pace::Open)
    }

    /// How many connections the clients share: none of them is left without a client.
    pub(in super::super) fn connections(&self) -> u16 {
        self.connections.min(self.clients())
    }

    /// When to stop.
    pub(in super::super) fn until(&self) -> Until {
        match self.count {
            Some(count) => Until::Done(count),
            None => Until::Passed(Duration::from_secs(self.seconds.into())),
        }
    }

    /// How long to work before anything is measured.
    pub(in super::super) fn warm_up(&self) -> Duration {
        Duration::from_secs(self.warm_up.into())
    }

    /// What is going to happen, for people.
    pub(in super::super) fn text(&self) -> String {
        let clients = self.clients();
        match (self.pace(), self.until()) {
            (Pace::Closed, Until::Passed(length)) => {
                format!("{clients} clients for {} s", length.as_secs())
            }
            (Pace::Closed, Until::Done(count)) => format!("{count} by {clients} clients"),
            (Pace::Open(rate), Until::Passed(length)) => {
                format!("{rate} a second for {} s", length.as_secs())
            }
            (Pace::Open(rate), Until::Done(count)) => format!("{count}, {rate} a second"),
        }
    }
}
