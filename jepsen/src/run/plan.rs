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
    /// How long clients work.
    pub duration: Duration,
    /// How soon after healing the cluster must serve.
    pub recovery_max: Duration,
    /// A bug to plant into the nodes, by the name in jepsen/README.md.
    pub bug: Option<String>,
    /// Where the evidence is kept.
    pub folder: PathBuf,
    /// Keeps the evidence also when nothing is wrong.
    pub keep: bool,
}

impl Plan {
    /// All of it in one line, to be repeated.
    #[must_use]
    pub fn line(&self) -> String {
        let workloads = self.workload_names().join(",");
        format!(
            "jepsen: --seed {} --workload {workloads} --nemesis {} --seconds {}",
            self.seed,
            self.nemesis.name(),
            self.duration.as_secs()
        )
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
