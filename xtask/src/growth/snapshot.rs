//! Snapshots on request.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cluster::{Cluster, NodeId};

/// The maximum duration of a snapshot, as an option of `flo`.
const LIMIT: &str = "10m";

/// A snapshot that a node has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// How long it took, as seen by the caller.
    pub(super) took: Duration,
    /// The size of the node's snapshot folder; it shares many files with the state.
    pub(super) bytes: u64,
}

impl Snapshot {
    /// Lets a node make a snapshot, and measures it.
    ///
    /// # Errors
    /// If the node fails to make one.
    pub(super) fn make(cluster: &Cluster, node_id: NodeId) -> Result<Self> {
        let took = make(cluster, node_id)?;
        let bytes = size(&cluster.data_folder(node_id).join("snapshots"))?;
        Ok(Self { took, bytes })
    }
}

/// Lets a node make a snapshot, and returns how long it took.
///
/// # Errors
/// If the node fails to make one.
pub(super) fn make(cluster: &Cluster, node_id: NodeId) -> Result<Duration> {
    let node = node_id.to_string();
    let began = Instant::now();
    let call = ["cluster", "snapshot", "--node", &node, "--timeout", LIMIT];
    cluster.client().object(&call)?;
    Ok(began.elapsed())
}

/// The total size of the files below a folder. Files that are removed meanwhile do not count.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    let entries = fs::read_dir(folder);
    let entries = entries.with_context(|| format!("expected a folder {}", folder.display()))?;
    let mut folders = vec![entries];
    while let Some(entries) = folders.pop() {
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.extend(fs::read_dir(entry.path())),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_all_folders_count() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("9")).unwrap();
        fs::write(folder.path().join("9/000004.sst"), [0; 70]).unwrap();
        fs::write(folder.path().join("CURRENT"), [0; 7]).unwrap();
        assert_eq!(size(folder.path()).unwrap(), 77);
        assert!(size(&folder.path().join("none")).is_err());
    }
}
