//! The checkers are checked: bugs planted into the nodes, each of which must be found.

use crate::nemesis;
use crate::run::{Pace, Plan, run};
use crate::workload;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a bug may go unfound before the checkers are worth nothing: chance has a part in it.
const TRIES: u64 = 4;
/// How long clients work in one try.
const DURATION: Duration = Duration::from_secs(4);

/// A bug, and what must find it.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Its name, as nodes obey it.
    pub bug: &'static str,
    /// The workload whose checker finds it.
    pub workload: &'static str,
    /// The nemesis under which it shows.
    pub nemesis: &'static str,
}

/// Every bug that nodes can be given.
pub const PLANTED: [Planted; 5] = [
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
        bug: "lost-timer",
        workload: "watch",
        nemesis: "calm",
    },
];

/// A bug that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was found.
    pub planted: Planted,
    /// From the first start of a cluster on.
    pub took: Duration,
    /// What the checker said.
    pub said: String,
}

impl Planted {
    /// Lets it be found; `None` when it is not, in several tries. Evidence is kept in the folder.
    ///
    /// # Panics
    /// When the cluster does not even start.
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
            // Only what the workload's own checker says counts.
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
