//! What was acknowledged before a release's nodes were stopped, and the addresses of the nodes.

use flotilla_tests::Host;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// What is known about a release's data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The agreed engine version of the members.
    pub(super) engine_version: u32,
    /// The version of their binary.
    pub(super) version: String,
    /// The members.
    pub(super) members: Vec<Member>,
    /// What was acknowledged, by the name of the kind.
    pub(super) acknowledged: BTreeMap<String, Value>,
}

/// A member, whose data is in the folder `node-ID` of the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Member {
    /// Its id.
    pub(super) node_id: u64,
    /// Its address.
    pub(super) ip: Ipv4Addr,
    /// Its first port: clients, then peers, then HTTP.
    pub(super) port: u16,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Panics
    /// When the file is not a manifest.
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes the manifest.
    ///
    /// # Panics
    /// When it cannot be written.
    pub(super) fn write(&self, path: &Path) {
        let text = serde_json::to_string_pretty(self).expect("it contains only plain values");
        let written = fs::write(path, format!("{text}\n"));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl Member {
    /// The member's host.
    pub(super) fn host(&self) -> Host {
        Host::at(self.node_id, self.ip, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let manifest = Manifest {
            engine_version: 2,
            version: "0.1.0".to_owned(),
            members: vec![Member {
                node_id: 1,
                ip: Ipv4Addr::new(127, 77, 0, 1),
                port: 9_700,
            }],
            acknowledged: BTreeMap::from([("keys".to_owned(), json!([{"key": "k"}]))]),
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("engine-2.json");
        manifest.write(&path);
        assert_eq!(Manifest::read(&path), manifest);
    }
}
