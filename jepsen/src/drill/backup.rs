//! A backup under load, and a new cluster restored from it.

use crate::nemesis::Nemesis;
use crate::stage::Stage;
use flotilla_tests::{Cluster, Flo, Host, Scratch};
use std::path::Path;
use std::time::Duration;

/// Keys that are set before the backup, and must exist in the new cluster.
const KEYS: usize = 20;

/// Backs up a cluster while it serves, and restores it as a new one that grows to three nodes.
pub(super) struct BackUpAndRestore;

impl Nemesis for BackUpAndRestore {
    fn name(&self) -> &'static str {
        "backup-restore"
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let flo = stage.cluster.flo();
        for number in 0..KEYS {
            drop(flo.text(&["kv", "set", &key(number), &number.to_string()]));
        }
        let follower = stage.followers().into_iter().next().unwrap_or(1);
        let files = Scratch::new();
        let file = files.path("drill.flo");
        let given = stage.cluster.flo_at(follower);
        drop(given.text(&["--timeout", "60s", "cluster", "backup", text(&file)]));
        let restored = restored(&files, &file);
        for number in 0..KEYS {
            let found = restored.flo().text(&["kv", "get", &key(number)]);
            assert_eq!(
                found,
                number.to_string(),
                "key {number} is not in the backup"
            );
        }
        let digest = restored.agreement();
        format!(
            "taken from node {follower}, restored as a new cluster of {:?}, which agree at {}",
            restored.ids(),
            digest.index
        )
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}

/// The cluster restored from the backup, grown to three nodes.
fn restored(files: &Scratch, file: &Path) -> Cluster {
    let mut host = Host::local(1);
    let directory = files.path("restored");
    let peer_address = host.peer_address.to_string();
    let offline = Flo::at("127.0.0.1:1".to_owned());
    drop(offline.text(&["cluster", "verify", text(file)]));
    drop(offline.text(&[
        "cluster",
        "restore",
        text(file),
        "--data-dir",
        text(&directory),
        "--peer-address",
        &peer_address,
    ]));
    host.data_dir = Some(directory);
    let mut cluster = Cluster::on(Scratch::new(), &[host], &[]);
    cluster.await_health();
    for id in [2, 3] {
        cluster.grow(&Host::local(id));
    }
    cluster
}

fn key(number: usize) -> String {
    format!("drill-{number}")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary folder's name is plain")
}
