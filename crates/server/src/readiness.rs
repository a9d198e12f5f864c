//! Liveness and readiness of a node, with the same result for the health service, the HTTP probes
//! and the metrics.

use crate::context::Context;
use crate::errors::{Refusal, ServerCode};
use flotilla_replica::{FatalError, ReadError, Standstill, StartError};

/// Whether the process can continue.
///
/// # Errors
/// [`Refusal`] once it cannot: it must be restarted.
pub(crate) fn check_alive(context: &Context) -> Result<(), Refusal> {
    let fatal = context.node_gateway.home().replica().fatal();
    let Some(error) = fatal.borrow().clone() else {
        return Ok(());
    };
    if let FatalError::Refused(StartError::Removed(_)) = error.as_ref() {
        let message = format!("expected the node to be a member of its cluster, but {error}");
        let refusal = Refusal::new(ServerCode::NodeRemoved, message);
        return Err(refusal.with_hint(StartError::REMOVED_HINT));
    }
    let hint = error.hint();
    let message = format!("expected the node to keep running, but it cannot: {error}; {hint}");
    Err(Refusal::new(ServerCode::Unavailable, message))
}

/// What an operator should change about a node, even if it may serve.
pub(crate) fn warnings(context: &Context) -> Vec<String> {
    let mismatch = context.node_gateway.home().replica().timing_mismatch();
    mismatch
        .iter()
        .map(|mismatch| mismatch.to_string())
        .collect()
}

/// Whether the node may serve: it runs, is not stopping, is a member, has caught up with the log
/// since its start, is not drained, has recent contact with a leader that has a quorum, which may be itself, and
/// applies what that leader commits.
///
/// # Errors
/// [`Refusal`], with the reason.
pub(crate) fn check(context: &Context) -> Result<(), Refusal> {
    check_alive(context)?;
    if context.shutdown.is_cancelled() {
        return Err(Refusal::shutting_down());
    }
    let replica = context.node_gateway.home().replica();
    if !replica.is_member() {
        return Err(Refusal::node_not_member());
    }
    if !replica.is_readable() {
        return Err(ReadError::NodeCatchingUp.into());
    }
    if *replica.drained().borrow() {
        return Err(Refusal::node_drained());
    }
    if !replica.has_leader_contact() {
        let message =
            "expected a leader with a quorum, but this node has had no recent contact with one";
        return Err(Refusal::new(ServerCode::NoLeader, message)
            .with_hint("a majority of the nodes must be up; `flo cluster status` shows them"));
    }
    match *replica.standstill().borrow() {
        Some(Standstill::NothingApplied) => Err(Standstill::NothingApplied.into()),
        // The contact may be newer.
        Some(Standstill::NoLeader) | None => Ok(()),
    }
}
