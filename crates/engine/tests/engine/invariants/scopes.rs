//! The scopes of a run form a tree, and every branch is accounted for once (W53, W56).

use super::{read, resumable, rows};
use flotilla_engine::definition::Definition;
use flotilla_engine::ids::{RunNumber, ScopeNumber};
use flotilla_engine::rows::{
    Activation, ActivationState, Activations, BranchResults, Items, IterationResults,
    ResumableScopes, RunRecord, RunStatus, Runs, ScopeRecord, Scopes, States, UndoOwner,
};
use flotilla_engine::store::MemoryStore;

pub(super) fn check(
    store: &MemoryStore,
    number: RunNumber,
    run: &RunRecord,
    definition: &Definition,
) {
    resumable::check(store, number, run, definition);
    let scopes = rows::<Scopes>(store, &number);
    let active = rows::<Activations>(store, &number);
    let results = rows::<BranchResults>(store, &number);
    let is_active = |opener: u64| active.iter().any(|(_, one)| one.number == opener);
    let results = results
        .iter()
        .filter(|((_, opener, _), _)| is_active(*opener));
    let results_count = results.count();
    let written_bytes = check_written(store, number, run);
    if !run.status.is_open() {
        assert!(scopes.is_empty(), "{} ended with open scopes", run.id);
        let is_whole = run.continuation.is_none();
        assert!(
            !is_whole || written_bytes == 0 || resumable::may_be_resumed(run),
            "{} ended with writes of scopes",
            run.id
        );
        return;
    }
    let is_whole = run.continuation.is_none();
    for ((_, own), scope) in &scopes {
        let opener = read::<Activations>(store, &(number, scope.opener));
        let opener = opener.unwrap_or_else(|| panic!("{}: {own:?} has no opener", run.id));
        let expected = match opener.state {
            ActivationState::Branches(branches) => branches.scope(scope.position),
            ActivationState::Iterations(iterations) => iterations.scope(scope.position),
            _ => panic!("{}: {own:?} was opened by {opener:?}", run.id),
        };
        assert_eq!(scope.id.number, *own);
        assert_eq!(expected, *own);
        assert_eq!(scope.parent, opener.scope, "{}: {own:?}", run.id);
        let tokens = active
            .iter()
            .filter(|(_, active)| active.scope == *own && is_token(active))
            .count();
        let may_be_empty = !is_whole || scope.cancelling.is_some();
        assert!(
            tokens == 1 || (tokens == 0 && may_be_empty),
            "{}: {own:?}",
            run.id
        );
    }
    check_root(run, &active);
    let mut joined_count = 0;
    for (_, active) in &active {
        if let ActivationState::Iterations(_) = active.state {
            check_items(store, number, active, is_whole);
            continue;
        }
        let is_cancelled =
            active.ending.cancelled_with.is_some() || has_cancelled_scope(&scopes, active);
        let may_be_decided = !is_whole || is_cancelled;
        joined_count += joined(
            &scopes_of(&scopes, active),
            active,
            definition,
            may_be_decided,
        );
    }
    check_cancelling(run, &scopes, &active);
    assert_eq!(joined_count, results_count, "{}", run.id);
}

/// Checks what the scopes have written; returns its size, in bytes.
fn check_written(store: &MemoryStore, number: RunNumber, run: &RunRecord) -> usize {
    let states = rows::<States>(store, &number);
    for ((_, scope), state) in &states {
        let is_below = *scope != ScopeNumber::ROOT;
        assert!(
            is_below || state.removed.is_empty(),
            "{} hides keys",
            run.id
        );
        let object = state.object.as_str();
        let is_null = |key: &String| object.contains(&format!("\"{key}\":null"));
        assert!(state.removed.iter().all(is_null), "{}: {object}", run.id);
    }
    let written = states
        .iter()
        .filter(|((_, scope), _)| *scope != ScopeNumber::ROOT);
    let written_bytes: usize = written.map(|(_, state)| state.object.as_str().len()).sum();
    assert_eq!(
        run.scopes.state_writes_bytes, written_bytes as u64,
        "{}",
        run.id
    );
    written_bytes
}

/// The run itself stands at one step, unless it has not begun or is about to end.
fn check_root(run: &RunRecord, active: &[ActivationRow]) {
    let of_run = active
        .iter()
        .filter(|(_, active)| active.scope == ScopeNumber::ROOT && is_token(active));
    let tokens = of_run.count();
    let is_whole = run.continuation.is_none();
    let has_begun = run.status != RunStatus::Pending;
    let is_undoing = active.iter().any(|(_, active)| !is_token(active));
    let may_be_empty = !has_begun || !is_whole || is_undoing || run.fixed_end.is_some();
    assert!(
        tokens == 1 || (tokens == 0 && may_be_empty),
        "{}: {tokens} tokens",
        run.id
    );
}

