//! Membership of consumers: joining, heartbeats, leaving and expiry (A31).

use super::assign::reassign;
use super::create::{NewGroup, create};
use super::quarantine::check_in_service;
use super::{NumberedGroup, announce, arm, find, require};
use crate::ids::{ConsumerName, GroupNumber, GroupRef, Namespace, WorkerId};
use crate::limits::{CONSUMERS_MAX, WORKER_SILENCE_MS_MAX};
use crate::rejection::Rejection;
use crate::reply::{Deleted, GroupJoined};
use crate::store::StoreError;
use crate::stream;
use crate::tables::{ConsumerRecord, Consumers, Deliveries, Groups};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The shortest interval between two writes of a consumer's heartbeat time, because each costs a row. In milliseconds.
const HEARTBEAT_MS_STEP: u64 = 10_000;

/// Makes a consumer a member of a group, or renews its membership, which expires after 90 s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinGroup {
    /// The group.
    pub group: GroupRef,
    /// The consumer.
    pub consumer: ConsumerName,
    /// A random number of the consumer's OS process. A new process immediately returns the records of the old one; this
    /// counts as a delivery, because the records may have crashed the old process.
    pub incarnation: u64,
    /// The worker on whose behalf it consumes, if any (A20).
    pub worker: Option<WorkerId>,
    /// The settings with which a missing group is created; `None` rejects the join instead.
    pub create: Option<NewGroup>,
    /// Whether the process has joined before. The first join takes over the name from any other process. A renewal is
    /// rejected if a newer process has joined; so is a resent first join of the process that was replaced last.
    pub is_renewal: bool,
}

/// Removes a consumer. Its records are redelivered immediately, with the same attempt number. Removing a missing
/// consumer succeeds; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveGroup {
    /// The group.
    pub group: GroupRef,
    /// The consumer.
    pub consumer: ConsumerName,
    /// The consumer's process; `None` removes any. A newer process is left alone.
    pub incarnation: Option<u64>,
}

impl JoinGroup {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<GroupJoined> {
        let source = stream::require(turn, namespace, &self.group.stream)?;
        let mut target = match (find(turn, source.0, &self.group.group)?, &self.create) {
            (Some(found), _) => {
                check_in_service(turn, &found, &self.group)?;
                found
            }
            (None, Some(new)) => create(turn, source, &self.group.group, new)?,
            (None, None) => return Err(Rejection::GroupNotFound(self.group.clone()).into()),
        };
        if target.1.trigger.is_some() {
            return Err(Rejection::GroupOwnedByTrigger(self.group.clone()).into());
        }
        let ack_timeout_ms = target.1.settings.ack_timeout_ms();
        let key = (target.0, self.consumer.clone());
        let now_ms = turn.now_ms();
        let known = turn.get::<Consumers>(&key)?;
        match &known {
            Some(known) if known.incarnation == self.incarnation => {
                let renewed = ConsumerRecord {
                    last_heartbeat_at_ms: now_ms,
                    ..(**known).clone()
                };
                turn.put::<Consumers>(&key, renewed);
                return Ok(GroupJoined { ack_timeout_ms });
            }
            Some(known) if self.is_renewal || known.replaced == Some(self.incarnation) => {
                return Err(Rejection::ConsumerReplaced(self.consumer.clone()).into());
            }
            Some(_) | None => {}
        }
        target.1.left_at_ms = None;
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
                last_heartbeat_at_ms: now_ms,
            },
        );
        reassign(turn, &mut target)?;
        turn.put::<Groups>(&target.0, target.1);
        Ok(GroupJoined { ack_timeout_ms })
    }

    /// Replaces an older process of the consumer, or checks the limit of consumers.
    fn admit(&self, turn: &mut Turn<'_, '_>, target: &mut NumberedGroup) -> TurnResult<()> {
        let now_ms = turn.now_ms();
        let key = (target.0, self.consumer.clone());
        if turn.get::<Consumers>(&key)?.is_some() {
            release(turn, target);
            // The older process may wait for records; wake it, so that it learns of its replacement.
            announce(turn, &target.1)?;
        } else if target.1.consumer_count == CONSUMERS_MAX {
            let refusal = Rejection::too_many("consumers of a group", CONSUMERS_MAX as usize);
            return Err(refusal.into());
        } else {
            target.1.consumer_count += 1;
        }
        target.1.joins_count += 1;
        let silent_at_ms = now_ms.saturating_add(WORKER_SILENCE_MS_MAX);
        let due_ms = target
            .1
            .silence_due_ms
            .map_or(silent_at_ms, |due_ms| due_ms.min(silent_at_ms));
        target.1.silence_due_ms = Some(due_ms);
        // The timer may be overdue if the group was quarantined meanwhile.
        arm(turn, target, due_ms.max(now_ms));
        Ok(())
    }
}

