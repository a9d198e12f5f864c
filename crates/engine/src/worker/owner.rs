//! Who owns the id of a worker (X25).

use crate::access::{Actor, identity_of};
use crate::store::StoreError;
use crate::tables::WorkerOwner;
use crate::turn::Turn;

impl WorkerOwner {
    /// The owner of what the turn's actor registers.
    pub(super) fn of_actor(turn: &mut Turn<'_, '_>) -> Result<Self, StoreError> {
        Ok(match turn.actor() {
            Actor::System => Self::Cluster,
            Actor::Anonymous | Actor::Token(_) | Actor::Bound(_) => {
                identity_of(turn)?.map_or(Self::Anyone, Self::Identity)
            }
        })
    }

    /// Whether another may register with the id of this owner's worker. The cluster may always: it cannot choose another id
    /// for the worker of a node.
    pub(super) fn allows_takeover_by(&self, other: &Self, is_healthy: bool) -> bool {
        match (self, other) {
            (Self::Anyone, _) | (_, Self::Cluster) => true,
            (Self::Cluster, _) => false,
            (Self::Identity(_), _) => !is_healthy || self == other,
        }
    }
}
