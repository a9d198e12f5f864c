//! What is kept for a resume can be reached from where the run stops (W89).

use super::rows;
use flotilla_engine::definition::{BlockIndex, Definition, StepKind};
use flotilla_engine::ids::{RunNumber, ScopeNumber};
use flotilla_engine::rows::{
    Activation, ActivationState, Activations, BranchResults, CompensationProgress, PendingWorks,
    ResumableScopes, ResumableSteps, RunRecord, ScopePath, Scopes, Work,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeSet;

/// Whether a run that has ended may be resumed.
pub(super) fn may_be_resumed(run: &RunRecord) -> bool {
    let is_retried = run.chain.is_some_and(|chain| chain.next.is_some());
    run.resumption.cursor.is_some()
        && !is_retried
        && run.compensations.progress == CompensationProgress::None
}

pub(super) fn check(
    store: &MemoryStore,
    number: RunNumber,
    run: &RunRecord,
    definition: &Definition,
) {
    let pending = rows::<PendingWorks>(store, &number);
    let is_forgetting = pending
        .iter()
        .any(|(_, work)| matches!(work, Work::ForgetBranches(_) | Work::ForgetItems(_)));
    let active: Vec<Activation> = values(rows::<Activations>(store, &number));
    let steps: Vec<Activation> = values(rows::<ResumableSteps>(store, &number));
    let openers: BTreeSet<u64> = active.iter().chain(&steps).map(|one| one.number).collect();
    let open = rows::<Scopes>(store, &number).into_iter();
    let mut scopes: BTreeSet<ScopeNumber> = open.map(|((_, scope), _)| scope).collect();
    for ((_, own), scope) in rows::<ResumableScopes>(store, &number) {
        assert_eq!(scope.id.number, own);
        assert!(scope.cancelling.is_none(), "{}: {own:?} has ended", run.id);
        assert!(scopes.insert(own), "{}: {own:?} is open and kept", run.id);
        let block = block_at(definition, &scope.id.path);
        assert!(
            is_forgetting || block == Some(scope.block),
            "{}: {own:?} is at {:?}",
            run.id,
            scope.id.path
        );
        assert!(
            is_forgetting || openers.contains(&scope.opener),
            "{}: {own:?} has no opener",
            run.id
        );
    }
    scopes.insert(ScopeNumber::ROOT);
    for step in &steps {
        let is_kept = matches!(
            step.state,
            ActivationState::Branches(_)
                | ActivationState::Iterations(_)
                | ActivationState::Child(_)
        );
        assert!(is_kept, "{}: {step:?} is not needed", run.id);
        assert!(
            is_forgetting || scopes.contains(&step.scope),
            "{}: {step:?} has no scope",
            run.id
        );
        let is_active = active.iter().any(|one| one.number == step.number);
        assert!(!is_active, "{}: {step:?} is active and kept", run.id);
    }
    for ((_, opener, _), _) in rows::<BranchResults>(store, &number) {
        assert!(
            openers.contains(&opener),
            "{}: a result of {opener}",
            run.id
        );
    }
}

/// The block that a path leads to; `None` if the definition does not have its last step.
fn block_at(definition: &Definition, path: &ScopePath) -> Option<BlockIndex> {
    let down = path.0.last()?;
    let step = definition.steps.get(down.step.position())?;
    // All iterations execute the same block.
    let position = match step.kind {
        StepKind::ForEach(_) => 0,
        _ => down.position as usize,
    };
    let branch = definition.branches(down.step).get(position)?;
    Some(branch.block)
}

fn values<K>(rows: Vec<(K, Activation)>) -> Vec<Activation> {
    rows.into_iter().map(|(_, value)| value).collect()
}
