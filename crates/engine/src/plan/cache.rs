//! The result cache of plans (W37): lookup, store, eviction and expiry.
//!
//! A result is stored under the fingerprint of its key, together with the full key. An invalidation event drops all of
//! a plan's results by incrementing the plan's invalidation count: a result with another count is no longer used, and
//! one whose execution began before the event is not stored. Expired and dropped results are deleted in bounded batches
//! by the plan's timer, or evicted for newer ones.

use super::execution::Execution;
use crate::codec::fingerprint;
use crate::definition::CacheKeyPart;
use crate::ids::PlanNumber;
use crate::json::{self, Json, Paths, quote};
use crate::limits::{
    CACHE_EVICTIONS_MAX, CACHE_KEY_BYTES_MAX, CACHE_SWEEP_PAUSE_MS, CACHED_BYTES_MAX,
    CACHED_RESULTS_MAX, SWEEP_ROWS_MAX,
};
use crate::store::StoreError;
use crate::tables::{
    CacheExpiries, CacheUsage, CachedResultRecord, CachedResults, PayloadRef, PlanNumbers,
    PlanRecord, Plans, TimerKey, TimerKind,
};
use crate::timer;
use crate::turn::Turn;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The result of a cache lookup.
pub(super) enum Lookup {
    /// The plan has no cache, or the key cannot be rendered.
    Off,
    /// No result; one may be stored while the plan has this invalidation count.
    Missed { invalidations_count: u64 },
    /// A cached result.
    Found { key: String, output: Json },
}

/// Looks up the result of an earlier execution.
pub(super) fn look_up(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
) -> Result<Lookup, StoreError> {
    let Some(key) = render_key(turn, execution)? else {
        return Ok(Lookup::Off);
    };
    let plan = execution.plan_record(turn)?;
    let invalidations_count = plan.cache.invalidations_count;
    let found = turn.get::<CachedResults>(&(plan.number, fingerprint(key.as_bytes())))?;
    let is_valid = |result: &Arc<CachedResultRecord>| {
        result.key == key
            && result.invalidations_count == invalidations_count
            && turn.now_ms() < result.expires_at_ms
    };
    Ok(match found.filter(is_valid) {
        Some(result) => Lookup::Found {
            key,
            output: result.output.clone(),
        },
        None => Lookup::Missed {
            invalidations_count,
        },
    })
}

/// Stores the result of an execution that began with `invalidations_count`.
pub(super) fn store(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
    invalidations_count: u64,
    output: PayloadRef,
) -> Result<(), StoreError> {
    let Some(settings) = &execution.plan().cache else {
        return Ok(());
    };
    let Some(key) = render_key(turn, execution)? else {
        return Ok(());
    };
    let mut plan = execution.plan_record(turn)?;
    if plan.cache.invalidations_count != invalidations_count {
        return Ok(());
    }
    let output = turn.payload(output)?;
    let place = (plan.number, fingerprint(key.as_bytes()));
    let mut cache = PlanCache {
        plan: plan.number,
        usage: &mut plan.cache,
    };
    if let Some(old) = turn.get::<CachedResults>(&place)? {
        cache.remove(turn, place.1, &old);
    }
    if cache.evict_oldest(turn, output.as_str().len() as u64)? {
        let result = CachedResultRecord {
            key,
            output,
            invalidations_count,
            expires_at_ms: turn.now_ms().saturating_add(settings.ttl_ms),
        };
        cache.add(turn, place.1, result);
    }
    turn.put::<Plans>(&execution.key(), plan);
    Ok(())
}

/// Deletes expired results of a plan in bounded batches, and sets the timer for the next ones.
pub(crate) fn expire(turn: &mut Turn<'_, '_>, number: PlanNumber) -> Result<(), StoreError> {
    let Some(key) = turn.get::<PlanNumbers>(&number)? else {
        return Ok(());
    };
    let Some(plan) = turn.get::<Plans>(&key)? else {
        return Ok(());
    };
    let mut plan = Arc::unwrap_or_clone(plan);
    plan.cache.sweep_due_ms = None;
    let mut cache = PlanCache {
        plan: number,
        usage: &mut plan.cache,
    };
    let now_ms = turn.now_ms();
    let mut oldest = cache.oldest(turn, SWEEP_ROWS_MAX + 1)?;
    let expired = oldest.iter().take(SWEEP_ROWS_MAX);
    let expired_count = expired.take_while(|(due_ms, _)| *due_ms <= now_ms).count();
    for (_, place) in oldest.drain(..expired_count) {
        cache.evict(turn, place)?;
    }
    if let Some((due_ms, _)) = oldest.first() {
        let pause_ms = if *due_ms <= now_ms {
            0
        } else {
            CACHE_SWEEP_PAUSE_MS
        };
        cache.sweep_at(turn, (*due_ms).max(now_ms.saturating_add(pause_ms)));
    }
    turn.put::<Plans>(&key, plan);
    Ok(())
}

/// Deletes cached results, as many as there is room for; the caller writes or deletes the plan's record.
pub(super) fn clear(
    turn: &mut Turn<'_, '_>,
    plan: &mut PlanRecord,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    let number = plan.number;
    let mut cache = PlanCache {
        plan: number,
        usage: &mut plan.cache,
    };
    for (_, place) in cache.oldest(turn, rows_left.div_ceil(2))? {
        // Each result is read for its size.
        if turn.is_spent() {
            *rows_left = 0;
            break;
        }
        cache.evict(turn, place)?;
        *rows_left = rows_left.saturating_sub(2);
    }
    if plan.cache.results_count == 0
        && let Some(due_ms) = plan.cache.sweep_due_ms.take()
    {
        turn.clear_timer(sweep_timer(number, due_ms));
    }
    Ok(())
}