/// Each item that is left has a row, and each iteration is open, has ended or is still to come (W57).
fn check_items(store: &MemoryStore, number: RunNumber, active: &Activation, is_whole: bool) {
    let ActivationState::Iterations(state) = &active.state else {
        panic!("it has no items");
    };
    let key = (number, active.number);
    let open = scopes_of(&rows::<Scopes>(store, &number), active);
    let open_count = u32::try_from(open.len()).expect("few are open");
    assert_eq!(
        state.begun_count,
        open_count + state.ended_count + state.resumable_count,
        "{state:?}"
    );
    assert!(state.begun_count <= state.total_count, "{state:?}");
    assert!(state.good_count + state.failed_count <= state.ended_count);
    let items = rows::<Items>(store, &key);
    let items: Vec<u32> = items.into_iter().map(|((_, _, index), _)| index).collect();
    let left = open.iter().copied();
    let continues = |index: &u32| {
        let scope = (number, state.scope(*index));
        let is_kept = read::<ResumableScopes>(store, &scope).is_some();
        state.may_continue(*index) && is_kept
    };
    let left = left.chain((0..state.begun_count).filter(continues));
    let mut left: Vec<u32> = left.chain(state.begun_count..state.total_count).collect();
    left.sort_unstable();
    // The items of a step that was cancelled may not have been stored yet, and the step ends with its scope.
    let may_differ = !is_whole || active.ending.cancelled_with.is_some();
    assert!(may_differ || items == left, "{items:?} of {left:?}");
    let results = rows::<IterationResults>(store, &key).len();
    let ended_count = state.good_count + state.failed_count + state.resumable_count;
    assert!(results <= ended_count as usize);
    let is_undoing = active.ending.undoing.is_some();
    assert!(
        may_differ || is_undoing || !state.have_all_ended(),
        "{state:?} has ended"
    );
}

/// An activation and its key.
type ActivationRow = ((RunNumber, u64), Activation);

/// A scope and its key.
type ScopeRow = ((RunNumber, ScopeNumber), ScopeRecord);

fn scopes_of(scopes: &[ScopeRow], active: &Activation) -> Vec<u32> {
    let own = scopes
        .iter()
        .filter(|(_, scope)| scope.opener == active.number);
    own.map(|(_, scope)| scope.position).collect()
}

/// Whether the step waits for a scope that was cancelled.
fn has_cancelled_scope(scopes: &[ScopeRow], active: &Activation) -> bool {
    let is_cancelled = |scope: &ScopeRecord| scope.cancelling.is_some();
    let mut own = scopes
        .iter()
        .filter(|(_, scope)| scope.opener == active.number);
    own.any(|(_, scope)| is_cancelled(scope))
}

/// A cancelled scope knows how many steps it waits for, and each of these waits for something that ends (W54).
fn check_cancelling(run: &RunRecord, scopes: &[ScopeRow], active: &[ActivationRow]) {
    let count = |number: ScopeNumber| {
        let counted = active.iter().filter(|(_, active)| {
            active.ending.cancelled_with == Some(number) && !active.state.opens_scopes()
        });
        u32::try_from(counted.count()).expect("few are active")
    };
    let of_run = run.fixed_end.as_ref().map(|end| end.cancelling_count);
    assert_eq!(
        count(ScopeNumber::ROOT),
        of_run.unwrap_or_default(),
        "{}",
        run.id
    );
    for ((_, number), scope) in scopes {
        let is_outermost = active
            .iter()
            .any(|(_, active)| active.ending.cancelled_with == Some(*number));
        let expected = scope.cancelling.unwrap_or_default();
        assert!(
            !is_outermost || count(*number) == expected,
            "{}: {number:?}",
            run.id
        );
        let is_outermost = scope.cancelling.is_some_and(|waiting| waiting > 0);
        assert!(
            !is_outermost || count(*number) == expected,
            "{}: {number:?}",
            run.id
        );
    }
    for (_, active) in active {
        let is_known = matches!(
            active.state,
            ActivationState::Action(_) | ActivationState::Child(_) | ActivationState::Plan(_)
        );
        // Its result was there when it was cancelled, and is processed later.
        let is_deferred = active.state.is_executing() && run.continuation.is_some();
        let may_stop = is_known || is_deferred || active.state.opens_scopes();
        assert!(!active.is_stopping() || may_stop, "{active:?} stops");
    }
}

/// How many branches of the step have ended and left their results.
fn joined(
    open: &[u32],
    active: &Activation,
    definition: &Definition,
    may_be_decided: bool,
) -> usize {
    let ActivationState::Branches(state) = active.state else {
        assert!(open.is_empty(), "{active:?} opens no scopes");
        return 0;
    };
    let count = definition.branches(active.step).len();
    let (begun_count, ended_count) = (state.begun_count as usize, state.ended_count as usize);
    assert_eq!(begun_count, open.len() + ended_count, "{active:?}");
    let is_decided = state.decision.is_some();
    assert!(begun_count == count || (begun_count < count && (is_decided || may_be_decided)));
    if is_decided && begun_count == ended_count {
        // A later entry leaves the step.
        assert!(
            may_be_decided || active.ending.undoing.is_some(),
            "{active:?} has ended"
        );
        return ended_count;
    }
    assert!(!is_decided || may_be_decided, "{active:?} is decided");
    ended_count
}

/// Whether an active step is where its scope stands: a compensation is made beside it.
fn is_token(active: &Activation) -> bool {
    !active.call.is_compensation()
}

/// Whether a step with blocks waits for one of them, or for a compensation of what was done in them.
pub(super) fn are_open(store: &MemoryStore, number: RunNumber, active: &Activation) -> bool {
    let scopes = rows::<Scopes>(store, &number);
    let activations = rows::<Activations>(store, &number);
    let owner = Some(UndoOwner::Step(active.number));
    let is_undoing = activations
        .iter()
        .any(|(_, other)| other.undoes_for() == owner);
    // A later entry starts the next compensation, or ends the step, which was cancelled, with the cancelled scope.
    let run = read::<Runs>(store, &number).expect("the run");
    let is_between = active.ending.cancelled_with.is_some()
        || (active.ending.undoing.is_some() && run.continuation.is_some());
    let mut scopes = scopes.iter();
    is_undoing || is_between || scopes.any(|(_, open)| open.opener == active.number)
}
