//! Quarantine of a stream whose timer failed (design rule 10).
//!
//! The timer trims the stream to its limits, and an append would run the same code. Appends and trims by callers are
//! therefore rejected with the reason. The records stay readable until the stream is deleted or released.

use super::announce;
use super::retention::sweep_timer;
use crate::ids::{StreamName, StreamNumber};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::Streams;
use crate::timer;
use crate::turn::Turn;
use std::sync::Arc;

/// Clears the stream's timer.
pub(crate) fn quarantine(turn: &mut Turn<'_, '_>, number: StreamNumber) -> Result<(), StoreError> {
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

/// Releases the stream: its timer immediately trims it to its limits.
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    number: StreamNumber,
) -> Result<(), StoreError> {
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

/// Rejects a quarantined stream.
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
