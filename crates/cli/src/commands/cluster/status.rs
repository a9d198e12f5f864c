//! `flo cluster status`.

use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::ClusterView;
use clap::Args;
use flotilla_client::v1::GetStatusRequest;

const EXAMPLES: &str = "\
Examples:
  flo cluster status
  flo cluster status --endpoint 127.0.0.1:9010 -o json

Exit codes: 0 with a leader; 4 without one, or if the node is about to stop; 5 if no node answers.";

/// Show the members of the cluster, as seen by the node that answers
///
/// Works without a quorum: it then shows no leader and exits with 4.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Status {}

impl Status {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let status = session.client()?.get_status(GetStatusRequest {}).await?;
        let view = ClusterView::from(status);
        session.output.value(&view, ClusterView::text)?;
        if let Some(reason) = view.stop_reason() {
            let message = format!("expected the node to be in service, but {reason}");
            return Err(Failure::new(Code::NotServing, message));
        }
        if view.has_leader() {
            return Ok(());
        }
        let failure = if view.is_formed() {
            let message = "expected a node to lead with a quorum behind it, but none does";
            Failure::new(Code::NoLeader, message)
        } else {
            let message = "expected a cluster with a leader, but it is not formed yet";
            Failure::new(Code::ClusterNotFormed, message)
        };
        Err(failure.with_hint(view.advice()))
    }
}
