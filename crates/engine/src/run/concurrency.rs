//! Concurrency keys: how many runs with the same value run at the same time (W84).
//!
//! A run holds all its keys or none. While one is at its limit, the run waits in the queue of each of them, and it begins
//! when it is the first one in all these queues and none of the keys is at its limit: no run overtakes another one. The
//! run that leaves a key, or a queue, wakes the first one that waits there.

use super::{child, concurrency_key, cursor};
use crate::definition::OnLimit;
use crate::ids::{ConcurrencyKeyNumber, RunId, RunNumber, ScopeNumber};
use crate::limits::{CONCURRENCY_CANCELLED_MAX, CONCURRENCY_LISTED_MAX, CONCURRENCY_WAITING_MAX};
use crate::rejection::Rejection;
use crate::run::work_queue::WorkQueue;
use crate::start_rejection::StartRejection;
use crate::store::StoreError;
use crate::tables::{
    ConcurrencyHolders, ConcurrencyKey, ConcurrencyKeyNumbers, ConcurrencyKeyRecord,
    ConcurrencyKeys, ConcurrencyPlace, ConcurrencyQueue, EventKind, Key, Replacement,
    RunConcurrency, Table, Work,
};
use crate::turn::{LoadedRun, Turn, TurnResult};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a request for concurrency keys gives a run.
pub(super) enum Acquired {
    /// It holds them, and begins now.
    Held,
    /// It waits for them. If it replaces another run, this work cancels that one.
    Queued(Option<Work>),
    /// This run is used instead.
    Existing(RunNumber),
}

/// How a run requests its keys.
pub(super) struct Request<'k> {
    /// The keys that a run above it holds: it needs no place there.
    pub(super) held_above: &'k [ConcurrencyKeyNumber],
    /// Whether another run can be used instead: otherwise, `existing` rejects the run.
    pub(super) may_use_existing: bool,
    /// Whether the attempt before the run has held the keys, and hands them over (W77).
    pub(super) is_handed_over: bool,
    /// Why the run may not start even if it gets its keys (W85). A run that is used instead is not concerned.
    pub(super) conflict: Option<StartRejection>,
}

/// A key that a run needs.
struct Wanted {
    key: ConcurrencyKey,
    limit: u32,
    on_limit: OnLimit,
    /// The key's number and record, if another run holds the key or waits for it.
    known: Option<(ConcurrencyKeyNumber, Arc<ConcurrencyKeyRecord>)>,
}

impl Wanted {
    /// Whether the key is below its limit and no run waits for it.
    fn is_free(&self) -> bool {
        let known = self.known.as_ref();
        known.is_none_or(|(_, record)| {
            record.holders_count < self.limit && record.waiting_count == 0
        })
    }

    /// Whether the run replaces one that holds the key.
    fn is_replacing(&self) -> bool {
        self.on_limit == OnLimit::CancelOldest && !self.is_free()
    }
}

/// Requests the keys of a run that is about to begin. The run is rejected if a key has no value, or if its definition says
/// so.
pub(super) fn acquire(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    request: &Request<'_>,
) -> TurnResult<Acquired> {
    if request.is_handed_over {
        return Ok(Acquired::Held);
    }
    let wanted = wanted(turn, run, request)?;
    let blocked: Vec<&Wanted> = wanted.iter().filter(|wanted| !wanted.is_free()).collect();
    let is_held = blocked.is_empty();
    if let Some(wanted) = find(&blocked, OnLimit::Reject) {
        return Err(limit_reached(turn, wanted)?.into());
    }
    if let Some(wanted) = find(&blocked, OnLimit::Existing)
        && let Some(oldest) = oldest(turn, wanted)?
    {
        return Ok(Acquired::Existing(oldest));
    }
    if let Some(conflict) = &request.conflict {
        return Err(Rejection::from(conflict.clone()).into());
    }
    if !is_held && let Some(full) = wanted.iter().find(|wanted| is_queue_full(wanted)) {
        let key = concurrency_key::shown(&full.key);
        return Err(Rejection::from(StartRejection::QueueFull(key)).into());
    }
    let first_blocked = wanted.iter().position(|wanted| !wanted.is_free());
    let mut places = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let (limit, is_replacing) = (wanted.limit, wanted.is_replacing());
        let key = number(turn, wanted.key)?;
        let position = join(turn, run.number, key, is_held)?;
        places.push(ConcurrencyPlace {
            key,
            position,
            limit,
            is_replacing,
        });
    }
    if let Some(first_blocked) = first_blocked {
        note_waiting(turn, run, places[first_blocked].key)?;
    }
    let replaces = places.iter().any(|place| place.is_replacing);
    run.record.start_limits.concurrency =
        (!places.is_empty()).then_some(RunConcurrency { is_held, places });
    Ok(match is_held {
        true => Acquired::Held,
        false => Acquired::Queued(
            replaces.then_some(Work::ReplaceHolders(Replacement { place: 0, from: 0 })),
        ),
    })
}

