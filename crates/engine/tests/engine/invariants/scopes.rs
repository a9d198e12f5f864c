//! The scopes of a run form a tree, and every branch is accounted for once (W53, W56).

use super::{read, rows};
use flotilla_engine::definition::Definition;
use flotilla_engine::ids::{RunNumber, ScopeNumber};
use flotilla_engine::rows::{
    Activation, ActivationState, Activations, BranchResults, RunRecord, Scopes, States,
};
use flotilla_engine::store::MemoryStore;

pub(super) fn check(
    store: &MemoryStore,
    number: RunNumber,
    run: &RunRecord,
    definition: &Definition,
) {
    let scopes = rows::<Scopes>(store, &number);
    let results = rows::<BranchResults>(store, &number);
    let active = rows::<Activations>(store, &number);
    let written = rows::<States>(store, &number);
    let written = written
        .iter()
        .filter(|((_, scope), _)| *scope != ScopeNumber::ROOT);
    let written_bytes: usize = written.map(|(_, state)| state.object.as_str().len()).sum();
    assert_eq!(run.state_writes_bytes, written_bytes as u64, "{}", run.id);
    if !run.status.is_open() {
        assert!(scopes.is_empty(), "{} ended with open scopes", run.id);
        assert_eq!(written_bytes, 0, "{} ended with writes of scopes", run.id);
        assert!(
            results.is_empty(),
            "{} ended with results of branches",
            run.id
        );
        return;
    }
    let is_whole = run.continuation.is_none();
    for ((_, own), scope) in &scopes {
        let opener = read::<Activations>(store, &(number, scope.opener));
        let opener = opener.unwrap_or_else(|| panic!("{}: {own:?} has no opener", run.id));
        let ActivationState::Branches(branches) = opener.state else {
            panic!("{}: {own:?} was opened by {opener:?}", run.id);
        };
        assert_eq!(scope.id.number, *own);
        assert_eq!(branches.scope(scope.position), *own);
        assert_eq!(scope.parent, opener.scope, "{}: {own:?}", run.id);
        let tokens = active
            .iter()
            .filter(|(_, active)| active.scope == *own)
            .count();
        assert!(
            tokens == 1 || (tokens == 0 && !is_whole),
            "{}: {own:?}",
            run.id
        );
    }
    let of_run = active
        .iter()
        .filter(|(_, active)| active.scope == ScopeNumber::ROOT);
    let tokens = of_run.count();
    assert!(
        tokens == 1 || (tokens == 0 && !is_whole),
        "{}: {tokens} tokens",
        run.id
    );
    let mut joined_count = 0;
    for (_, active) in &active {
        joined_count += joined(&scopes_of(&scopes, active), active, definition, is_whole);
    }
    assert_eq!(joined_count, results.len(), "{}", run.id);
}

fn scopes_of(
    scopes: &[((RunNumber, ScopeNumber), flotilla_engine::rows::ScopeRecord)],
    active: &Activation,
) -> Vec<u32> {
    let own = scopes
        .iter()
        .filter(|(_, scope)| scope.opener == active.number);
    own.map(|(_, scope)| scope.position).collect()
}

/// How many branches of the step have ended and left their results.
fn joined(open: &[u32], active: &Activation, definition: &Definition, is_whole: bool) -> usize {
    let ActivationState::Branches(state) = active.state else {
        assert!(open.is_empty(), "{active:?} opens no scopes");
        return 0;
    };
    let count = definition.branches(active.step).len();
    let (begun_count, ended_count) = (state.begun_count as usize, state.ended_count as usize);
    assert_eq!(begun_count, open.len() + ended_count, "{active:?}");
    let is_decided = state.decision.is_some();
    assert!(begun_count == count || (begun_count < count && (is_decided || !is_whole)));
    if is_decided && begun_count == ended_count {
        // The results went into that of the step, which a later entry leaves.
        assert!(!is_whole, "{active:?} has ended");
        return 0;
    }
    assert!(!is_decided || !is_whole, "{active:?} is decided");
    ended_count
}
