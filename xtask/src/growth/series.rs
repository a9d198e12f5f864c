//! The series: each one makes a section of the page.

use anyhow::Result;

use super::bench::Bench;
use super::section::Section;
use super::{active, clients, idle, long_runs, loops, open_runs, payloads, rates, retention};

/// A series that can be selected with `--only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    /// Rising numbers of clients.
    Clients,
    /// Rising payload sizes.
    Payloads,
    /// Rising numbers of steps.
    LongRuns,
    /// Rising numbers of items.
    Loops,
    /// Rising numbers of active steps.
    Active,
    /// Rising numbers of open runs.
    OpenRuns,
    /// Runs that expire while others begin.
    Retention,
    /// Rising rates.
    Rates,
    /// An idle cluster.
    Idle,
}

impl Series {
    /// All series, in the order in which they are measured and shown.
    pub(super) const ALL: [Self; 9] = [
        Self::Clients,
        Self::Payloads,
        Self::LongRuns,
        Self::Loops,
        Self::Active,
        Self::OpenRuns,
        Self::Retention,
        Self::Rates,
        Self::Idle,
    ];

    /// Its name on the command line and in the names of its figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Payloads => "payloads",
            Self::LongRuns => "long-runs",
            Self::Loops => "loops",
            Self::Active => "active",
            Self::OpenRuns => "open-runs",
            Self::Retention => "retention",
            Self::Rates => "rates",
            Self::Idle => "idle",
        }
    }

    /// The heading of its section.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Clients => "More clients",
            Self::Payloads => "Larger payloads",
            Self::LongRuns => "Longer runs",
            Self::Loops => "Longer loops",
            Self::Active => "More active steps",
            Self::OpenRuns => "More open runs",
            Self::Retention => "Runs that expire under load",
            Self::Rates => "Rates below the peak",
            Self::Idle => "Idle",
        }
    }

    /// Measures the series.
    ///
    /// # Errors
    /// If a cluster does not start or serve, or a load fails.
    pub(super) fn measure(self, bench: &Bench<'_>) -> Result<Section> {
        match self {
            Self::Clients => clients::measure(bench),
            Self::Payloads => payloads::measure(bench),
            Self::LongRuns => long_runs::measure(bench),
            Self::Loops => loops::measure(bench),
            Self::Active => active::measure(bench),
            Self::OpenRuns => open_runs::measure(bench),
            Self::Retention => retention::measure(bench),
            Self::Rates => rates::measure(bench),
            Self::Idle => idle::measure(bench),
        }
    }
}
