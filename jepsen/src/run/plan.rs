//! The plan of a run.

use crate::nemesis::Nemesis;
use crate::workload::Workload;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The plan of a run.
pub struct Plan {
    /// The workloads, which run concurrently.
    pub workloads: Vec<Arc<dyn Workload>>,
    /// The nemesis.
    pub nemesis: Box<dyn Nemesis>,
    /// The seed of all random decisions of the harness.
    pub seed: u64,
    /// How long clients work, and how often faults are injected.
    pub pace: Pace,
    /// How soon after healing the cluster must serve.
    pub recovery_max: Duration,
    /// A bug to plant in the nodes, by its name in jepsen/README.md.
    pub bug: Option<String>,
    /// Where history, logs and timeline are kept.
    pub folder: PathBuf,
    /// Keeps them also when every check passes.
    pub keep: bool,
}

/// How long clients work, and how often faults are injected meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long clients work, unless `strikes_max` ends it earlier.
    pub duration: Duration,
    /// The maximum number of faults.
    pub strikes_max: usize,
    /// How long a client retries one call.
    pub call_timeout: Duration,
}

impl Pace {
    /// Faults, one after the other, for this long. Clients give up soon, so that they make many calls.
    #[must_use]
    pub fn storm(duration: Duration) -> Self {
        Self {
            duration,
            strikes_max: usize::MAX,
            call_timeout: Duration::from_secs(2),
        }
    }

    /// One drill, however long it takes, with clients that retry for as long as those of the command line.
    #[must_use]
    pub fn drill() -> Self {
        Self {
            duration: Duration::MAX,
            strikes_max: 1,
            call_timeout: Duration::from_secs(10),
        }
    }
}

impl Plan {
    /// The plan in one line, to repeat it.
    #[must_use]
    pub fn line(&self) -> String {
        let workloads = self.workload_names().join(",");
        let name = self.nemesis.name();
        let what = match self.pace.strikes_max {
            1 => format!("--drill {name}"),
            _ => format!(
                "--nemesis {name} --seconds {}",
                self.pace.duration.as_secs()
            ),
        };
        format!("jepsen: --seed {} --workload {workloads} {what}", self.seed)
    }

    pub(crate) fn workload_names(&self) -> Vec<&'static str> {
        let workloads = self.workloads.iter();
        workloads.map(|workload| workload.name()).collect()
    }

    /// Variables for the nodes.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let bug = self.bug.iter();
        bug.map(|bug| ("FLO_PLANTED_BUG".to_owned(), bug.clone()))
            .collect()
    }
}
