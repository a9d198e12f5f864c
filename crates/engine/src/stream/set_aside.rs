//! A stream whose timer failed is set aside (design rule 10).
//!
//! Its timer is what brings it back to its limits, and an append would do the same work: so nothing is
//! appended or trimmed by a caller any more, and each is told why. What it holds can be read, until it
//! is deleted or taken up again.

use super::announce;
use super::retention::sweep_timer;
use crate::ids::{StreamName, StreamNumber};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::Streams;
use crate::timer;
use crate::turn::Turn;
use std::sync::Arc;

/// Takes the stream's timer back.
pub(crate) fn set_aside(turn: &mut Turn<'_, '_>, number: StreamNumber) -> Result<(), StoreError> {
    let Some(stream) = turn.get::<Streams>(&number)? else {
        return Ok(());
    };
    let mut stream = Arc::unwrap_or_clone(stream);
    if let Some(due_ms) = stream.sweep_due_ms.take() {
        turn.clear_timer(sweep_timer(number, due_ms));
    }
    announce(turn, &stream);
    turn.put::<Streams>(&number, stream);
    Ok(())
}

/// The stream is taken up: it is brought back to its limits at once, by its timer.
pub(crate) fn take_up(turn: &mut Turn<'_, '_>, number: StreamNumber) -> Result<(), StoreError> {
    let Some(stream) = turn.get::<Streams>(&number)? else {
        return Ok(());
    };
    let mut stream = Arc::unwrap_or_clone(stream);
    let timer = sweep_timer(number, turn.now_ms());
    timer::bring_forward(turn, &mut stream.sweep_due_ms, timer);
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
