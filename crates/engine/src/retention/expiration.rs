//! When the retention of an item ends.

use crate::effect::Effect;
use crate::store::StoreError;
use crate::tables::{Expiration, Expirations};
use crate::turn::Turn;

/// Restarts the retention of an item that a sweep has skipped.
pub(crate) fn expire_again(
    turn: &mut Turn<'_, '_>,
    expiration: Expiration,
) -> Result<(), StoreError> {
    if turn.get::<Expirations>(&expiration)?.is_some() {
        return Ok(());
    }
    let due_ms = expiration.due_ms;
    turn.put::<Expirations>(&expiration, ());
    let cluster = turn.cluster_mut();
    cluster.expirations_from_ms = cluster.expirations_from_ms.min(due_ms);
    turn.effect(Effect::ArmRetention { due_ms });
    Ok(())
}
