//! A stream whose timer failed is set aside (design rule 10).
//!
//! Its timer is what brings it back to its limits, and an append would do the same work: so nothing is
//! appended or trimmed by a caller any more, and each is told why. What it holds can be read, until it
//! is deleted.

use super::announce;
use crate::ids::{StreamName, StreamNumber};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::Streams;
use crate::turn::Turn;
use std::sync::Arc;

/// Notes that the stream's timer is gone.
pub(crate) fn set_aside(turn: &mut Turn<'_, '_>, number: StreamNumber) -> Result<(), StoreError> {
    let Some(stream) = turn.get::<Streams>(&number)? else {
        return Ok(());
    };
    let mut stream = Arc::unwrap_or_clone(stream);
    stream.sweep_due_ms = None;
    announce(turn, &stream);
    turn.put::<Streams>(&number, stream);
    Ok(())
}

/// Refuses a stream that is set aside.
pub(super) fn check_in_service(
    turn: &Turn<'_, '_>,
    number: StreamNumber,
    name: &StreamName,
) -> Result<(), Rejection> {
    if turn.is_stream_quarantined(number) {
        return Err(Rejection::StreamQuarantined(name.clone()));
    }
    Ok(())
}
