//! Consumers join a group, are heard, leave it or fall silent (A31).

use super::assign::reassign;
use super::create::{NewGroup, open};
use super::set_aside::check_in_service;
use super::{GroupRef, Numbered, announce, arm, find, require};
use crate::ids::{ConsumerName, GroupNumber, Namespace, WorkerId};
use crate::limits::{CONSUMERS_MAX, WORKER_SILENCE_MS_MAX};
use crate::rejection::Rejection;
use crate::reply::{Deleted, GroupJoined};
use crate::store::StoreError;
use crate::stream;
use crate::tables::{ConsumerRecord, Consumers, Deliveries, Groups};
use crate::turn::{Outcome, Turn};
use crate::worker;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A consumer's time is written at most so often, in milliseconds: it costs a row.
const HEARD_MS_STEP: u64 = 10_000;

/// Joins a consumer to a group, or says that it still lives: one that is silent for 90 s is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinGroup {
    /// The group.
    pub group: GroupRef,
    /// The consumer.
    pub consumer: ConsumerName,
    /// A random number of its process: a new one gives back at once what the old one had, and that
    /// counts as a delivery, since it may be what ended the old one.
    pub incarnation: u64,
    /// The worker that it consumes for, if there is one (A20).
    pub worker: Option<WorkerId>,
    /// What a group that is missing is created with; `None` refuses instead.
    pub create: Option<NewGroup>,
    /// Whether the process has joined before. The first join takes the name over from whoever has it;
    /// a renewal is refused when a newer process has done so, and so is the first join, sent again, of
    /// the process that was replaced last.
    pub is_renewal: bool,
}

/// Removes a consumer; what it had goes out again at once, the same attempt. Removing one that is not
/// there is no error; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveGroup {
    /// The group.
    pub group: GroupRef,
    /// The consumer.
    pub consumer: ConsumerName,
    /// Its process; `None` removes whichever has joined. A newer one is left alone.
    pub incarnation: Option<u64>,
}

impl JoinGroup {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<GroupJoined> {
        let source = stream::require(turn, namespace, &self.group.stream)?;
        let mut target = match (find(turn, source.0, &self.group.group)?, &self.create) {
            (Some(found), _) => {
                check_in_service(turn, &found, &self.group)?;
                found
            }
            (None, Some(new)) => open(turn, source, &self.group.group, new)?,
            (None, None) => return Err(Rejection::GroupNotFound(self.group.clone()).into()),
        };
        if target.1.trigger.is_some() {
            return Err(Rejection::GroupOfTrigger(self.group.clone()).into());
        }
        let ack_timeout_ms = target.1.settings.ack_timeout_ms();
        let key = (target.0, self.consumer.clone());
        let now_ms = turn.now_ms();
        let known = turn.get::<Consumers>(&key)?;
        match &known {
            Some(known) if known.incarnation == self.incarnation => {
                let heard = ConsumerRecord {
                    heard_at_ms: now_ms,
                    ..(**known).clone()
                };
                turn.put::<Consumers>(&key, heard);
                return Ok(GroupJoined { ack_timeout_ms });
            }
            Some(known) if self.is_renewal || known.replaced == Some(self.incarnation) => {
                return Err(Rejection::ConsumerReplaced(self.consumer.clone()).into());
            }
            Some(_) | None => {}
        }
        self.admit(turn, &mut target)?;
        let number = target.1.joins_count;
        turn.put::<Consumers>(
            &key,
            ConsumerRecord {
                number,
                incarnation: self.incarnation,
                replaced: known.map(|known| known.incarnation),
                worker: self.worker.clone(),
                joined_at_ms: now_ms,
                heard_at_ms: now_ms,
            },
        );
        reassign(turn, &mut target)?;
        turn.put::<Groups>(&target.0, target.1);
        Ok(GroupJoined { ack_timeout_ms })
    }

    /// Makes room for a new process, which may take the place of an older one.
    fn admit(&self, turn: &mut Turn<'_, '_>, target: &mut Numbered) -> Outcome<()> {
        let now_ms = turn.now_ms();
        let key = (target.0, self.consumer.clone());
        if turn.get::<Consumers>(&key)?.is_some() {
            release(turn, target);
            // The process before may wait for records: it has to hear of it.
            announce(turn, &target.1)?;
        } else if target.1.consumers_count == CONSUMERS_MAX {
            let refusal = Rejection::too_many("consumers of a group", CONSUMERS_MAX as usize);
            return Err(refusal.into());
        } else {
            target.1.consumers_count += 1;
        }
        target.1.joins_count += 1;
        let silent_at_ms = now_ms.saturating_add(WORKER_SILENCE_MS_MAX);
        let due_ms = target
            .1
            .silence_due_ms
            .map_or(silent_at_ms, |due_ms| due_ms.min(silent_at_ms));
        target.1.silence_due_ms = Some(due_ms);
        // It has passed where the group was quarantined meanwhile.
        arm(turn, target, due_ms.max(now_ms));
        Ok(())
    }
}

