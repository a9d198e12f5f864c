//! `flo cluster form`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{FormClusterRequest, FormClusterResponse};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo cluster form
  flo cluster form --endpoint flo-1:9000 --timeout 2m";

/// Form a new, empty cluster of the first members, once
///
/// Run it at any first member when all nodes of `peers` are started. It waits until they respond and the cluster is formed. A
/// node without `peers` forms its cluster when it starts. To repeat it is harmless.
///
/// Nodes that have lost their data also wait for this command. Do not run it then: restore a backup instead.
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
            let already = if view.changed { "now" } else { "already" };
            format!("cluster {} is {already} formed", view.cluster_id)
        })
    }
}
