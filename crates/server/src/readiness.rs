//! Whether a node lives, and whether it may serve: one judgement for the health service, the probes over
//! HTTP and the metrics.

use crate::context::Context;
use crate::errors::{Refusal, ServerCode};
use flotilla_replica::ReadError;

/// Whether the process can go on.
///
/// # Errors
/// [`Refusal`] once it is known that it cannot: it is to be started again.
pub(crate) fn check_alive(context: &Context) -> Result<(), Refusal> {
    let fatal = context.gateway.replica().fatal();
    let Some(error) = fatal.borrow().clone() else {
        return Ok(());
    };
    let hint = error.hint();
    let message = format!("expected the node to go on, but it cannot: {error}; {hint}");
    Err(Refusal::new(ServerCode::Unavailable, message))
}

/// Whether the node may serve: it goes on, does not stop, is a member, has caught up with the log since its
/// start, and has lately heard from a leader with a quorum behind it, which may be itself.
///
/// # Errors
/// [`Refusal`], with the reason.
pub(crate) fn check(context: &Context) -> Result<(), Refusal> {
    check_alive(context)?;
    if context.shutdown.is_cancelled() {
        return Err(Refusal::shutting_down());
    }
    let replica = context.gateway.replica();
    if !replica.is_member() {
        return Err(Refusal::not_a_member());
    }
    if !replica.is_readable() {
        return Err(ReadError::NotReadable.into());
    }
    if !replica.is_led() {
        let message =
            "expected a leader with a quorum behind it, but none has answered this node lately";
        return Err(Refusal::new(ServerCode::NoLeader, message)
            .with_hint("a majority of the nodes must be up; `flo cluster status` shows them"));
    }
    Ok(())
}
