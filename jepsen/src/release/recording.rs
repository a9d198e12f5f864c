//! Records the data of a release.

use super::legacy::{self, Site};
use super::manifest::{Manifest, Member};
use super::versions;
use super::{ARCHIVE, ARCHIVE_BYTES_MAX, MANIFEST, Release, archive};
use flotilla_tests::{Cluster, Host, Scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

const MEMBERS: u8 = 3;
/// Loopback addresses that other programs are unlikely to use; they are part of the data.
const NETWORK: [u8; 3] = [127, 77, 0];
const PORT: u16 = 9_700;
/// After this many kinds a member makes a snapshot, so that both its state and its log must be read.
const SNAPSHOT_AFTER: usize = 2;

/// Records the data of the binary under test in this folder, after serving it once more, and returns the
/// manifest's path.
///
/// # Errors
/// When there is a recording for its engine version already, or the folder cannot be written.
///
/// # Panics
/// When the cluster does not behave as expected, or its data is too large.
pub fn record(folder: &Path) -> Result<PathBuf, String> {
    let files = Scratch::new();
    let release = make(files.path("release").with_extension(ARCHIVE));
    let version = release.engine_version();
    let manifest = folder.join(format!("engine-{version}.{MANIFEST}"));
    if manifest.exists() {
        return Err(format!(
            "expected no recording of engine version {version}, but {} exists: recordings never change",
            manifest.display()
        ));
    }
    rehearse(&release);
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::copy(&release.archive, manifest.with_extension(ARCHIVE)));
    written.map_err(|error| format!("{}: {error}", folder.display()))?;
    release.manifest.write(&manifest);
    Ok(manifest)
}

/// Lets three members store data of every kind, and packs it.
fn make(archive: PathBuf) -> Release {
    let members: Vec<Member> = (1..=MEMBERS).map(member).collect();
    let hosts: Vec<Host> = members.iter().map(Member::host).collect();
    let mut cluster = Cluster::on(Scratch::new(), &hosts, &[]);
    cluster.await_health();
    let versions = versions::await_settled(&cluster.endpoints());
    let acknowledged = leave_all(&cluster);
    end(&mut cluster);
    let ids = cluster.ids().into_iter();
    let names: Vec<String> = ids.map(|id| format!("node-{id}")).collect();
    archive::pack(&cluster.scratch().path(""), &names, &archive);
    let size = fs::metadata(&archive).map_or(0, |packed| packed.len());
    assert!(size <= ARCHIVE_BYTES_MAX, "{size} bytes are too many");
    let manifest = Manifest {
        engine_version: versions.agreed,
        version: versions.binary,
        members,
        acknowledged,
    };
    Release {
        manifest,
        archive,
        _scratch: None,
    }
}

/// Data of this build, for one run.
pub(super) fn make_for_now() -> Release {
    let scratch = Scratch::new();
    let release = make(scratch.path("release").with_extension(ARCHIVE));
    Release {
        _scratch: Some(scratch),
        ..release
    }
}

/// Stores data of every kind.
fn leave_all(cluster: &Cluster) -> BTreeMap<String, Value> {
    let site = Site {
        flo: cluster.flo(),
        scratch: cluster.scratch(),
    };
    let mut acknowledged = BTreeMap::new();
    for (number, legacy) in legacy::all().iter().enumerate() {
        if number == SNAPSHOT_AFTER {
            drop(site.flo.text(&["cluster", "snapshot", "--node", "1"]));
        }
        acknowledged.insert(legacy.name().to_owned(), legacy.leave(&site));
    }
    acknowledged
}

/// Stops all members gracefully except the last, which is killed: on restart it finds little more than its
/// log, and replaying that must give the same state as on the others.
fn end(cluster: &mut Cluster) {
    let ids = cluster.ids();
    let (last, others) = ids.split_last().expect("a cluster has members");
    for &id in others {
        let ended = cluster.node_mut(id).stop();
        assert!(ended.success(), "node {id} ended with {ended}");
    }
    cluster.kill(*last);
}

/// Serves the recording with the binary that has written it: data that it does not resume is useless.
fn rehearse(release: &Release) {
    let scratch = Scratch::new();
    release.unpack(&scratch.path(""));
    let cluster = Cluster::on(scratch, &release.hosts(), &[]);
    cluster.await_health();
    let site = Site {
        flo: cluster.flo(),
        scratch: cluster.scratch(),
    };
    drop(release.resume(&site));
    let _ = cluster.agreement();
}

fn member(number: u8) -> Member {
    let [first, second, third] = NETWORK;
    Member {
        node_id: number.into(),
        ip: Ipv4Addr::new(first, second, third, number),
        port: PORT,
    }
}
