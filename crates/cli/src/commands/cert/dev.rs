//! `flo cert dev`.

use super::authority::{self, Authority, Holder, Pair};
use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use serde::Serialize;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const NODE: (&str, &str) = ("node.pem", "node-key.pem");
const CLIENT: (&str, &str) = ("client.pem", "client-key.pem");
/// How nodes and clients on this machine reach the nodes.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Only the owner may read keys.
const KEY_MODE: u32 = 0o600;
const CERT_MODE: u32 = 0o644;

const EXAMPLES: &str = "\
Examples:
  flo cert dev certs
  flo cert dev certs --host flo-1.example.com --host 10.0.0.1
  flo cert dev certs --client till.shop.example

The files:
  ca.pem, ca-key.pem          the authority; kept if they exist
  node.pem, node-key.pem      for nodes; all nodes may share them
  client.pem, client-key.pem  for clients and workers

Anyone with ca-key.pem can make certificates that the cluster trusts: do not copy it to the nodes.";

/// Make a certificate authority and certificates to try TLS with
///
/// A second run keeps the authority and renews the certificates; nodes load the new ones within
/// seconds, clients and workers at their next connection, all without a restart.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dev {
    /// Directory for the files; created if missing
    dir: PathBuf,

    /// Name or IP address of a node, in addition to localhost, 127.0.0.1 and ::1; repeatable
    #[arg(long, value_name = "NAME|IP", value_delimiter = ',')]
    host: Vec<String>,

    /// Name in the client's certificate, which `flo auth bind cert:dns:NAME` gives rights
    #[arg(long, value_name = "NAME", default_value = "client")]
    client: String,

    /// Validity of the certificates in days
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=3650))]
    days: u16,
}

/// The files that were written.
#[derive(Debug, Serialize)]
struct MadeView {
    ca: PathBuf,
    /// Whether the authority is new.
    ca_created: bool,
    node: PathBuf,
    node_key: PathBuf,
    client: PathBuf,
    client_key: PathBuf,
    /// The name in the client's certificate.
    client_name: String,
    hosts: Vec<String>,
    days: u16,
}

impl Dev {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let dir = &self.dir;
        fs::create_dir_all(dir).map_err(|error| not_made(dir, &error))?;
        let kept = Authority::kept(dir)?;
        let ca_created = kept.is_none();
        let hosts = hosts(&self.host);
        let authority = match kept {
            Some(authority) => authority,
            None => {
                let (authority, pair) = Authority::new()?;
                put(dir, (authority::CERT, authority::KEY), &pair)?;
                authority
            }
        };
        let node = Holder {
            name: "Flotilla node",
            hosts: hosts.clone(),
            usages: vec![ServerAuth, ClientAuth],
        };
        let client = Holder {
            name: "Flotilla client",
            hosts: vec![self.client.clone()],
            usages: vec![ClientAuth],
        };
        // Both certificates are made before the first is written.
        let (node, client) = (
            authority.sign(node, self.days)?,
            authority.sign(client, self.days)?,
        );
        put(dir, NODE, &node)?;
        put(dir, CLIENT, &client)?;
        let view = MadeView {
            ca: dir.join(authority::CERT),
            ca_created,
            node: dir.join(NODE.0),
            node_key: dir.join(NODE.1),
            client: dir.join(CLIENT.0),
            client_key: dir.join(CLIENT.1),
            client_name: self.client,
            hosts,
            days: self.days,
        };
        session.output.value(&view, MadeView::text)
    }
}

impl MadeView {
    fn text(&self) -> String {
        let authority = if self.ca_created { "new" } else { "kept" };
        let shown = |path: &Path| path.display().to_string();
        let (ca, node, node_key) = (shown(&self.ca), shown(&self.node), shown(&self.node_key));
        let (client, client_key) = (shown(&self.client), shown(&self.client_key));
        format!(
            "{ca}: the authority, {authority}\n\
             {node}, {node_key}: for nodes at {}, {} days\n\
             {client}, {client_key}: for the client cert:dns:{}, {} days\n\
             a node:\n  \
             flo server --tls-cert {node} --tls-key {node_key} --tls-ca {ca}\n\
             a client:\n  \
             flo cluster health --tls-cert {client} --tls-key {client_key} --tls-ca {ca}",
            self.hosts.join(", "),
            self.days,
            self.client_name,
            self.days,
        )
    }
}

/// All host names of a node, without duplicates.
fn hosts(given: &[String]) -> Vec<String> {
    let mut hosts: Vec<String> = LOCAL.map(ToOwned::to_owned).to_vec();
    for host in given {
        if !hosts.contains(host) {
            hosts.push(host.clone());
        }
    }
    hosts
}

fn put(dir: &Path, names: (&str, &str), pair: &Pair) -> Result<(), Failure> {
    replace(&dir.join(names.1), &pair.key, KEY_MODE)?;
    replace(&dir.join(names.0), &pair.cert, CERT_MODE)
}

/// Writes a temporary file and renames it, so that a node never reads a partial file.
fn replace(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let beside = path.with_extension("new");
    let written = || -> io::Result<()> {
        // A leftover file may be readable by others.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    written().map_err(|error| not_made(path, &error))
}

fn not_made(path: &Path, error: &io::Error) -> Failure {
    let message = format!("expected to write {}, but {error}", path.display());
    Failure::new(Code::CertificateCreationFailed, message)
}
