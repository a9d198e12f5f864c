//! The rows of bindings and blocks, shared by their commands (X12, X17).

use super::credentials::check_room;
use crate::command_scope::CommandScope;
use crate::limits::{BLOCKED_SUBJECTS_MAX, CLUSTER_BINDINGS_MAX, NAMESPACE_BINDINGS_MAX};
use crate::store::StoreError;
use crate::tables::{BindingCounts, BlockedSubjectCount};
use crate::turn::{Turn, TurnResult};

/// Counts a new binding of the scope, unless it has too many.
pub(super) fn count_new(turn: &mut Turn<'_, '_>, scope: &CommandScope) -> TurnResult<()> {
    let count_max = match scope {
        CommandScope::Cluster => CLUSTER_BINDINGS_MAX,
        CommandScope::Namespace(_) => NAMESPACE_BINDINGS_MAX,
    };
    let count = turn.get::<BindingCounts>(scope)?.map_or(0, |count| *count);
    check_room("bindings", (count, count_max))?;
    turn.put::<BindingCounts>(scope, count + 1);
    Ok(())
}

/// Counts a binding of the scope that is deleted.
pub(super) fn count_deleted(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
) -> Result<(), StoreError> {
    let count = turn.get::<BindingCounts>(scope)?.map_or(0, |count| *count);
    match count.saturating_sub(1) {
        0 => turn.delete::<BindingCounts>(scope),
        left => turn.put::<BindingCounts>(scope, left),
    }
    Ok(())
}

/// Counts a subject that is now blocked, unless there are too many.
pub(super) fn count_blocked(turn: &mut Turn<'_, '_>) -> TurnResult<()> {
    let count = turn
        .get::<BlockedSubjectCount>(&())?
        .map_or(0, |count| *count);
    check_room("blocked subjects", (count, BLOCKED_SUBJECTS_MAX))?;
    turn.put::<BlockedSubjectCount>(&(), count + 1);
    Ok(())
}

/// Counts a subject that is blocked no longer.
pub(super) fn count_unblocked(turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
    let count = turn
        .get::<BlockedSubjectCount>(&())?
        .map_or(0, |count| *count);
    turn.put::<BlockedSubjectCount>(&(), count.saturating_sub(1));
    Ok(())
}