impl LeaveGroup {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<Deleted> {
        let mut target = require(turn, namespace, &self.group)?;
        let key = (target.0, self.consumer.clone());
        let has_token_prefix = |found: &ConsumerRecord| {
            let incarnation = self.incarnation;
            incarnation.is_none_or(|incarnation| incarnation == found.incarnation)
        };
        let found = turn.get::<Consumers>(&key)?;
        let Some(found) = found.filter(|found| has_token_prefix(found)) else {
            return Ok(Deleted { is_found: false });
        };
        // Bounded by the records in flight: the timer deletes the entries once it has returned those records.
        if !turn.list::<Deliveries>(&key, 1)?.is_empty() {
            target.1.left.insert(found.number);
        }
        remove(turn, &mut target, &self.consumer);
        reassign(turn, &mut target)?;
        turn.put::<Groups>(&target.0, target.1);
        Ok(Deleted { is_found: true })
    }
}

/// The process that holds records: the consumer, and its number within the group.
pub(super) struct Holder<'a> {
    pub(super) name: &'a ConsumerName,
    pub(super) number: u32,
}

/// The consumer, if it has joined with this process.
///
/// # Errors
/// [`Rejection::ConsumerNotFound`] if no process has joined, [`Rejection::ConsumerReplaced`] if a newer one has.
pub(super) fn require_joined(
    turn: &mut Turn<'_, '_>,
    group: GroupNumber,
    name: &ConsumerName,
    incarnation: u64,
) -> TurnResult<Arc<ConsumerRecord>> {
    let found = turn.get::<Consumers>(&(group, name.clone()))?;
    let found = found.ok_or_else(|| Rejection::ConsumerNotFound(name.clone()))?;
    if found.incarnation != incarnation {
        return Err(Rejection::ConsumerReplaced(name.clone()).into());
    }
    Ok(found)
}

/// Removes expired consumers, and returns when to check again.
pub(super) fn remove_expired(
    turn: &mut Turn<'_, '_>,
    target: &mut NumberedGroup,
) -> Result<(), StoreError> {
    let mut next_ms = None;
    let mut is_changed = false;
    for ((_, name), consumer) in turn.list::<Consumers>(&target.0, CONSUMERS_MAX as usize)? {
        let silent_at_ms = consumer
            .last_heartbeat_at_ms
            .saturating_add(WORKER_SILENCE_MS_MAX);
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

/// Records a heartbeat, if the process is still the consumer's and the change is worth a write.
pub(super) fn note_heartbeat(
    turn: &mut Turn<'_, '_>,
    group: GroupNumber,
    holder: &Holder<'_>,
) -> Result<(), StoreError> {
    let now_ms = turn.now_ms();
    let stale = |found: &ConsumerRecord| {
        found.last_heartbeat_at_ms.saturating_add(HEARTBEAT_MS_STEP) <= now_ms
    };
    if let Some(found) = current(turn, group, holder)?.filter(|found| stale(found)) {
        let renewed = ConsumerRecord {
            last_heartbeat_at_ms: now_ms,
            ..(*found).clone()
        };
        turn.put::<Consumers>(&(group, holder.name.clone()), renewed);
    }
    Ok(())
}

/// The worker on whose behalf the holder consumes, if any (A20).
pub(super) fn worker_of(
    turn: &mut Turn<'_, '_>,
    group: GroupNumber,
    holder: &Holder<'_>,
) -> Result<Option<WorkerId>, StoreError> {
    let found = current(turn, group, holder)?;
    Ok(found.and_then(|found| found.worker.clone()))
}

/// The consumer, if the holder's process is the current one.
fn current(
    turn: &mut Turn<'_, '_>,
    group: GroupNumber,
    holder: &Holder<'_>,
) -> Result<Option<Arc<ConsumerRecord>>, StoreError> {
    let found = turn.get::<Consumers>(&(group, holder.name.clone()))?;
    Ok(found.filter(|found| found.number == holder.number))
}

fn remove(turn: &mut Turn<'_, '_>, target: &mut NumberedGroup, name: &ConsumerName) {
    turn.delete::<Consumers>(&(target.0, name.clone()));
    target.1.consumer_count -= 1;
    release(turn, target);
}

/// Makes the timer return the records that no consumer owns, in bounded batches.
fn release(turn: &mut Turn<'_, '_>, target: &mut NumberedGroup) {
    let now_ms = turn.now_ms();
    target.1.has_abandoned = true;
    arm(turn, target, now_ms);
}
