//! The counts of bindings and blocks, shared by their commands (X12, X17).

use super::binding_subject::BindingSubject;
use super::credentials::{check_room, count_of, put_count};
use crate::command_scope::CommandScope;
use crate::limits::{BLOCKED_SUBJECTS_MAX, CLUSTER_BINDINGS_MAX, NAMESPACE_BINDINGS_MAX};
use crate::store::StoreError;
use crate::tables::{
    BindingCounts, BlockRecord, BlockedSubjectCount, BlockedSubjects, BlocksEnding,
};
use crate::turn::{Turn, TurnResult};

/// Ended blocks that a further block deletes at most.
const SWEPT_MAX: usize = 16;

/// Counts a new binding of the scope, unless it or the cluster has too many.
pub(super) fn count_new(turn: &mut Turn<'_, '_>, scope: &CommandScope) -> TurnResult<()> {
    for (counted, count_max) in counts_of(scope) {
        let count = count_of::<BindingCounts>(turn, &counted)?;
        check_room("bindings", (count, count_max))?;
        put_count::<BindingCounts>(turn, &counted, count + 1);
    }
    Ok(())
}

/// Counts a binding of the scope that is deleted.
pub(super) fn count_deleted(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
) -> Result<(), StoreError> {
    for (counted, _) in counts_of(scope) {
        let count = count_of::<BindingCounts>(turn, &counted)?;
        put_count::<BindingCounts>(turn, &counted, count.saturating_sub(1));
    }
    Ok(())
}

/// The counts in which a binding of the scope is included, with their limits: that of the cluster has the bindings of all scopes.
fn counts_of(scope: &CommandScope) -> impl Iterator<Item = (CommandScope, u64)> {
    let of_namespace = scope.namespace().is_some().then(|| scope.clone());
    let of_namespace = of_namespace.map(|scope| (scope, NAMESPACE_BINDINGS_MAX));
    let of_cluster = (CommandScope::Cluster, CLUSTER_BINDINGS_MAX);
    std::iter::once(of_cluster).chain(of_namespace)
}

/// Stores the block of a subject, in place of an earlier one.
pub(super) fn put_block(
    turn: &mut Turn<'_, '_>,
    subject: &BindingSubject,
    record: BlockRecord,
) -> TurnResult<()> {
    delete_block(turn, subject)?;
    remove_ended_blocks(turn)?;
    count_blocked(turn)?;
    if let Some(ends_at_ms) = record.ends_at_ms {
        turn.put::<BlocksEnding>(&(ends_at_ms, subject.clone()), ());
    }
    turn.put::<BlockedSubjects>(subject, record);
    Ok(())
}

/// Deletes the block of a subject; false if there is none.
pub(super) fn delete_block(
    turn: &mut Turn<'_, '_>,
    subject: &BindingSubject,
) -> Result<bool, StoreError> {
    let Some(record) = turn.get::<BlockedSubjects>(subject)? else {
        return Ok(false);
    };
    if let Some(ends_at_ms) = record.ends_at_ms {
        turn.delete::<BlocksEnding>(&(ends_at_ms, subject.clone()));
    }
    turn.delete::<BlockedSubjects>(subject);
    count_unblocked(turn)?;
    Ok(true)
}

/// Deletes blocks that have ended.
fn remove_ended_blocks(turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
    let now_ms = turn.now_ms();
    for (ends_at_ms, subject) in turn.keys::<BlocksEnding>(&(), SWEPT_MAX)? {
        if ends_at_ms <= now_ms {
            delete_block(turn, &subject)?;
        }
    }
    Ok(())
}

/// Counts a subject that is now blocked, unless there are too many.
fn count_blocked(turn: &mut Turn<'_, '_>) -> TurnResult<()> {
    let count = count_of::<BlockedSubjectCount>(turn, &())?;
    check_room("blocked subjects", (count, BLOCKED_SUBJECTS_MAX))?;
    put_count::<BlockedSubjectCount>(turn, &(), count + 1);
    Ok(())
}

/// Counts a subject that is blocked no longer.
fn count_unblocked(turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
    let count = count_of::<BlockedSubjectCount>(turn, &())?;
    put_count::<BlockedSubjectCount>(turn, &(), count.saturating_sub(1));
    Ok(())
}
