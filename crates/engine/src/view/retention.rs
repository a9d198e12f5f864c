//! Finds items whose retention has ended, for the leader's driver (W4).

use super::cluster;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{Expirations, RunRemains, encode_prefix, visit};
use std::ops::ControlFlow;

/// Whether a sweep is due, and when to look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Whether a sweep has something to do.
    pub is_due: bool,
    /// When the next thing that is kept will expire, in milliseconds. What ends meanwhile may expire
    /// earlier. That does no harm, since retention is a minimum.
    pub next_due_ms: Option<u64>,
}

/// What is to be forgotten at `now_ms`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn expired(reader: &dyn Reader, now_ms: u64) -> Result<Expired, StoreError> {
    let mut expired = Expired::default();
    let remains = KeyRange::prefix(&encode_prefix::<RunRemains>(&()));
    reader.scan(&remains, Order::Ascending, &mut |_, _| {
        expired.is_due = true;
        ControlFlow::Break(())
    })?;
    let from_ms = cluster(reader)?.expirations_from_ms;
    let kept = KeyRange {
        from: encode_prefix::<Expirations>(&from_ms),
        ..KeyRange::prefix(&encode_prefix::<Expirations>(&()))
    };
    visit::<Expirations>(reader, &kept, Order::Ascending, |expiration, ()| {
        expired.is_due |= expiration.due_ms <= now_ms;
        expired.next_due_ms = Some(expiration.due_ms);
        ControlFlow::Break(())
    })?;
    Ok(expired)
}
