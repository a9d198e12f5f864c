//! `flo cluster add-learner`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ChangeView;
use clap::Args;
use flotilla_client::v1::AddLearnerRequest;

const EXAMPLES: &str = "\
Examples:
  flo server --config flo.toml --node-id 4 --join 10.0.0.1:9001
  flo cluster add-learner 4 10.0.0.4:9001
  flo cluster promote 4";

/// Add a node that was started with --join as a learner
///
/// Start the node first, with a new id and an empty data directory. It then receives the log, but
/// has no vote until it is promoted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddLearner {
    /// Id of the node; no member may ever have had it
    node_id: u64,

    /// Peer address of the node: its --peer-listen, as the other members reach it
    #[arg(value_name = "HOST:PORT")]
    peer_address: String,
}

impl AddLearner {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = AddLearnerRequest {
            node_id: self.node_id,
            peer_address: self.peer_address,
        };
        let answer = session.client()?.add_learner(request).await?;
        ChangeView::new(self.node_id, answer.changed).print(session.output, "a learner")
    }
}
