//! Targets and locks: which runs may not be open at the same time (W85).
//!
//! A run holds its target and its locks from its start until it ends; its next attempt takes them over. A start is
//! rejected if an open run has the same target and input, or if its target matches the lock of an open run. The runs
//! above the new one do not count.

use super::concurrency::{first_runs, id_of};
use super::exclusion_values;
use super::schema_check;
use crate::definition::Lock;
use crate::digest::sha256;
use crate::expression::Pattern;
use crate::ids::{LockNumber, Namespace, RunId, RunNumber};
use crate::limits::{EXPRESSION_UNIT_BYTES, OPEN_LOCKS_INSTRUCTIONS_MAX, OPEN_LOCKS_MAX};
use crate::start_rejection::StartRejection;
use crate::store::StoreError;
use crate::tables::{
    Exclusion, ExclusionRecord, Exclusions, LockCount, LockCounts, LockHolders, LockPlace, Locks,
    OpenLock, OpenLocks, RunTargetValue, SchemaChecks, TargetHolders,
};
use crate::turn::{ActivationRef, LoadedRun, Turn, TurnResult};

/// In a request for a check, in place of an activation: the run itself, whose locks are to be compiled.
pub const LOCKS: u64 = 0;

/// The target and locks that a start gives, instead of those of the definition.
#[derive(Clone, Default)]
pub(crate) struct GivenExclusion {
    pub(crate) target: Option<String>,
    pub(crate) locks: Option<Vec<Lock>>,
}

/// The target and locks of a run that is about to start.
pub(super) struct Prepared {
    pub(super) target: Option<RunTargetValue>,
    pub(super) locks: PreparedLocks,
    is_target_given: bool,
    are_locks_given: bool,
}

/// The locks of a run that is about to start.
pub(super) enum PreparedLocks {
    /// It can hold them immediately.
    Compiled(Vec<Lock>),
    /// Their patterns are to be compiled first.
    Patterns(Vec<String>),
}

/// Computes the target and locks of a new run; `None` without either.
pub(super) fn prepare(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    given: &GivenExclusion,
) -> TurnResult<Option<Prepared>> {
    let target = exclusion_values::target(turn, run, given)?;
    let locks = exclusion_values::locks(turn, run, given)?;
    let has_locks = match &locks {
        PreparedLocks::Compiled(locks) => !locks.is_empty(),
        PreparedLocks::Patterns(patterns) => !patterns.is_empty(),
    };
    let is_any = target.is_some() || has_locks;
    Ok(is_any.then_some(Prepared {
        target,
        locks,
        is_target_given: given.target.is_some(),
        are_locks_given: given.locks.is_some(),
    }))
}

/// The target and locks that a run has had, which it needs again to continue (W89); `None` without either.
pub(super) fn prepare_again(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
) -> Result<Option<Prepared>, StoreError> {
    let own = turn.get::<Exclusions>(&run)?;
    Ok(own.map(|own| Prepared {
        target: own.target.clone(),
        locks: match own.patterns.is_empty() {
            true => PreparedLocks::Compiled(Vec::new()),
            false => PreparedLocks::Patterns(own.patterns.clone()),
        },
        is_target_given: own.is_target_given,
        are_locks_given: own.are_locks_given,
    }))
}

/// Why a run may not start now, if it may not. The runs in `above` do not count.
pub(super) fn conflict(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    prepared: Option<&Prepared>,
    above: &[RunNumber],
) -> Result<Option<StartRejection>, StoreError> {
    let Some(prepared) = prepared else {
        return Ok(None);
    };
    if let Some(target) = &prepared.target {
        if let Some(run) = other_holder(turn, namespace, target, above)? {
            let (target, run) = (target.text.clone(), shown(turn, run)?);
            return Ok(Some(StartRejection::TargetActive { target, run }));
        }
        if let Some(locked) = locked_by(turn, namespace, target, above)? {
            return Ok(Some(locked));
        }
    }
    match &prepared.locks {
        PreparedLocks::Compiled(locks) => too_many(turn, namespace, locks),
        PreparedLocks::Patterns(_) => Ok(None),
    }
}

fn shown(turn: &mut Turn<'_, '_>, run: RunNumber) -> Result<RunId, StoreError> {
    Ok(id_of(turn, run)?.unwrap_or_else(|| RunId::generated(run)))
}

/// The run that has the same target and input.
fn other_holder(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    target: &RunTargetValue,
    above: &[RunNumber],
) -> Result<Option<RunNumber>, StoreError> {
    let holders = turn.get::<TargetHolders>(&(namespace.clone(), target.digest))?;
    let mut holders = holders.iter().flat_map(|holders| holders.iter());
    Ok(holders.find(|holder| !above.contains(holder)).copied())
}

