//! Certificates made by `flo cert dev`.

use crate::flo::Flo;
use std::fs;
use std::path::{Path, PathBuf};

/// The certificate files of a node or a client.
const OF_A_MACHINE: [&str; 5] = [
    "ca.pem",
    "node.pem",
    "node-key.pem",
    "client.pem",
    "client-key.pem",
];

/// A folder of `flo cert dev`: an authority, and certificates for nodes and for clients.
#[derive(Clone, Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes certificates in a folder; an existing authority there is used again.
    #[must_use]
    pub fn make(folder: PathBuf) -> Self {
        let text = folder.to_str().expect("a temporary folder's name is UTF-8");
        // Calls no node.
        drop(Flo::at("127.0.0.1:1").text(&["cert", "dev", text]));
        Self { folder }
    }

    /// A copy in another folder, as on another machine: without the authority's key.
    ///
    /// # Panics
    /// When they cannot be written.
    #[must_use]
    pub fn copied_to(&self, folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).expect("a folder in the test's own folder");
        let copy = Self { folder };
        copy.replace(&OF_A_MACHINE, self);
        copy
    }

    /// Puts the client's certificate and key into one file, so that both change at the same time, and returns its path,
    /// which is always the same.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn join_client(&self) -> PathBuf {
        let both = ["client.pem", "client-key.pem"].map(|name| read(&self.path(name)));
        let joined = self.path("client-joined.pem");
        put(&joined, &both.concat());
        joined
    }

    /// One of its files.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Replaces these files by those of another folder.
    ///
    /// # Panics
    /// When they cannot be written.
    pub fn replace(&self, names: &[&str], other: &Self) {
        for name in names {
            put(&self.path(name), &read(&other.path(name)));
        }
    }

    /// Trusts the authority of another folder, too.
    ///
    /// # Panics
    /// When its file cannot be written.
    pub fn trust(&self, other: &Self) {
        let bundle = [&self.path("ca.pem"), &other.path("ca.pem")].map(|path| read(path));
        put(&self.path("ca.pem"), &bundle.concat());
    }

    /// The flags of a node that uses them.
    pub(crate) fn of_a_node(&self) -> [(&'static str, PathBuf); 3] {
        self.variables("node.pem", "node-key.pem")
    }

    /// The flags of a client that uses them.
    pub(crate) fn of_a_client(&self) -> [(&'static str, PathBuf); 3] {
        self.variables("client.pem", "client-key.pem")
    }

    fn variables(&self, cert: &str, key: &str) -> [(&'static str, PathBuf); 3] {
        [
            ("FLO_TLS_CA", self.path("ca.pem")),
            ("FLO_TLS_CERT", self.path(cert)),
            ("FLO_TLS_KEY", self.path(key)),
        ]
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file that `flo cert dev` has made")
}

/// Replaced by a rename: a concurrent reader finds the old file or the new one.
fn put(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).expect("a file in the test's own folder");
    fs::rename(&beside, path).expect("a file in the test's own folder");
}
