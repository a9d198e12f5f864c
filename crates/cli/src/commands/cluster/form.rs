//! `flo cluster form`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{FormClusterRequest, FormClusterResponse};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo cluster form --token-file bootstrap.token
  flo cluster form --endpoint flo-1:9000 --timeout 2m";

/// Form a new, empty cluster from the first members
///
/// Start all nodes in `peers`, then send this command to any one of them. The command waits until all of them respond
/// and the cluster is formed, and then for a leader, but only for a few seconds. A new cluster needs it once; repeating
/// it is safe. A closed cluster requires its bootstrap token. A node without `peers` forms its own cluster when it starts.
///
/// Nodes that have lost all their data also wait for this command. In that case, do not run it: recover the data
/// directories or restore a backup.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Form {}

/// A cluster that is formed.
#[derive(Debug, Serialize)]
struct FormedView {
    cluster_id: String,
    changed: bool,
}

impl Form {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let formed = session
            .client()?
            .form_cluster(FormClusterRequest {})
            .await?;
        let FormClusterResponse {
            cluster_id,
            changed,
        } = formed;
        let view = FormedView {
            cluster_id,
            changed,
        };
        session.output.value(&view, |view| {
            if view.changed {
                format!("formed cluster {}", view.cluster_id)
            } else {
                format!("cluster {} was already formed", view.cluster_id)
            }
        })
    }
}
