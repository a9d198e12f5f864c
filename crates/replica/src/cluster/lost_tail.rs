//! A member whose disk has lost the end of its log, although it reported it as durable.
//!
//! The leader has counted the member's copy of these entries, and another member may lack them. If the lossy member voted
//! with the rest of its log, that other member could become leader without entries whose commands were acknowledged. It may
//! have lost votes, too. So it must not return under its id, as a member that has lost its whole log: it takes part in
//! nothing any longer, marks its log and ends, and its operator replaces it (ADR 0036).
//!
//! The leader says with each append what the member has acknowledged to it. It knows only of the time since its election:
//! a loss from before, or of which no leader knows, goes unnoticed.

use crate::core::Core;
use crate::fatal::FatalError;
use crate::network::calls::PeerError;
use crate::network::convert;
use crate::network::protocol::AppendRequest;
use crate::raft::type_config::LogId;
use crate::start_error::StartError;
use std::sync::Arc;

/// Checks that the log has what this member has acknowledged to the sender of an append. Otherwise, the replica ends.
///
/// # Errors
/// [`PeerError::Refused`]
pub(crate) fn check(core: &Arc<Core>, request: &AppendRequest) -> Result<(), PeerError> {
    let Some(acknowledged) = request.acknowledged.map(convert::log_id_in) else {
        return Ok(());
    };
    let vote = convert::vote_in(request.vote)?;
    if !core.log.has_lost(&vote, acknowledged) {
        return Ok(());
    }
    if core.candidacy.lose_tail() {
        tokio::spawn(end(Arc::clone(core), acknowledged));
    }
    Err(PeerError::Refused(
        "it has lost entries that it had acknowledged".to_owned(),
    ))
}

/// Marks the log, so that a restart is refused, and ends the replica.
async fn end(core: Arc<Core>, acknowledged: LogId) {
    let last = core.log.last();
    if let Err(error) = core.log.mark_lost(acknowledged).await {
        tracing::error!(%error, "the log could not be marked as one that has lost entries");
    }
    core.lifecycle
        .fail(FatalError::Refused(StartError::tail_lost(
            acknowledged,
            last,
        )));
}
