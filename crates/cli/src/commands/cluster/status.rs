//! `flo cluster status`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ClusterView;
use clap::Args;
use flotilla_client::v1::GetStatusRequest;

/// Show the members of the cluster as the node that answers sees them
///
/// Answers without a quorum too, then with no leader.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo cluster status --endpoint 127.0.0.1:9010")]
pub(crate) struct Status {}

impl Status {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let status = session.client()?.get_status(GetStatusRequest {}).await?;
        session
            .output
            .value(&ClusterView::from(status), ClusterView::text)
    }
}