fn find<'w>(blocked: &[&'w Wanted], on_limit: OnLimit) -> Option<&'w Wanted> {
    let mut blocked = blocked.iter().copied();
    blocked.find(|wanted| wanted.on_limit == on_limit)
}

fn is_queue_full(wanted: &Wanted) -> bool {
    let known = wanted.known.as_ref();
    known.is_some_and(|(_, record)| record.waiting_count >= CONCURRENCY_WAITING_MAX)
}

/// The keys that a run needs, each of them once. Of several limits of the same key, the strictest one counts.
fn wanted(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    request: &Request<'_>,
) -> TurnResult<Vec<Wanted>> {
    let definition = run.definition.clone();
    let mut all: Vec<Wanted> = Vec::new();
    for limit in &definition.definition.concurrency {
        let Some(key) = concurrency_key::resolve(turn, run, limit)? else {
            continue;
        };
        let on_limit = match limit.on_limit {
            OnLimit::Existing if !request.may_use_existing => OnLimit::Reject,
            on_limit => on_limit,
        };
        if let Some(same) = all.iter_mut().find(|wanted| wanted.key == key) {
            same.limit = same.limit.min(limit.limit);
            same.on_limit = same.on_limit.max(on_limit);
            continue;
        }
        let number = turn.get::<ConcurrencyKeyNumbers>(&key)?;
        let known = match number {
            Some(number) if request.held_above.contains(&number) => continue,
            Some(number) => Some((*number, record(turn, *number)?)),
            None => None,
        };
        all.push(Wanted {
            key,
            limit: limit.limit,
            on_limit,
            known,
        });
    }
    Ok(all)
}

/// The record of a key that a run holds or waits for.
fn record(
    turn: &mut Turn<'_, '_>,
    key: ConcurrencyKeyNumber,
) -> Result<Arc<ConcurrencyKeyRecord>, StoreError> {
    let record = turn.get::<ConcurrencyKeys>(&key)?;
    Ok(record.expect("a key is kept as long as a run holds or awaits it"))
}

/// The rejection of a start at a limit, with the runs that hold the key.
fn limit_reached(turn: &mut Turn<'_, '_>, wanted: &Wanted) -> Result<Rejection, StoreError> {
    let mut holders = Vec::new();
    if let Some((number, record)) = &wanted.known {
        let first = record.first_holder;
        for run in
            first_runs::<ConcurrencyHolders, _>(turn, *number, first, CONCURRENCY_LISTED_MAX)?
        {
            holders.extend(id_of(turn, run)?);
        }
    }
    Ok(Rejection::from(StartRejection::LimitReached {
        key: concurrency_key::shown(&wanted.key),
        limit: wanted.limit,
        holders,
    }))
}

/// The id under which others know a run.
pub(super) fn id_of(turn: &mut Turn<'_, '_>, run: RunNumber) -> Result<Option<RunId>, StoreError> {
    let first = first_attempt(turn, run)?;
    Ok(turn.run_record(first)?.map(|run| run.id.clone()))
}

/// The run that has held the key for the longest time; if none holds it, the one that has waited for the longest time.
fn oldest(turn: &mut Turn<'_, '_>, wanted: &Wanted) -> Result<Option<RunNumber>, StoreError> {
    let Some((number, record)) = &wanted.known else {
        return Ok(None);
    };
    let holders = first_runs::<ConcurrencyHolders, _>(turn, *number, record.first_holder, 1)?;
    let oldest = match holders.first() {
        Some(oldest) => Some(*oldest),
        None => first_waiting(turn, *number)?.map(|(_, first)| first),
    };
    match oldest {
        Some(oldest) => Ok(Some(first_attempt(turn, oldest)?)),
        None => Ok(None),
    }
}

/// The first attempt at a run, by which others know it (W77).
fn first_attempt(turn: &mut Turn<'_, '_>, run: RunNumber) -> Result<RunNumber, StoreError> {
    let record = turn.run_record(run)?;
    Ok(record.map_or(run, |record| record.first_attempt(run)))
}