impl LeaveGroup {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Deleted> {
        let mut target = require(turn, namespace, &self.group)?;
        let key = (target.0, self.consumer.clone());
        let is_meant = |found: &ConsumerRecord| {
            let incarnation = self.incarnation;
            incarnation.is_none_or(|incarnation| incarnation == found.incarnation)
        };
        let found = turn.get::<Consumers>(&key)?;
        let Some(found) = found.filter(|found| is_meant(found)) else {
            return Ok(Deleted { is_found: false });
        };
        // Bounded by the records in flight: the timer forgets them once it has given those back.
        if !turn.list::<Deliveries>(&key, 1)?.is_empty() {
            target.1.left.insert(found.number);
        }
        remove(turn, &mut target, &self.consumer);
        reassign(turn, &mut target)?;
        turn.put::<Groups>(&target.0, target.1);
        Ok(Deleted { is_found: true })
    }
}

/// Whose process holds records: the consumer, and its number within the group.
pub(super) struct Holder<'a> {
    pub(super) name: &'a ConsumerName,
    pub(super) number: u32,
}

/// The consumer, if the process that asks is the one that has joined.
///
/// # Errors
/// [`Rejection::ConsumerNotFound`] when none has, [`Rejection::ConsumerReplaced`] when a newer one has.
pub(super) fn require_joined(
    turn: &mut Turn<'_, '_>,
    group: GroupNumber,
    (name, incarnation): (&ConsumerName, u64),
) -> Outcome<Arc<ConsumerRecord>> {
    let found = turn.get::<Consumers>(&(group, name.clone()))?;
    let found = found.ok_or_else(|| Rejection::ConsumerNotFound(name.clone()))?;
    if found.incarnation != incarnation {
        return Err(Rejection::ConsumerReplaced(name.clone()).into());
    }
    Ok(found)
}

/// Removes consumers that have been silent for too long, and says when to look again.
pub(super) fn remove_silent(
    turn: &mut Turn<'_, '_>,
    target: &mut Numbered,
) -> Result<(), StoreError> {
    let mut next_ms = None;
    let mut is_changed = false;
    for ((_, name), consumer) in turn.list::<Consumers>(&target.0, CONSUMERS_MAX as usize)? {
        let silent_at_ms = consumer.heard_at_ms.saturating_add(WORKER_SILENCE_MS_MAX);
        if silent_at_ms <= turn.now_ms() {
            remove(turn, target, &name);
            is_changed = true;
        } else {
            next_ms = Some(next_ms.map_or(silent_at_ms, |next: u64| next.min(silent_at_ms)));
        }
    }
    target.1.silence_due_ms = next_ms;
    if is_changed {
        reassign(turn, target)?;
    }
    Ok(())
}

/// Notes that a process was heard, if it is still the consumer's and that is worth a write.
pub(super) fn hear(
    turn: &mut Turn<'_, '_>,
    group: GroupNumber,
    holder: &Holder<'_>,
) -> Result<(), StoreError> {
    let now_ms = turn.now_ms();
    let stale = |found: &ConsumerRecord| found.heard_at_ms.saturating_add(HEARD_MS_STEP) <= now_ms;
    if let Some(found) = current(turn, group, holder)?.filter(|found| stale(found)) {
        let heard = ConsumerRecord {
            heard_at_ms: now_ms,
            ..(*found).clone()
        };
        turn.put::<Consumers>(&(group, holder.name.clone()), heard);
    }
    Ok(())
}

/// Counts records that a process settled, or did not settle in time, for its worker (A20).
pub(super) fn count(
    turn: &mut Turn<'_, '_>,
    (namespace, number): (&Namespace, GroupNumber),
    (group, holder): (&GroupRef, &Holder<'_>),
    (acked, nacked): (u64, u64),
) -> Result<(), StoreError> {
    let found = current(turn, number, holder)?;
    let Some(worker) = found.and_then(|found| found.worker.clone()) else {
        return Ok(());
    };
    worker::count_records(turn, (namespace, &worker), (group, (acked, nacked)))
}

/// The consumer, if the holder's process is the one that has joined.
fn current(
    turn: &mut Turn<'_, '_>,
    group: GroupNumber,
    holder: &Holder<'_>,
) -> Result<Option<Arc<ConsumerRecord>>, StoreError> {
    let found = turn.get::<Consumers>(&(group, holder.name.clone()))?;
    Ok(found.filter(|found| found.number == holder.number))
}

fn remove(turn: &mut Turn<'_, '_>, target: &mut Numbered, name: &ConsumerName) {
    turn.delete::<Consumers>(&(target.0, name.clone()));
    target.1.consumers_count -= 1;
    release(turn, target);
}

/// Has the timer give back what belongs to no consumer any more: in bounded pieces, since it may be
/// much.
fn release(turn: &mut Turn<'_, '_>, target: &mut Numbered) {
    let now_ms = turn.now_ms();
    target.1.has_abandoned = true;
    arm(turn, target, now_ms);
}