/// The plan's timer is released from quarantine: cached results expire again.
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    number: PlanNumber,
) -> Result<(), StoreError> {
    let Some(key) = turn.get::<PlanNumbers>(&number)? else {
        return Ok(());
    };
    let Some(plan) = turn.get::<Plans>(&key)? else {
        return Ok(());
    };
    if let Some(due_ms) = plan.cache.sweep_due_ms {
        let mut plan = Arc::unwrap_or_clone(plan);
        plan.cache.sweep_due_ms = Some(timer::restore(turn, sweep_timer(number, due_ms))?);
        turn.put::<Plans>(&key, plan);
    }
    Ok(())
}

/// Renders the key; `None` if the plan has no cache, a path does not resolve, or the key is too long. Texts are quoted,
/// so that different inputs never give the same key.
fn render_key(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
) -> Result<Option<String>, StoreError> {
    let Some(settings) = &execution.plan().cache else {
        return Ok(None);
    };
    let roots = [
        turn.payload(execution.run.record.input)?,
        turn.payload(execution.active.input)?,
    ];
    let holes = settings.key.iter().filter_map(|part| match part {
        CacheKeyPart::Literal(_) => None,
        CacheKeyPart::Input(segments) => Some((0, segments)),
        CacheKeyPart::Mapped(segments) => Some((1, segments)),
    });
    let of_root = |root: usize| {
        let of_root = holes.clone().filter(move |(of, _)| *of == root);
        let segments = of_root.map(|(_, segments)| segments.as_slice());
        Paths::new(segments).find(roots[root].as_str()).into_iter()
    };
    let mut found = [of_root(0), of_root(1)];
    let mut key = String::new();
    for part in &settings.key {
        let root = match part {
            CacheKeyPart::Literal(literal) => {
                key.push_str(literal);
                continue;
            }
            CacheKeyPart::Input(_) => 0,
            CacheKeyPart::Mapped(_) => 1,
        };
        let range = found[root].next().expect("each hole was looked for");
        let Some(value) = range.map(|range| &roots[root].as_str()[range]) else {
            return Ok(None);
        };
        if value.len() > CACHE_KEY_BYTES_MAX {
            return Ok(None);
        }
        match json::as_string(value) {
            Some(text) => quote(&text, &mut key),
            None => key.push_str(value),
        }
        if key.len() > CACHE_KEY_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(Some(key))
}

/// The cached results of one plan, and their size.
struct PlanCache<'a> {
    plan: PlanNumber,
    usage: &'a mut CacheUsage,
}

impl PlanCache<'_> {
    fn add(&mut self, turn: &mut Turn<'_, '_>, place: u64, result: CachedResultRecord) {
        let expires_at_ms = result.expires_at_ms;
        self.usage.oldest_ms = if self.usage.results_count == 0 {
            expires_at_ms
        } else {
            self.usage.oldest_ms.min(expires_at_ms)
        };
        self.usage.results_count += 1;
        self.usage.bytes += result.output.as_str().len() as u64;
        turn.put::<CachedResults>(&(self.plan, place), result);
        turn.put::<CacheExpiries>(&(self.plan, expires_at_ms, place), ());
        if self.usage.sweep_due_ms.is_none() {
            self.sweep_at(turn, expires_at_ms);
        }
    }

    fn remove(&mut self, turn: &mut Turn<'_, '_>, place: u64, result: &CachedResultRecord) {
        self.usage.results_count -= 1;
        self.usage.bytes -= result.output.as_str().len() as u64;
        turn.delete::<CachedResults>(&(self.plan, place));
        turn.delete::<CacheExpiries>(&(self.plan, result.expires_at_ms, place));
    }

    /// Evicts the result at `place`, which must be the oldest.
    fn evict(&mut self, turn: &mut Turn<'_, '_>, place: u64) -> Result<(), StoreError> {
        let result = turn.get::<CachedResults>(&(self.plan, place))?;
        let result = result.expect("an expiry is kept as long as its result");
        self.usage.oldest_ms = result.expires_at_ms;
        self.remove(turn, place, &result);
        Ok(())
    }

    /// Evicts the oldest results until one of `bytes` fits; false if it cannot fit.
    fn evict_oldest(&mut self, turn: &mut Turn<'_, '_>, bytes: u64) -> Result<bool, StoreError> {
        let fits = |usage: &CacheUsage| {
            usage.results_count < CACHED_RESULTS_MAX && usage.bytes + bytes <= CACHED_BYTES_MAX
        };
        if fits(self.usage) {
            return Ok(true);
        }
        for (_, place) in self.oldest(turn, CACHE_EVICTIONS_MAX)? {
            self.evict(turn, place)?;
            if fits(self.usage) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When the oldest results expire, and where they are; at most `count_max`.
    fn oldest(&self, turn: &Turn<'_, '_>, count_max: usize) -> Result<Vec<(u64, u64)>, StoreError> {
        let mut oldest = Vec::new();
        let first = (self.plan, self.usage.oldest_ms);
        turn.visit_from::<CacheExpiries>(&self.plan, &first, |(_, due_ms, place), _| {
            oldest.push((due_ms, place));
            if oldest.len() < count_max {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(oldest)
    }

    fn sweep_at(&mut self, turn: &mut Turn<'_, '_>, due_ms: u64) {
        self.usage.sweep_due_ms = Some(due_ms);
        turn.set_timer(sweep_timer(self.plan, due_ms));
    }
}

fn sweep_timer(plan: PlanNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::CacheExpiry,
        due_ms,
        subject: plan.0,
        detail: 0,
    }
}
