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

/// Take in a node that was started with --join
///
/// Start it first, with an id and a data directory of its own. It receives the log from now on, and has no
/// vote until it is promoted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddLearner {
    /// The node's id, which no member ever had
    node_id: u64,

    /// Where the members reach it: its --peer-listen, as seen from them
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
