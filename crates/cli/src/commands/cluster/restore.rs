//! `flo cluster restore`.

use super::backup_file::{Watch, buffered, invalid, open};
use super::blocking::failed;
use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_server::backup::{RestoreError, RestoredMember, restore};
use serde::Serialize;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  flo cluster restore monday.flo --data-dir ./flo-data
  flo cluster restore monday.flo --data-dir /var/lib/flo --peer-address 10.0.0.1:9001
  flo server --node-id 1 --data-dir ./flo-data

Exit codes: 2 FILE is damaged or not a backup, 3 DIR is not empty.";

/// Make the data directory of a new cluster from a backup
///
/// Works without a cluster and does not change one: the new cluster has a new id and one member.
/// Start a server on the directory and let other nodes join it. FILE is verified while it is read;
/// a failed restore leaves nothing behind.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Restore {
    /// File written by `flo cluster backup`
    file: PathBuf,

    /// Directory to create; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,

    /// Node id of the new cluster's only member
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    node_id: u64,

    /// Address for joining nodes: its --peer-listen, as they reach it
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9001")]
    peer_address: String,

    /// Address for clients
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000")]
    advertise: String,
}

#[derive(Debug, Serialize)]
struct RestoredView {
    data_dir: String,
    node_id: u64,
    /// The id of the new cluster.
    cluster_id: String,
    /// The id of the cluster that was backed up.
    origin_cluster_id: String,
    index: u64,
    row_count: u64,
}

impl Restore {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let Self { file: name, .. } = &self;
        let (name, node_id) = (name.clone(), self.node_id);
        for address in [&self.peer_address, &self.advertise] {
            check_address(address)?;
        }
        let file = open(&name)?;
        let data_dir = self.data_dir.clone();
        let member = RestoredMember {
            node_id,
            peer_address: self.peer_address.clone(),
            client_address: self.advertise.clone(),
        };
        let restoring = tokio::task::spawn_blocking(move || {
            let watch = Watch::start("restoring", &file);
            restore(buffered(file), &data_dir, member, |read| watch.tell(read))
        });
        let restored = restoring.await.map_err(|error| failed(&error))?;
        let (summary, cluster_id) = restored.map_err(|error| refuse(&name, &error))?;
        let view = RestoredView {
            data_dir: self.data_dir.display().to_string(),
            node_id,
            cluster_id,
            row_count: summary.rows(),
            index: summary.header.index,
            origin_cluster_id: summary.header.cluster_id,
        };
        session.output.value(&view, RestoredView::text)?;
        session.output.note(&view.next_step(&self.peer_address));
        Ok(())
    }
}

impl RestoredView {
    fn text(&self) -> String {
        format!(
            "{} is node {} of the new cluster {}, with the state of cluster {} up to index {}",
            self.data_dir, self.node_id, self.cluster_id, self.origin_cluster_id, self.index
        )
    }

    /// The next step, as a sentence. It is not a command line to copy, because one without the
    /// node's addresses and certificates would serve only this machine.
    fn next_step(&self, peer_address: &str) -> String {
        let Self {
            data_dir, node_id, ..
        } = self;
        format!(
            "start node {node_id} with its usual configuration, but with `data_dir` {data_dir} and only itself in \
             `peers`: {node_id}={peer_address}"
        )
    }
}

fn refuse(name: &Path, error: &RestoreError) -> Failure {
    let code = match error {
        RestoreError::Backup(fault) => return invalid(name, fault),
        RestoreError::NotEmpty(_) => Code::DataDirNotEmpty,
        RestoreError::Directory { .. } | RestoreError::Store(_) => Code::DataDirUnwritable,
    };
    Failure::new(code, error.to_string()).with_hint(error.hint())
}

/// Checks an address that is later advertised: a mistake would surface only when nodes or clients
/// connect.
fn check_address(address: &str) -> Result<(), Failure> {
    let parts = address.rsplit_once(':');
    let is_address = parts.is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    if is_address {
        return Ok(());
    }
    let message = format!("expected an address HOST:PORT, but it is {address:?}");
    Err(Failure::new(Code::AddressInvalid, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_restored_node_is_started_with_what_it_is_always_started_with() {
        let view = RestoredView {
            data_dir: "/var/lib/flo".to_owned(),
            node_id: 1,
            cluster_id: "c2".to_owned(),
            origin_cluster_id: "c1".to_owned(),
            index: 7,
            row_count: 3,
        };
        expect!["start node 1 with its usual configuration, but with `data_dir` /var/lib/flo and only itself in `peers`: 1=10.0.0.1:9001"]
            .assert_eq(&view.next_step("10.0.0.1:9001"));
    }
}
