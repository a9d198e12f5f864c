//! `flo cluster set`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::SetClusterSettingsRequest;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo cluster set --max-request-ids 12000000";

/// Change cluster settings, which apply to all nodes
///
/// `flo cluster status` shows them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[group(required = true, multiple = true)]
pub(crate) struct Set {
    /// Maximum number of remembered request ids, 100000 to 100000000; at the limit, new work is refused
    /// in namespaces that have used up their share
    #[arg(long, value_name = "N")]
    max_request_ids: Option<u64>,
}

#[derive(Debug, Serialize)]
struct SetView {
    max_request_ids: Option<u64>,
}

impl Set {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = SetClusterSettingsRequest {
            max_request_ids: self.max_request_ids,
            ..SetClusterSettingsRequest::default()
        };
        session.client()?.set_cluster_settings(request).await?;
        let view = SetView {
            max_request_ids: self.max_request_ids,
        };
        session.output.value(&view, |view| {
            let max = view
                .max_request_ids
                .map(|max| format!("max-request-ids is now {max}"));
            max.unwrap_or_default()
        })
    }
}
