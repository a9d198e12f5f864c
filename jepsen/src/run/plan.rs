//! What is to be run.

use crate::nemesis::Nemesis;
use crate::workload::Workload;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What is to be run.
pub struct Plan {
    /// What clients do, all of it at a time.
    pub workloads: Vec<Arc<dyn Workload>>,
    /// What goes wrong.
    pub nemesis: Box<dyn Nemesis>,
    /// Decides everything that is left to chance here.
    pub seed: u64,
    /// For how long, and how often.
    pub pace: Pace,
    /// How soon after healing the cluster must serve.
    pub recovery_max: Duration,
    /// A bug to plant into the nodes, by the name in jepsen/README.md.
    pub bug: Option<String>,
    /// Where the evidence is kept.
    pub folder: PathBuf,
    /// Keeps the evidence also when nothing is wrong.
    pub keep: bool,
}

/// For how long clients work, and how often something happens meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long clients work, unless `strikes_max` ends it before.
    pub duration: Duration,
    /// How often something happens at most.
    pub strikes_max: usize,
    /// How long a client goes on with one call.
    pub call_timeout: Duration,
}

impl Pace {
    /// Faults, one after the other, for so long. Clients give up soon, so that they have much to tell.
    #[must_use]
    pub fn storm(duration: Duration) -> Self {
        Self {
            duration,
            strikes_max: usize::MAX,
            call_timeout: Duration::from_secs(2),
        }
    }

    /// One drill, however long it takes, with clients as patient as those of the command line are.
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
    /// All of it in one line, to be repeated.
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
