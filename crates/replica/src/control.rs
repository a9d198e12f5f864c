//! Writes control records to the log, from any node.

use crate::attempt::{Attempt, SubmitError};
use crate::cluster::leader_search::LeaderSearch;
use crate::cluster::leadership::Leader;
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::links::Links;
use crate::network::protocol::{forward_request, forward_response};
use crate::proposal::{Control, Proposal};
use crate::raft::type_config::ConsensusHandle;
use openraft::errors::{ClientWriteError, RaftError};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Writes control records to the log. Clones share what it depends on.
#[derive(Clone)]
pub(crate) struct ControlWriter {
    pub(crate) raft: ConsensusHandle,
    pub(crate) links: Arc<Links>,
    pub(crate) leader_search: LeaderSearch,
}

impl ControlWriter {
    /// Writes a control record to the log, from any node.
    pub(crate) async fn write(
        &self,
        control: Control,
        deadline: Instant,
    ) -> Result<(), SubmitError> {
        let leader_wait = self.leader_search.leader_wait(deadline);
        loop {
            let attempt = match self.leader_search.destination(leader_wait).await? {
                None => self.write_here(control, deadline).await,
                Some(leader) => self.forward(&leader, control, deadline).await,
            };
            match attempt {
                Attempt::Done(()) => return Ok(()),
                Attempt::Failed(error) => return Err(error),
                Attempt::NotLeader => self.leader_search.await_leader(leader_wait).await?,
            }
        }
    }

    /// One attempt at this node, which should lead.
    pub(crate) async fn write_here(&self, control: Control, deadline: Instant) -> Attempt<()> {
        let write = self.raft.client_write(Proposal::Control(control));
        match timeout_at(deadline, write).await {
            Ok(Ok(_)) => Attempt::Done(()),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => {
                Attempt::NotLeader
            }
            Ok(Err(_)) | Err(_) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    async fn forward(&self, leader: &Leader, control: Control, deadline: Instant) -> Attempt<()> {
        let body = forward_request::Body::Control(control.encode().into());
        match self
            .links
            .forward(leader.node_id.0, &leader.peer_address, ForwardKind::Control)
            .ask(body, deadline)
            .await
        {
            Ok(forward_response::Answer::Done(_)) => Attempt::Done(()),
            Ok(forward_response::Answer::NotLeader(_))
            | Err(ForwardError::NotSent | ForwardError::QueueFull) => Attempt::NotLeader,
            Ok(_) | Err(ForwardError::Lost) => Attempt::Failed(SubmitError::Unknown),
        }
    }
}
