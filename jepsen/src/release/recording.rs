//! Recording what a release leaves behind.

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
/// Addresses of loopback that nobody else is likely to use; they are part of the data.
const NETWORK: [u8; 3] = [127, 77, 0];
const PORT: u16 = 9_700;
/// After so many kinds a member makes a snapshot, so that its state has to be read as well as its log.
const SNAPSHOT_AFTER: usize = 2;

/// Records what the binary under test leaves behind, in this folder, once it has served it again, and returns the
/// manifest's path.
///
/// # Errors
/// When something is recorded already for its engine version, or the folder cannot be written.
///
/// # Panics
/// When the cluster does not do as it should, or its data is too large.
pub fn record(folder: &Path) -> Result<PathBuf, String> {
    let files = Scratch::new();
    let release = make(files.path("release").with_extension(ARCHIVE));
    let version = release.engine_version();
    let manifest = folder.join(format!("engine-{version}.{MANIFEST}"));
    if manifest.exists() {
        return Err(format!(
            "expected nothing of engine version {version}, but {} is there: what a release left is never changed",
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

/// Has three members leave something of every kind, and packs their data.
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

/// What this build leaves behind, for one run.
pub(super) fn make_for_now() -> Release {
    let scratch = Scratch::new();
    let release = make(scratch.path("release").with_extension(ARCHIVE));
    Release {
        _scratch: Some(scratch),
        ..release
    }
}

/// Leaves something of every kind.
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

/// Stops all members in good order but the last, which is killed: whoever starts it again finds little more than its
/// log, and what it makes of that has to be what the others have.
fn end(cluster: &mut Cluster) {
    let ids = cluster.ids();
    let (last, others) = ids.split_last().expect("a cluster has members");
    for &id in others {
        let ended = cluster.node_mut(id).stop();
        assert!(ended.success(), "node {id} ended with {ended}");
    }
    cluster.kill(*last);
}

/// Serves what was recorded with the binary that has written it: data that it does not take up is good for nothing.
fn rehearse(release: &Release) {
    let scratch = Scratch::new();
    release.unpack(&scratch.path(""));
    let cluster = Cluster::on(scratch, &release.hosts(), &[]);
    cluster.await_health();
    let site = Site {
        flo: cluster.flo(),
        scratch: cluster.scratch(),
    };
    drop(release.take_up(&site));
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
