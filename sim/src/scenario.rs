//! Scenarios: the load, the settings of the replicas, and the faults.

use crate::network::Weather;
use crate::outside::Load;
use flotilla_replica::Tuning;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// After how long without a leader machines stand for election that are far from each other.
const FAR_ELECTION: Duration = Duration::from_millis(1_200);

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// All faults over all kinds of commands.
    Mixed,
    /// Snapshots all the time, overlapping installs, paused followers, heavy load: the
    /// conditions of openraft's issue 2116.
    Snapshots,
    /// A cluster loses its quorum and is replaced by another one at the same addresses.
    Restored,
    /// All faults between machines that are far from each other, with timings to match.
    Far,
    /// Members are drained and undrained while others fail.
    Drained,
}

/// A fault, with its weight among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A node is isolated in both directions.
    Isolate,
    /// Messages between a node and one other are lost in one direction.
    OneWay,
    /// Two nodes do not reach each other, but both reach the third.
    Bridge,
    /// The network is slow or loses messages.
    BadWeather,
    /// A process is killed; what it has written stays.
    Kill,
    /// A machine loses power, and its unsynced writes.
    PowerCut,
    /// All machines lose power at the same time.
    PowerCutOfAll,
    /// The power fails during a write to the log.
    TornWrite,
    /// A process is paused for a while.
    Stop,
    /// A wall clock jumps.
    ClockJump,
    /// A machine's disk and processor are slow.
    SlowMachine,
    /// A write to the log does not return for a while.
    HangingDisk,
    /// The leader transfers leadership.
    Transfer,
    /// A process is asked to stop.
    Shutdown,
    /// A member is drained, and undrained after a while.
    Drain,
}

impl Scenario {
    const ALL: [Self; 5] = [
        Self::Mixed,
        Self::Snapshots,
        Self::Restored,
        Self::Far,
        Self::Drained,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Snapshots => "snapshots",
            Self::Restored => "restored",
            Self::Far => "far",
            Self::Drained => "drained",
        }
    }

    /// The load of the clients and workers.
    pub(crate) fn load(self) -> Load {
        match self {
            Self::Mixed | Self::Restored | Self::Far | Self::Drained => Load {
                clients: 4,
                workers: 3,
                rest_ms_max: 120,
                payload_bytes: 64,
            },
            Self::Snapshots => Load {
                clients: 24,
                workers: 8,
                rest_ms_max: 10,
                payload_bytes: 8 << 10,
            },
        }
    }

    /// The settings of the replicas.
    pub(crate) fn tuning(self) -> Tuning {
        // How long entries take to apply is measured in real time, which must not have an effect here.
        let snapshot_replay = Duration::MAX;
        match self {
            Self::Mixed | Self::Restored | Self::Drained => Tuning {
                snapshot_log_bytes: 64 << 10,
                max_log_bytes: 512 << 10,
                digest_interval: 32,
                upkeep_interval: Duration::from_millis(500),
                install_snapshot_timeout: Duration::from_secs(10),
                snapshot_replay,
                ..Tuning::default()
            },
            Self::Far => Self::Mixed.tuning().with_election(FAR_ELECTION),
            Self::Snapshots => Tuning {
                snapshot_log_bytes: 1 << 10,
                max_log_bytes: 64 << 10,
                digest_interval: 16,
                upkeep_interval: Duration::from_millis(100),
                install_snapshot_timeout: Duration::from_millis(400),
                snapshot_replay,
                ..Tuning::default()
            },
        }
    }

    /// The conditions of the network without faults.
    pub(crate) fn weather(self) -> Weather {
        match self {
            Self::Mixed | Self::Snapshots | Self::Restored | Self::Drained => Weather::USUAL,
            Self::Far => Weather::FAR,
        }
    }

    /// The faults, with their weights: a greater weight means more often.
    pub(crate) fn faults(self) -> &'static [(Fault, u64)] {
        match self {
            Self::Mixed | Self::Far => &[
                (Fault::Isolate, 4),
                (Fault::OneWay, 3),
                (Fault::Bridge, 2),
                (Fault::BadWeather, 3),
                (Fault::Kill, 3),
                (Fault::PowerCut, 4),
                (Fault::PowerCutOfAll, 1),
                (Fault::TornWrite, 3),
                (Fault::Stop, 4),
                (Fault::ClockJump, 2),
                (Fault::SlowMachine, 2),
                (Fault::HangingDisk, 1),
                (Fault::Transfer, 2),
                (Fault::Shutdown, 1),
            ],
            Self::Drained => &[
                (Fault::Drain, 6),
                (Fault::Kill, 2),
                (Fault::PowerCut, 2),
                (Fault::Isolate, 2),
                (Fault::Stop, 2),
                (Fault::Transfer, 2),
            ],
            // The replacement is the only fault.
            Self::Restored => &[],
            Self::Snapshots => &[
                (Fault::Stop, 8),
                (Fault::SlowMachine, 8),
                (Fault::Isolate, 4),
                (Fault::BadWeather, 2),
                (Fault::PowerCut, 1),
                (Fault::Transfer, 1),
            ],
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL
            .into_iter()
            .find(|scenario| scenario.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("expected one of {names}, but got `{name}`")
        })
    }
}
