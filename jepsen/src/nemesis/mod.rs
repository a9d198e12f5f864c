//! Faults that are injected while clients work.

mod churn;
mod clock;
mod combined;
mod disk;
mod foreign;
mod kill;
mod links;
mod partition;
mod pause;
mod rolling;
mod snapshot;
mod torn;

pub(crate) use disk::{LEFT_BYTES, reserving_nodes};

use crate::network::Wanted;
use crate::stage::Stage;
use std::time::Duration;

/// Injects faults, one after the other, and heals them.
pub trait Nemesis: Send {
    /// Its name in histories and on the command line.
    fn name(&self) -> &'static str;

    /// What the stage must provide.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Injects a fault, and describes it.
    fn strike(&mut self, stage: &mut Stage) -> String;

    /// How long the fault lasts.
    fn hold(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// Heals the fault. The run restarts nodes that do not run.
    fn heal(&mut self, stage: &mut Stage);

    /// Whether a node may stop with an error under this fault.
    fn may_end_nodes(&self) -> bool {
        false
    }
}

/// What a nemesis needs from the stage.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The number of nodes.
    pub nodes: u64,
    /// The required capability of the network.
    pub network: Wanted,
    /// Whether disks are small enough to be filled.
    pub small_disks: bool,
    /// Whether nodes and clients use TLS, each with separate certificates.
    pub has_certificates: bool,
    /// Whether the nodes start with the data of the previous release, and the nemesis starts the last one.
    pub has_release_data: bool,
    /// Further flags for the nodes.
    pub flags: &'static [&'static str],
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            nodes: 3,
            network: Wanted::Plain,
            small_disks: false,
            has_certificates: false,
            has_release_data: false,
            flags: &[],
        }
    }
}

/// No fault: the behavior of a healthy cluster.
struct Calm;

impl Nemesis for Calm {
    fn name(&self) -> &'static str {
        "calm"
    }

    fn strike(&mut self, _stage: &mut Stage) -> String {
        "nothing".to_owned()
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}

/// Restarts all nodes, one after the other.
pub(crate) fn rolling_restart() -> Box<dyn Nemesis> {
    Box::new(rolling::RollingRestart)
}

/// Every nemesis.
#[must_use]
pub fn all() -> Vec<Box<dyn Nemesis>> {
    vec![
        Box::new(Calm),
        Box::new(kill::Kill::leader()),
        Box::new(kill::Kill::follower()),
        Box::new(kill::Kill::all()),
        Box::new(pause::Pause::leader()),
        Box::new(pause::Pause::follower()),
        Box::new(partition::Partition::leader()),
        Box::new(partition::Partition::ring()),
        Box::new(partition::Partition::one_way()),
        Box::new(partition::Partition::bridge()),
        Box::new(links::Links::slow()),
        Box::new(links::Links::lossy()),
        Box::new(clock::Clock::jump()),
        Box::new(clock::Clock::drift()),
        Box::new(disk::FullDisk::default()),
        Box::new(disk::LowDisk::default()),
        Box::new(disk::SlowDisk::default()),
        Box::new(torn::TornWrite::default()),
        Box::new(rolling::RollingRestart),
        Box::new(churn::Churn),
        Box::new(snapshot::SnapshotInstall::default()),
        Box::new(combined::Combined::default()),
        Box::new(foreign::ForeignCluster::default()),
    ]
}

/// The nemesis of this name.
#[must_use]
pub fn named(name: &str) -> Option<Box<dyn Nemesis>> {
    all().into_iter().find(|nemesis| nemesis.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_lists_each_nemesis() {
        let readme = include_str!("../../README.md");
        let (_, section) = readme.split_once("## Nemeses").expect("a section");
        let (table, _) = section.split_once("\n## ").expect("a next section");
        let names = table.lines().filter(|line| line.starts_with("| "));
        let names: String = names.filter_map(|line| line.split('|').nth(1)).collect();
        for nemesis in all() {
            let name = format!("`{}`", nemesis.name());
            assert!(names.contains(&name), "{name}");
        }
    }
}
