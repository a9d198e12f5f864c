//! Tests of the checkers: bugs planted in the nodes, each of which must be found.

use crate::nemesis;
use crate::run::{Pace, Plan, run};
use crate::workload;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many tries a bug gets: whether it shows depends on chance.
const TRIES: u64 = 4;
/// How long clients work in one try.
const DURATION: Duration = Duration::from_secs(4);

/// A bug, and the workload and nemesis that must reveal it.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Its name, as the nodes know it.
    pub bug: &'static str,
    /// The workload whose checker finds it.
    pub workload: &'static str,
    /// The nemesis under which it shows.
    pub nemesis: &'static str,
}

/// Every bug that can be planted.
pub const PLANTED: [Planted; 11] = [
    Planted {
        bug: "ack-before-commit",
        workload: "register",
        nemesis: "kill-leader",
    },
    Planted {
        bug: "double-lease",
        workload: "leases",
        nemesis: "calm",
    },
    Planted {
        bug: "no-dedup",
        workload: "starts",
        nemesis: "calm",
    },
    Planted {
        bug: "stale-read",
        workload: "register",
        nemesis: "partition-leader",
    },
    Planted {
        bug: "lost-actor",
        workload: "tokens",
        nemesis: "calm",
    },
    Planted {
        bug: "lost-timer",
        workload: "watch",
        nemesis: "calm",
    },
    Planted {
        bug: "skipped-event",
        workload: "events",
        nemesis: "calm",
    },
    Planted {
        bug: "wide-limit",
        workload: "concurrency",
        nemesis: "calm",
    },
    Planted {
        bug: "lost-compensation",
        workload: "compensations",
        nemesis: "calm",
    },
    Planted {
        bug: "late-undo",
        workload: "scopes",
        nemesis: "calm",
    },
    Planted {
        bug: "lost-merge",
        workload: "loops",
        nemesis: "calm",
    },
];

/// A bug that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The bug.
    pub planted: Planted,
    /// The time from the first start of a cluster.
    pub took: Duration,
    /// The violation that the checker reported.
    pub said: String,
}

impl Planted {
    /// Tries to find it; `None` if several tries miss it. History and logs are kept in the folder.
    ///
    /// # Panics
    /// When the cluster does not start.
    #[must_use]
    pub fn find(self, folder: &Path) -> Option<Found> {
        let started = Instant::now();
        let all = || workload::all().into_iter();
        (1..=TRIES).find_map(|seed| {
            let report = run(Plan {
                workloads: all().filter(|one| one.name() == self.workload).collect(),
                nemesis: nemesis::named(self.nemesis).expect("a nemesis of the README"),
                seed,
                pace: Pace::storm(DURATION),
                recovery_max: Duration::from_secs(60),
                bug: Some(self.bug.to_owned()),
                folder: folder.join(format!("{}-{seed}", self.bug)),
                keep: false,
            });
            // Only the workload's own checker counts.
            let own = format!("{}: ", self.workload);
            let mut violations = report.violations.into_iter();
            let found = violations.find(|one| one.0.starts_with(&own))?;
            Some(Found {
                planted: self,
                took: started.elapsed(),
                said: found.0,
            })
        })
    }
}
