//! `flo cluster`.

mod add_learner;
mod promote;
mod remove;
mod status;
mod transfer_leader;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// See how the cluster is, and change who belongs to it and who leads it
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    Status(status::Status),
    AddLearner(add_learner::AddLearner),
    Promote(promote::Promote),
    Remove(remove::Remove),
    TransferLeader(transfer_leader::TransferLeader),
}

impl ClusterCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Status(status) => status.run(session).await,
            Self::AddLearner(add_learner) => add_learner.run(session).await,
            Self::Promote(promote) => promote.run(session).await,
            Self::Remove(remove) => remove.run(session).await,
            Self::TransferLeader(transfer_leader) => transfer_leader.run(session).await,
        }
    }
}