/// The first runs that hold a key or wait for it; there are none before `from`.
pub(super) fn first_runs<T: Table<Key = (K, u64), Record = RunNumber>, K: Key>(
    turn: &Turn<'_, '_>,
    key: K,
    from: u64,
    count_max: usize,
) -> Result<Vec<RunNumber>, StoreError> {
    let mut runs = Vec::new();
    let first = (key.clone(), from);
    turn.visit_from::<T>(&key, &first, |_, run| {
        runs.push(*run);
        match runs.len() < count_max {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(runs)
}

/// The number of a key; a key that no run holds or awaits gets a new one.
fn number(
    turn: &mut Turn<'_, '_>,
    key: ConcurrencyKey,
) -> Result<ConcurrencyKeyNumber, StoreError> {
    if let Some(number) = turn.get::<ConcurrencyKeyNumbers>(&key)? {
        return Ok(*number);
    }
    let number = turn.next_number(|cluster| &mut cluster.concurrency_keys_count);
    let number = ConcurrencyKeyNumber(number);
    turn.put::<ConcurrencyKeyNumbers>(&key, number);
    turn.put::<ConcurrencyKeys>(&number, ConcurrencyKeyRecord::new(key));
    Ok(number)
}

/// Adds a run to those that hold a key, or to those that wait for it; returns its position there.
fn join(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    key: ConcurrencyKeyNumber,
    is_held: bool,
) -> Result<u64, StoreError> {
    let position = turn.edit::<ConcurrencyKeys, _>(&key, |record| record.join(is_held))?;
    let position = position.expect("a key that a run joins exists");
    match is_held {
        true => turn.put::<ConcurrencyHolders>(&(key, position), run),
        false => turn.put::<ConcurrencyQueue>(&(key, position), run),
    }
    Ok(position)
}

/// Removes a run from those that hold a key, or from those that wait for it. A key that no run holds or
/// awaits is deleted.
fn leave(
    turn: &mut Turn<'_, '_>,
    place: ConcurrencyPlace,
    is_held: bool,
) -> Result<(), StoreError> {
    let ConcurrencyPlace { key, position, .. } = place;
    match is_held {
        true => turn.delete::<ConcurrencyHolders>(&(key, position)),
        false => turn.delete::<ConcurrencyQueue>(&(key, position)),
    }
    let unused = turn.edit::<ConcurrencyKeys, _>(&key, |record| {
        record.leave(position, is_held);
        record.is_unused().then(|| record.key.clone())
    })?;
    if let Some(unused) = unused.flatten() {
        turn.delete::<ConcurrencyKeys>(&key);
        turn.delete::<ConcurrencyKeyNumbers>(&unused);
    }
    Ok(())
}

/// The place in the queue, and the run, that comes next.
fn first_waiting(
    turn: &mut Turn<'_, '_>,
    key: ConcurrencyKeyNumber,
) -> Result<Option<(u64, RunNumber)>, StoreError> {
    let Some(record) = turn.get::<ConcurrencyKeys>(&key)? else {
        return Ok(None);
    };
    if record.waiting_count == 0 {
        return Ok(None);
    }
    let mut first = None;
    let from = (key, record.first_waiting);
    turn.visit_from::<ConcurrencyQueue>(&key, &from, |(_, position), run| {
        first = Some((position, *run));
        ControlFlow::Break(())
    })?;
    // A later search skips the tombstones that this one has visited.
    if let Some((position, _)) = first.filter(|(position, _)| *position > record.first_waiting) {
        turn.edit::<ConcurrencyKeys, _>(&key, |record| record.first_waiting = position)?;
    }
    Ok(first)
}

/// Queues a check of whether the first run that waits for a key can begin.
fn wake(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    key: ConcurrencyKeyNumber,
) -> Result<(), StoreError> {
    if let Some((_, first)) = first_waiting(turn, key)? {
        queue.push(first, Work::TakeKeys);
    }
    Ok(())
}

/// Begins a waiting run, if it comes next at all its keys and none of them is at its limit.
pub(super) fn take(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<()> {
    let Some(awaited) = run.record.awaited_keys().map(<[_]>::to_vec) else {
        return Ok(());
    };
    for place in &awaited {
        let is_first =
            first_waiting(turn, place.key)?.is_some_and(|(first, _)| first == place.position);
        if !is_first || record(turn, place.key)?.holders_count >= place.limit {
            return Ok(());
        }
    }
    let mut places = Vec::with_capacity(awaited.len());
    for place in awaited {
        // Join the holders before leaving the queue, so that the key is not deleted.
        let position = join(turn, run.number, place.key, true)?;
        places.push(ConcurrencyPlace { position, ..place });
        leave(turn, place, false)?;
        wake(turn, queue, place.key)?;
    }
    run.record.start_limits.concurrency = Some(RunConcurrency {
        is_held: true,
        places,
    });
    run.end_wait(ScopeNumber::ROOT);
    // It begins when its locks are compiled.
    if run.record.awaits_locks() {
        return Ok(());
    }
    run.note_run(EventKind::RunBegan);
    queue.push(run.number, cursor::first_work(run));
    if let Some((parent, work)) = child::began(run) {
        queue.push(parent, work);
    }
    Ok(())
}

/// Whether a run waits for its keys or its locks.
pub(super) fn is_waiting(turn: &mut Turn<'_, '_>, run: RunNumber) -> Result<bool, StoreError> {
    let record = turn.run_record(run)?;
    Ok(record.is_some_and(|record| record.is_held_up()))
}

/// The run has ended: it no longer holds its keys, nor waits for them.
pub(super) fn release(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> Result<(), StoreError> {
    let Some(own) = run
        .record
        .start_limits
        .take(|limits| &mut limits.concurrency)
    else {
        return Ok(());
    };
    for place in own.places {
        leave(turn, place, own.is_held)?;
        wake(turn, queue, place.key)?;
    }
    Ok(())
}

/// The next attempt at a run takes over its keys (W77).
pub(super) fn hand_over(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    next: RunNumber,
) -> TurnResult<()> {
    let Some(own) = run
        .record
        .start_limits
        .take(|limits| &mut limits.concurrency)
    else {
        return Ok(());
    };
    assert!(own.is_held, "a run that has begun holds its keys");
    for place in &own.places {
        turn.put::<ConcurrencyHolders>(&(place.key, place.position), next);
    }
    let mut next = turn.load_run(next)?;
    next.record.start_limits.concurrency = Some(own);
    turn.put_back_run(next);
    Ok(())
}

/// At each key with `cancel_oldest`, cancels the runs that wait before this one, in batches. If the key is at its limit,
/// it then cancels the run that has held it for the longest time.
pub(super) fn replace(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    next: Replacement,
) -> TurnResult<()> {
    let awaited = run.record.awaited_keys();
    let place = awaited.and_then(|places| places.get(next.place as usize));
    let Some(place) = place.copied() else {
        return Ok(());
    };
    let mut before = Vec::new();
    if place.is_replacing {
        before = waiting_before(turn, place, next.from)?;
    }
    let reason = format!("replaced by run {}", run.record.id);
    let cancel = || Work::Cancel {
        reason: Some(reason.clone()),
    };
    let after = match before.last() {
        Some((position, _)) if before.len() == CONCURRENCY_CANCELLED_MAX => Replacement {
            from: position + 1,
            ..next
        },
        _ => Replacement {
            place: next.place + 1,
            from: 0,
        },
    };
    queue.push(run.number, Work::ReplaceHolders(after));
    if place.is_replacing
        && after.place > next.place
        && record(turn, place.key)?.holders_count >= place.limit
        && let Some(holder) = oldest_cancellable(turn, place.key)?
    {
        queue.push(holder, cancel());
    }
    // The last run is cancelled first, so that none of these runs reaches the head of the queue and begins.
    for (_, waiting) in before {
        queue.push(waiting, cancel());
    }
    Ok(())
}

/// The first runs in the queue of a key between a position and that of a run, with their positions.
fn waiting_before(
    turn: &mut Turn<'_, '_>,
    place: ConcurrencyPlace,
    from: u64,
) -> Result<Vec<(u64, RunNumber)>, StoreError> {
    let key = place.key;
    let from = from.max(record(turn, key)?.first_waiting);
    let mut before = Vec::new();
    turn.visit_from::<ConcurrencyQueue>(&key, &(key, from), |(_, position), waiting| {
        if position >= place.position || before.len() == CONCURRENCY_CANCELLED_MAX {
            return ControlFlow::Break(());
        }
        before.push((position, *waiting));
        ControlFlow::Continue(())
    })?;
    Ok(before)
}

/// The run that has held a key for the longest time among those that can be cancelled.
fn oldest_cancellable(
    turn: &mut Turn<'_, '_>,
    key: ConcurrencyKeyNumber,
) -> Result<Option<RunNumber>, StoreError> {
    let first = record(turn, key)?.first_holder;
    let count_max = CONCURRENCY_CANCELLED_MAX;
    for holder in first_runs::<ConcurrencyHolders, _>(turn, key, first, count_max)? {
        let record = turn.run_record(holder)?;
        // To other runs, a retried run and its next attempt are the same run.
        let is_ending = record.is_none_or(|run| {
            let end = run.fixed_end.as_ref();
            end.is_some_and(|end| !end.is_retried)
        });
        if !is_ending && !turn.is_quarantined(holder) {
            return Ok(Some(holder));
        }
    }
    Ok(None)
}

fn note_waiting(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    key: ConcurrencyKeyNumber,
) -> Result<(), StoreError> {
    let record = record(turn, key)?;
    run.note_run(EventKind::ConcurrencyWaiting {
        key: concurrency_key::shown(&record.key),
        position: record.waiting_count,
    });
    Ok(())
}
