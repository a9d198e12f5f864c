//! The counts of bindings and blocks, shared by their commands (X12, X17).

use super::credentials::{check_room, count_of, put_count};
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
    let count = count_of::<BindingCounts>(turn, scope)?;
    check_room("bindings", (count, count_max))?;
    put_count::<BindingCounts>(turn, scope, count + 1);
    Ok(())
}

/// Counts a binding of the scope that is deleted.
pub(super) fn count_deleted(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
) -> Result<(), StoreError> {
    let count = count_of::<BindingCounts>(turn, scope)?;
    put_count::<BindingCounts>(turn, scope, count.saturating_sub(1));
    Ok(())
}

/// Counts a subject that is now blocked, unless there are too many.
pub(super) fn count_blocked(turn: &mut Turn<'_, '_>) -> TurnResult<()> {
    let count = count_of::<BlockedSubjectCount>(turn, &())?;
    check_room("blocked subjects", (count, BLOCKED_SUBJECTS_MAX))?;
    put_count::<BlockedSubjectCount>(turn, &(), count + 1);
    Ok(())
}

/// Counts a subject that is blocked no longer.
pub(super) fn count_unblocked(turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
    let count = count_of::<BlockedSubjectCount>(turn, &())?;
    put_count::<BlockedSubjectCount>(turn, &(), count.saturating_sub(1));
    Ok(())
}
