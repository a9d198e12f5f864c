//! How many request ids are remembered, in total and for each namespace. Commands of the cluster count as one more.

use crate::command_scope::CommandScope;
use crate::limits::{
    NAMESPACES_MAX, REQUESTS_BYTES_EACH, REQUESTS_EXCESS_FACTOR, REQUESTS_RESERVED_PART,
};
use crate::store::StoreError;
use crate::tables::{
    ClusterRecord, ClusterSettings, ClusterSettingsRecord, RequestUsage, RequestUsages,
};
use crate::turn::Turn;

/// The bounds on remembered ids (ADR 0041). While the total is below its bound, any namespace may use it. From then on, a
/// namespace is refused once it has used up its share: the bound divided by the number of namespaces. So a namespace below
/// its share is not refused because of the others, up to a hard bound on the total.
pub(super) struct Bounds(RequestUsage);

impl Bounds {
    /// For new work.
    pub(super) fn of_intake(turn: &mut Turn<'_, '_>) -> Result<Self, StoreError> {
        let settings = turn.get::<ClusterSettings>(&())?;
        let settings = settings.map_or_else(ClusterSettingsRecord::default, |settings| *settings);
        Ok(Self(RequestUsage {
            count: settings.requests_max,
            bytes: settings.requests_max * REQUESTS_BYTES_EACH,
        }))
    }

    /// For what lets open work end, which has room beyond (design rule 2).
    pub(super) fn with_reserve(self) -> Self {
        let Self(max) = self;
        Self(RequestUsage {
            count: max.count + max.count / REQUESTS_RESERVED_PART,
            bytes: max.bytes + max.bytes / REQUESTS_RESERVED_PART,
        })
    }

    /// Whether any namespace has room.
    pub(super) fn have_room(&self, cluster: &ClusterRecord) -> bool {
        is_below(cluster.requests, self.0)
    }

    /// Whether this namespace has room, or the cluster for its own commands.
    pub(super) fn have_room_for(
        &self,
        turn: &mut Turn<'_, '_>,
        scope: &CommandScope,
    ) -> Result<bool, StoreError> {
        if self.have_room(turn.cluster()) {
            return Ok(true);
        }
        let used = turn.get::<RequestUsages>(scope)?;
        let used = used.map_or_else(RequestUsage::default, |used| *used);
        let cluster = turn.cluster();
        let share = self.share(cluster.namespaces_count);
        Ok(is_below(used, share) && is_below(cluster.requests, self.excess()))
    }

    /// What each of this many namespaces can always use.
    fn share(&self, namespaces_count: u64) -> RequestUsage {
        let parts = namespaces_count.clamp(1, NAMESPACES_MAX as u64);
        RequestUsage {
            count: self.0.count / parts,
            bytes: self.0.bytes / parts,
        }
    }

    /// What is never exceeded. The shares alone stay below it, unless namespaces are deleted and others created.
    fn excess(&self) -> RequestUsage {
        RequestUsage {
            count: self.0.count * REQUESTS_EXCESS_FACTOR,
            bytes: self.0.bytes * REQUESTS_EXCESS_FACTOR,
        }
    }
}

fn is_below(used: RequestUsage, max: RequestUsage) -> bool {
    used.count < max.count && used.bytes < max.bytes
}

/// Counts what is remembered from now on.
pub(super) fn add(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
    added: RequestUsage,
) -> Result<(), StoreError> {
    turn.cluster_mut().requests.add(added);
    let counted = turn.edit::<RequestUsages, _>(scope, |used| used.add(added))?;
    if counted.is_none() {
        turn.put::<RequestUsages>(scope, added);
    }
    Ok(())
}

/// Stops counting what is forgotten.
pub(super) fn subtract(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
    forgotten: RequestUsage,
) -> Result<(), StoreError> {
    turn.cluster_mut().requests.subtract(forgotten);
    let left = turn.edit::<RequestUsages, _>(scope, |used| {
        used.subtract(forgotten);
        used.count
    })?;
    if left == Some(0) {
        turn.delete::<RequestUsages>(scope);
    }
    Ok(())
}
