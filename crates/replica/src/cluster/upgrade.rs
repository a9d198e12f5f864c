//! Raises the engine version once every member knows a newer one (design rule 12).

use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::leadership::Leadership;
use crate::cluster::members::Changes;
use crate::cluster::status::StatusReports;
use crate::network::local::Local;
use crate::proposal::{Control, Proposal};
use crate::raft::type_config::ConsensusHandle;
use crate::state::applier::AppliedState;
use std::sync::Arc;
use tokio::sync::watch;

/// What an upgrade depends on.
pub(crate) struct Upgrade {
    pub(crate) applied_state: AppliedState,
    pub(crate) local: Arc<Local>,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) status_reports: StatusReports,
    pub(crate) consensus: ConsensusView,
    pub(crate) raft: ConsensusHandle,
}

impl Upgrade {
    /// At the leader: makes the cluster agree on the newest version that all members know, if it is
    /// newer than the agreed one. It waits for members that do not respond: they might know less.
    ///
    /// It takes the lock of membership changes, so that no member is added meanwhile: a new member is
    /// asked for its version before it is added, and would not be asked here.
    pub(crate) async fn consider(&self) {
        let agreed = *self.applied_state.engine_version.borrow();
        if agreed >= self.local.engine_version || !self.leadership.borrow().is_ready {
            return;
        }
        let Some(turn) = self.changes.try_turn() else {
            return;
        };
        let members = self.consensus.membership();
        let status = self.status_reports.collect().await;
        let known = status.nodes.iter().map(|node| node.engine_version).min();
        let Some(version) = known.filter(|known| *known > agreed) else {
            return;
        };
        // Another leader may have added a member.
        if self.consensus.membership().log_id() != members.log_id() {
            return;
        }
        let raft = self.raft.clone();
        // Not awaited: it may take until a quorum is back. It keeps the lock: until then it is unknown
        // whether a new member has to know the version. It is not forwarded: only this node knows which
        // members were asked.
        tokio::spawn(async move {
            let proposal = Proposal::Control(Control::RaiseEngineVersion { version });
            if let Err(error) = raft.client_write(proposal).await {
                tracing::debug!(%error, version, "the engine version was not raised");
            }
            drop(turn);
        });
    }
}
