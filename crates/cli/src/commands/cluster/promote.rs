//! `flo cluster promote`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ChangeView;
use clap::Args;
use flotilla_client::v1::PromoteLearnerRequest;

const EXAMPLES: &str = "\
Examples:
  flo cluster promote 4
  flo cluster promote 4 --timeout 10m";

/// Promote a learner to voter once it has caught up
///
/// Waits for the learner for up to --timeout. Each voter counts towards the quorum: keep the number
/// of voters odd.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Promote {
    /// Id of the learner
    node_id: u64,
}

impl Promote {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = PromoteLearnerRequest {
            node_id: self.node_id,
        };
        let answer = session.client()?.promote_learner(request).await?;
        ChangeView::new(self.node_id, answer.changed).print(session.output, "a voter")
    }
}
