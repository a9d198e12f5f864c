//! The data of a release: that of a cluster of three, and what had been acknowledged.
//!
//! For each engine version there is an archive and, beside it, a manifest. The release that introduces the version
//! records them with `cargo xtask record-release-data`, and they never change afterwards: this build must serve
//! exactly what that release has written. Nodes always listen on the same loopback addresses, since members know
//! each other by them.

mod archive;
mod legacy;
mod manifest;
mod recording;
pub(crate) mod versions;

pub use recording::record;

pub(crate) use legacy::Site;

use self::manifest::Manifest;
use flotilla_tests::{Host, Scratch};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The two files of a release are named after its engine version, with these suffixes.
const ARCHIVE: &str = "tar.gz";
const MANIFEST: &str = "json";
/// The maximum size of an archive, which every clone contains for good.
const ARCHIVE_BYTES_MAX: u64 = 300 << 10;

/// The data of a release.
pub(crate) struct Release {
    manifest: Manifest,
    archive: PathBuf,
    /// Owns the folder of an archive that was recorded for this run only.
    _scratch: Option<Scratch>,
}

impl Release {
    /// The newest release with an older engine version than this build's, or else with the same. If there are no
    /// recordings, as before the first release, this build makes one first.
    ///
    /// # Panics
    /// When the cluster of such a recording does not behave as expected.
    pub(crate) fn previous() -> Self {
        let recorded = recorded(&folder());
        let known: Vec<u32> = recorded.keys().copied().collect();
        match previous(&known, versions::of_this_build()) {
            Some(version) => Self::read(&recorded[&version]),
            None => recording::make_for_now(),
        }
    }

    /// The release with this manifest.
    fn read(manifest: &Path) -> Self {
        Self {
            archive: manifest.with_extension(ARCHIVE),
            manifest: Manifest::read(manifest),
            _scratch: None,
        }
    }

    /// The agreed engine version of its members.
    pub(crate) fn engine_version(&self) -> u32 {
        self.manifest.engine_version
    }

    /// Its version, as text.
    pub(crate) fn version(&self) -> &str {
        &self.manifest.version
    }

    /// The host of a member, which must be the same again.
    ///
    /// # Panics
    /// When there is no member with this id.
    pub(crate) fn host(&self, id: u64) -> Host {
        let mut hosts = self.hosts().into_iter();
        let host = hosts.find(|host| host.node_id == id);
        host.unwrap_or_else(|| panic!("expected a member {id} in {:?}", self.manifest.members))
    }

    fn hosts(&self) -> Vec<Host> {
        let members = self.manifest.members.iter();
        members.map(manifest::Member::host).collect()
    }

    /// Copies the members' data into a cluster's folder, where its nodes look for it.
    ///
    /// # Panics
    /// When that is not possible.
    pub(crate) fn unpack(&self, folder: &Path) {
        archive::unpack(&self.archive, folder);
    }

    /// Finds everything that was acknowledged, resumes open work until it ends, and describes it.
    ///
    /// # Panics
    /// When something is missing, or does not resume.
    pub(crate) fn resume(&self, site: &Site) -> String {
        for (name, acknowledged) in &self.manifest.acknowledged {
            let legacy = legacy::named(name);
            let legacy = legacy.unwrap_or_else(|| panic!("expected no legacy `{name}`"));
            legacy.resume(site, acknowledged);
        }
        let names: Vec<&str> = self
            .manifest
            .acknowledged
            .keys()
            .map(String::as_str)
            .collect();
        names.join(", ")
    }
}

/// The engine version from which this build is upgraded.
fn previous(recorded: &[u32], build: u32) -> Option<u32> {
    let known = recorded.iter().copied().filter(|&version| version <= build);
    known.max_by_key(|&version| (version < build, version))
}

/// The manifests of a folder, by engine version.
fn recorded(folder: &Path) -> BTreeMap<u32, PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let version = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let (version, ending) = name.strip_prefix("engine-")?.split_once('.')?;
        version.parse().ok().filter(|_| ending == MANIFEST)
    };
    paths
        .filter_map(|path| Some((version(&path)?, path)))
        .collect()
}

/// The project's folder of recorded releases. Cargo sets at run time which clone it serves; the compiled-in
/// path may be that of another clone (ADR 0004).
fn folder() -> PathBuf {
    let member = env::var_os("CARGO_MANIFEST_DIR");
    let member = member.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&member).parent();
    let root = root.expect("a package is a folder of the repository");
    root.join("jepsen/testdata/releases")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_older_version_goes_before_the_same_and_a_newer_one_is_never_taken() {
        assert_eq!(previous(&[2, 3, 4], 4), Some(3));
        assert_eq!(previous(&[2, 3], 4), Some(3));
        assert_eq!(previous(&[2, 3], 2), Some(2));
        assert_eq!(previous(&[3], 2), None);
        assert_eq!(previous(&[], 2), None);
    }

    #[test]
    fn manifests_are_found_by_their_names() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in [
            "engine-2.json",
            "engine-2.tar.gz",
            "engine-x.json",
            "README.md",
        ] {
            fs::write(folder.path().join(name), "").expect("an empty folder");
        }
        let found = recorded(folder.path());
        let expected = BTreeMap::from([(2, folder.path().join("engine-2.json"))]);
        assert_eq!(found, expected);
        assert_eq!(recorded(&folder.path().join("none")), BTreeMap::new());
    }

    #[test]
    fn each_release_of_the_project_has_an_archive_and_a_manifest_that_this_build_can_judge() {
        for (version, manifest) in recorded(&folder()) {
            let release = Release::read(&manifest);
            assert_eq!(release.engine_version(), version);
            let size = fs::metadata(&release.archive).map(|found| found.len());
            let size = size.expect("an archive beside the manifest");
            assert!(size <= ARCHIVE_BYTES_MAX, "{size} bytes");
            for name in release.manifest.acknowledged.keys() {
                assert!(legacy::named(name).is_some(), "{name}");
            }
        }
    }
}
