//! Half-dead machines: a disk that hangs, a neighbor that stops in the middle of a snapshot.

use super::arena::Arena;
use super::{Abuse, Needs};
use flotilla_tests::{TIMEOUT, wait_until};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long a disk hangs: longer than a leader keeps leading without it, and shorter than its node waits.
const HANG: Duration = Duration::from_secs(8);

/// The leader's disk hangs.
#[derive(Default)]
pub(super) struct HungDisk {
    /// Ends the hang.
    thawing: Option<JoinHandle<()>>,
}

impl Abuse for HungDisk {
    fn name(&self) -> &'static str {
        "hung-disk"
    }

    fn needs(&self) -> Needs {
        Needs {
            has_freezing_disks: true,
            ..Needs::of_leader()
        }
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let disk = arena.disk(arena.cluster.leader());
        disk.freeze();
        self.thawing = Some(arena.runtime.spawn(async move {
            tokio::time::sleep(HANG).await;
            disk.thaw();
        }));
        format!("the disk of the leader hangs for {} s", HANG.as_secs())
    }

    fn end(&mut self, arena: &mut Arena) {
        if let Some(thawing) = self.thawing.take() {
            let thawed = arena.runtime.block_on(thawing);
            thawed.expect("it only sleeps and runs a command");
        }
        arena.cluster.await_health();
    }
}

/// The leader stops in the middle of sending a snapshot: the connection stays, and nothing more arrives.
#[derive(Default)]
pub(super) struct HalfOpenInstall {
    follower: u64,
    paused: Option<u64>,
}

impl HalfOpenInstall {
    /// Records of the maximum size, so that a snapshot takes a while.
    const RECORDS: usize = 100;
    /// What has arrived of the snapshot when the leader stops, in bytes.
    const PART_BYTES: u64 = 4 << 20;
}

impl Abuse for HalfOpenInstall {
    fn name(&self) -> &'static str {
        "half-open-install"
    }

    fn needs(&self) -> Needs {
        Needs {
            flags: &["--snapshot-log-bytes=1048576", "--max-log-bytes=2097152"],
            ..Needs::of_leader()
        }
    }

    fn prepare(&mut self, arena: &mut Arena) {
        self.follower = arena.cluster.followers()[0];
        arena.cluster.kill(self.follower);
        let flo = arena.cluster.flo();
        let record = "x".repeat((1 << 20) - 64);
        for _ in 0..Self::RECORDS {
            let append = ["stream", "append", "large", "-"];
            let _ = flo.run_with_input(&append, record.as_bytes()).success();
        }
        let leader = arena.cluster.leader();
        let _ = arena.cluster.flo_at(leader).text(&["cluster", "snapshot"]);
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        let leader = arena.cluster.leader();
        let before = folder_bytes(arena.cluster.node(self.follower).data_dir());
        arena.cluster.restart(self.follower);
        wait_until("a part of the snapshot to arrive", TIMEOUT, || {
            let now = folder_bytes(arena.cluster.node(self.follower).data_dir());
            match now > before + Self::PART_BYTES {
                true => Ok(()),
                false => Err(format!("the folder has {now} bytes")),
            }
        });
        arena.cluster.node(leader).pause();
        self.paused = Some(leader);
        "the leader is stopped while it sends a snapshot of 100 MiB".to_owned()
    }

    fn end(&mut self, arena: &mut Arena) {
        if let Some(paused) = self.paused.take() {
            arena.cluster.node(paused).resume();
        }
        arena.cluster.await_health();
    }
}

/// The size of all files below a folder, in bytes.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let sizes = entries.filter_map(Result::ok).map(|entry| {
        // A file may be gone meanwhile.
        match entry.metadata() {
            Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        }
    });
    sizes.sum()
}
