//! The scopes below a run: how they begin and end (W51–W53).

use super::branches::{self, EndedScope};
use super::for_each;
use super::outcome::{is_good, keeps_writes};
use super::render::{self, DataContext};
use super::resumable::{self, FormerStep};
use super::{cursor, state};
use crate::definition::{BlockIndex, Definition, StepIndex, StepKind};
use crate::ids::ScopeNumber;
use crate::run::enter::Entry;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, BranchResult, EventKind, FormerBranches, PayloadRef, ResumableScopes, ScopeEnd,
    ScopeId, ScopeProgress, ScopeRecord, ScopeStep, StepResult, StepResults, Work,
};
use crate::turn::{LoadedRun, Turn, TurnResult};
use std::sync::Arc;

/// A scope to open.
pub(super) struct NewScope {
    pub(super) number: ScopeNumber,
    pub(super) block: BlockIndex,
    /// The position among the branches of the step.
    pub(super) position: u32,
}

/// Opens a scope below an active step; returns the work that enters its first step.
pub(super) fn open(run: &mut LoadedRun, opener: &Activation, new: NewScope) -> Work {
    let path = run.scope_id(opener.scope).path.with(ScopeStep {
        step: opener.step,
        visit: opener.visit,
        position: new.position,
    });
    let id = ScopeId {
        number: new.number,
        path,
    };
    run.note_scope(id.clone(), EventKind::ScopeStarted);
    run.open_scope(ScopeRecord {
        id,
        parent: opener.scope,
        opener: opener.number,
        block: new.block,
        position: new.position,
        progress: ScopeProgress::default(),
        cancelling: None,
        cursor: None,
    });
    Work::Enter {
        scope: new.number,
        step: run.definition.definition.block(new.block).start,
    }
}

/// Opens a scope again that did not succeed; returns the work that continues it. What was undone starts from its
/// beginning (W89).
pub(super) fn open_again(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    opener: &Activation,
    new: NewScope,
) -> Result<Work, StoreError> {
    let key = (run.number, new.number);
    let Some(stopped) = turn.get::<ResumableScopes>(&key)? else {
        return Ok(open(run, opener, new));
    };
    turn.delete::<ResumableScopes>(&key);
    run.note_scope(stopped.id.clone(), EventKind::ScopeStarted);
    run.open_scope(ScopeRecord {
        progress: ScopeProgress {
            last_left: stopped.progress.last_left,
            ..ScopeProgress::default()
        },
        ..Arc::unwrap_or_clone(stopped)
    });
    Ok(Work::Continue { scope: new.number })
}

/// Ends a scope, and hands its result to the step that opened it.
pub(super) fn end(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    end: ScopeEnd,
) -> TurnResult<()> {
    let scope = run.scope(turn, end.scope)?.cloned();
    let Some(scope) = scope.filter(|scope| scope.cancelling.is_none()) else {
        return Ok(());
    };
    let output = output(turn, run, &scope)?;
    let outcome = end.outcome.clone();
    let definition = run.definition.clone();
    let definition = &definition.definition;
    let opener = definition.step(opener_of(definition, &scope));
    let has_succeeded = is_good(&outcome) || keeps_writes(&opener.kind, &outcome);
    run.note_scope(scope.id.clone(), EventKind::ScopeEnded { outcome });
    if has_succeeded {
        run.close_scope(end.scope);
    } else {
        let last = turn.get::<StepResults>(&(run.number, end.scope, end.step))?;
        let cursor = match last.is_some_and(|last| is_good(&last.outcome)) {
            // To execute this step again would lead to the same end: the scope starts from its beginning.
            true => {
                state::forget(turn, run, end.scope)?;
                None
            }
            false => Some(cursor::after_visits(turn, run, (end.scope, end.step))?),
        };
        run.scope_mut(end.scope).expect("the scope is open").cursor = cursor;
        resumable::close_scope(turn, run, end.scope)?;
    }
    let result = BranchResult {
        outcome: end.outcome,
        output,
        reason: end.reason,
        is_retryable: end.is_retryable,
        cause: end.cause,
        is_cancelled: false,
    };
    join(turn, queue, run, EndedScope { scope, result })
}

/// Hands the end of a scope to the step that opened it.
pub(super) fn join(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ended: EndedScope,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let definition = &definition.definition;
    match &definition.step(opener_of(definition, &ended.scope)).kind {
        StepKind::ForEach(_) => for_each::note_end(turn, queue, run, ended),
        _ => branches::join(turn, queue, run, ended),
    }
}

/// The step that opened a scope.
fn opener_of(definition: &Definition, scope: &ScopeRecord) -> StepIndex {
    let opener = definition.block(scope.block).opener;
    opener.expect("a step opens each block but the workflow's own")
}

/// The output of an ended block: its mapping's result, or without one that of the step left last (W52).
fn output(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: &ScopeRecord,
) -> Result<Option<PayloadRef>, StoreError> {
    let definition = run.definition.clone();
    let block = definition.definition.block(scope.block);
    let number = scope.id.number;
    match (&block.output, scope.progress.last_left) {
        (Some(template), _) => {
            render::output(turn, run, DataContext::of(number), template).map(Some)
        }
        (None, Some(step)) => render::output_of(turn, run, number, step),
        (None, None) => Ok(None),
    }
}

/// Hides the results of a former visit's branches while their step is active again, and has them deleted, with all that is
/// kept of the step for a resume.
pub(super) fn hide_former(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    entry: Entry,
) -> Result<(), StoreError> {
    let Entry { scope, step } = entry;
    let key = (run.number, scope, step);
    let kept = FormerStep {
        scope,
        step,
        keeps_results: false,
    };
    resumable::forget_step(turn, queue, run, kept)?;
    let Some(former) = turn.get::<StepResults>(&key)? else {
        return Ok(());
    };
    let Some(first_scope) = former.first_scope else {
        return Ok(());
    };
    let hidden = StepResult {
        first_scope: None,
        ..Arc::unwrap_or_clone(former)
    };
    turn.put::<StepResults>(&key, hidden);
    let former = branches_of(run, step, first_scope);
    queue.push(run.number, Work::ForgetBranches(former));
    Ok(())
}

/// The branches of a former visit to a step, with the results of their steps.
pub(super) fn branches_of(
    run: &LoadedRun,
    step: StepIndex,
    first_scope: ScopeNumber,
) -> FormerBranches {
    FormerBranches {
        first_scope,
        count: branches_count(run, step),
        keeps_results: false,
    }
}

/// How many branches a step has.
pub(super) fn branches_count(run: &LoadedRun, step: StepIndex) -> u32 {
    let branches = run.definition.definition.branches(step);
    u32::try_from(branches.len()).expect("branches are bounded")
}
