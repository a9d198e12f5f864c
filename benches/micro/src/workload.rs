//! The workloads.

use crate::recording::Recording;
use crate::{steps, waits};

/// How many commands entries hold: one client, a busy cluster, a cluster with a long queue.
pub const ENTRY_COMMANDS: [usize; 3] = [1, 32, 256];

/// Work to be recorded and replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Starts of runs that complete immediately: their only step names an unregistered action. Stage
    /// `start`.
    NoOps,
    /// Runs of three steps with workers: a start, then three reports. Each entry has the workers' offers, so
    /// that the turn that readies a task assigns it. An entry has equally many commands of each of the four stages.
    /// Stage `mixed`.
    Steps,
    /// The same, but all commands of an entry belong to one stage: `start`, `first`, `second` or `third`.
    StepsInTurn,
    /// As [`Workload::StepsInTurn`], then all runs are deleted. Stage `sweep`, with many runs per command.
    Sweeps,
    /// Runs that wait for a signal and get it. Stages `park` and `signal`.
    Signals,
    /// Runs that wait until their timers fire. Stages `park` and `fire`.
    Timers,
}

impl Workload {
    /// Its name in figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoOps => "no-ops",
            Self::Steps | Self::StepsInTurn => "steps",
            Self::Sweeps => "sweeps",
            Self::Signals => "signals",
            Self::Timers => "timers",
        }
    }

    /// The number of runs in a recording: enough for figures, or just enough to show that it works.
    #[must_use]
    pub fn runs(self, entry_commands: usize) -> usize {
        if crate::is_measuring() {
            4_096
        } else {
            entry_commands.max(16)
        }
    }

    /// Executes this many runs, and checks their results.
    ///
    /// # Panics
    /// When a result is wrong.
    #[must_use]
    pub fn record(self, runs: usize, entry_commands: usize) -> Recording {
        match self {
            Self::NoOps => waits::no_ops(runs, entry_commands),
            Self::Steps => steps::mixed(runs, entry_commands),
            Self::StepsInTurn => steps::in_turn(runs, entry_commands),
            Self::Sweeps => steps::swept(runs, entry_commands),
            Self::Signals => waits::signals(runs, entry_commands),
            Self::Timers => waits::timers(runs, entry_commands),
        }
    }
}