/// The rejection of a target that matches a lock.
fn locked_by(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    target: &RunTargetValue,
    above: &[RunNumber],
) -> Result<Option<StartRejection>, StoreError> {
    for OpenLock { number, .. } in open_locks(turn, namespace)? {
        let lock = turn.get::<Locks>(&number)?;
        let lock = lock.expect("an open lock is kept");
        turn.spend_units(units(&lock.program, &target.text));
        if !lock.program.is_match(&target.text) {
            continue;
        }
        let count = turn.get::<LockCounts>(&number)?;
        let from = count.map_or(0, |count| count.first_holder);
        let holders = first_runs::<LockHolders, _>(turn, number, from, above.len() + 1)?;
        let other = holders.into_iter().find(|holder| !above.contains(holder));
        if let Some(other) = other {
            return Ok(Some(StartRejection::TargetLocked {
                target: target.text.clone(),
                pattern: lock.pattern.clone(),
                run: shown(turn, other)?,
            }));
        }
    }
    Ok(None)
}

/// What it costs to test a target, in units (W64).
fn units(program: &Pattern, target: &str) -> u32 {
    let units = program.cost(target) / EXPRESSION_UNIT_BYTES;
    u32::try_from(units).unwrap_or(u32::MAX)
}

fn open_locks(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<Vec<OpenLock>, StoreError> {
    let open = turn.get::<OpenLocks>(namespace)?;
    Ok(open.map_or_else(Vec::new, |open| open.to_vec()))
}

/// The rejection of locks that the namespace has no room for.
pub(super) fn too_many(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    locks: &[Lock],
) -> Result<Option<StartRejection>, StoreError> {
    let mut open = open_locks(turn, namespace)?;
    for lock in locks {
        note_open(&mut open, lock, LockNumber(0));
    }
    let instructions: u64 = open
        .iter()
        .map(|open| u64::from(open.instructions_count))
        .sum();
    let is_within =
        open.len() <= OPEN_LOCKS_MAX && instructions <= OPEN_LOCKS_INSTRUCTIONS_MAX as u64;
    Ok((!is_within && !locks.is_empty()).then_some(StartRejection::LocksTooMany))
}

/// Adds a lock to the open ones, unless it is one of them. True if it was added.
fn note_open(open: &mut Vec<OpenLock>, lock: &Lock, number: LockNumber) -> bool {
    let digest = sha256(&lock.pattern);
    if open.iter().any(|open| open.digest == digest) {
        return false;
    }
    let instructions_count = u32::try_from(lock.program.instructions.len());
    open.push(OpenLock {
        number,
        digest,
        instructions_count: instructions_count.unwrap_or(u32::MAX),
    });
    true
}

/// From now on, a new run holds its target and its locks; if they are not compiled yet, this is requested.
pub(super) fn hold(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    prepared: Prepared,
) -> Result<(), StoreError> {
    if let Some(target) = &prepared.target {
        let key = (run.record.namespace.clone(), target.digest);
        let holders = turn.get::<TargetHolders>(&key)?;
        let mut holders = holders.map_or_else(Vec::new, |holders| holders.to_vec());
        holders.push(run.number);
        turn.put::<TargetHolders>(&key, holders);
    }
    let patterns = match prepared.locks {
        PreparedLocks::Compiled(locks) => {
            let patterns = locks.iter().map(|lock| lock.pattern.clone()).collect();
            hold_locks(turn, run, locks)?;
            patterns
        }
        PreparedLocks::Patterns(patterns) => {
            run.record.start_limits.exclusion = Some(Exclusion::Compiling);
            request(turn, run.number);
            patterns
        }
    };
    let record = ExclusionRecord {
        target: prepared.target,
        patterns,
        is_target_given: prepared.is_target_given,
        are_locks_given: prepared.are_locks_given,
    };
    turn.put::<Exclusions>(&run.number, record);
    Ok(())
}

/// Requests that the locks of a run are compiled.
pub(super) fn request(turn: &mut Turn<'_, '_>, run: RunNumber) {
    let activation = LOCKS;
    schema_check::request(turn, ActivationRef { run, activation });
}

/// From now on, a run holds these locks; the namespace has room for them.
pub(super) fn hold_locks(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    locks: Vec<Lock>,
) -> Result<(), StoreError> {
    let mut places = Vec::with_capacity(locks.len());
    for lock in locks {
        let lock = number(turn, &run.record.namespace, lock)?;
        let position = turn.edit::<LockCounts, _>(&lock, |count| {
            let position = count.next_position;
            if count.holders_count == 0 {
                count.first_holder = position;
            }
            count.holders_count += 1;
            count.next_position += 1;
            position
        })?;
        let position = position.expect("an open lock has a count");
        turn.put::<LockHolders>(&(lock, position), run.number);
        places.push(LockPlace { lock, position });
    }
    run.record.start_limits.exclusion = Some(Exclusion::Held { locks: places });
    Ok(())
}

/// The number of a lock; one that no run holds yet gets a new one.
fn number(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    lock: Lock,
) -> Result<LockNumber, StoreError> {
    let mut open = open_locks(turn, namespace)?;
    let digest = sha256(&lock.pattern);
    if let Some(open) = open.iter().find(|open| open.digest == digest) {
        return Ok(open.number);
    }
    let number = LockNumber(turn.next_number(|cluster| &mut cluster.locks_count));
    note_open(&mut open, &lock, number);
    turn.put::<OpenLocks>(namespace, open);
    turn.put::<Locks>(&number, lock);
    turn.put::<LockCounts>(&number, LockCount::default());
    Ok(number)
}

/// A run that has ended holds neither its target nor its locks.
pub(super) fn release(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Result<(), StoreError> {
    let Some(held) = run.record.start_limits.take(|limits| &mut limits.exclusion) else {
        return Ok(());
    };
    run.record.start_limits.exclusion = Some(Exclusion::Released);
    match held {
        Exclusion::Released => return Ok(()),
        Exclusion::Compiling => turn.delete::<SchemaChecks>(&(run.number, LOCKS)),
        Exclusion::Held { locks } => {
            for place in locks {
                leave(turn, &run.record.namespace, place)?;
            }
        }
    }
    let own = turn.get::<Exclusions>(&run.number)?;
    let target = own.as_ref().and_then(|own| own.target.as_ref());
    if let Some(target) = target {
        let key = (run.record.namespace.clone(), target.digest);
        edit_holders(turn, &key, |holders| {
            holders.retain(|holder| *holder != run.number);
        })?;
    }
    Ok(())
}

/// Changes the runs that have a target and input. The row is deleted with the last one.
fn edit_holders(
    turn: &mut Turn<'_, '_>,
    key: &(Namespace, [u8; 32]),
    change: impl FnOnce(&mut Vec<RunNumber>),
) -> Result<(), StoreError> {
    let is_unused = turn.edit::<TargetHolders, _>(key, |holders| {
        change(holders);
        holders.is_empty()
    })?;
    if is_unused == Some(true) {
        turn.delete::<TargetHolders>(key);
    }
    Ok(())
}

/// A run no longer holds a lock. A lock that no run holds is deleted.
fn leave(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    place: LockPlace,
) -> Result<(), StoreError> {
    let LockPlace { lock, position } = place;
    turn.delete::<LockHolders>(&(lock, position));
    let is_unused = turn.edit::<LockCounts, _>(&lock, |count| {
        count.holders_count -= 1;
        if count.first_holder == position {
            count.first_holder = position + 1;
        }
        count.holders_count == 0
    })?;
    if is_unused != Some(true) {
        return Ok(());
    }
    turn.delete::<Locks>(&lock);
    turn.delete::<LockCounts>(&lock);
    let is_last = turn.edit::<OpenLocks, _>(namespace, |open| {
        open.retain(|open| open.number != lock);
        open.is_empty()
    })?;
    if is_last == Some(true) {
        turn.delete::<OpenLocks>(namespace);
    }
    Ok(())
}

/// The next attempt at a run takes over its target and its locks (W77).
pub(super) fn hand_over(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    next: RunNumber,
) -> TurnResult<()> {
    let Some(held) = run.record.start_limits.take(|limits| &mut limits.exclusion) else {
        return Ok(());
    };
    run.record.start_limits.exclusion = Some(Exclusion::Released);
    let own = turn.get::<Exclusions>(&run.number)?;
    let own = own.expect("what a run holds is kept with it");
    if let Some(target) = &own.target {
        let key = (run.record.namespace.clone(), target.digest);
        edit_holders(turn, &key, |holders| {
            for holder in holders.iter_mut().filter(|holder| **holder == run.number) {
                *holder = next;
            }
        })?;
    }
    if let Exclusion::Held { locks } = &held {
        for place in locks {
            turn.put::<LockHolders>(&(place.lock, place.position), next);
        }
    }
    turn.put::<Exclusions>(&next, own);
    let mut next = turn.load_run(next)?;
    next.record.start_limits.exclusion = Some(held);
    turn.put_back_run(next);
    Ok(())
}
