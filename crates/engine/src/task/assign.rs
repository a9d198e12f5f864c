//! Giving tasks to the entry's offers (A3, A21, design rule 3).

use super::lease::lease_timer;
use super::ready::{load, ready_key};
use super::token::TaskToken;
use crate::command::Subject;
use crate::effect::{Assignment, Effect};
use crate::entry::Offer;
use crate::ids::{ActionName, ActionRunNumber, Namespace, RunId, StepName};
use crate::limits::ENTRY_COMMANDS_MAX;
use crate::reply::Reply;
use crate::run;
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns, Event, EventKind, Lease, Ready,
};
use crate::turn::{Outcome, Turn};
use crate::worker;
use crate::workflow::pinned;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Gives the ready tasks of one action to the offers of this entry, oldest and most urgent first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignTasks {
    /// The action.
    pub action: ActionName,
}

impl AssignTasks {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        let mut count = 0;
        for (number, position) in self.candidates(turn, namespace)? {
            turn.suspect(Subject::ActionRun(number));
            let record = load(turn, number)?;
            turn.delete::<Ready>(&ready_key(number, &record));
            // A task that is set aside leaves the queue, so that it holds up nobody (design rule 10).
            if !turn.is_task_quarantined(number, &record) {
                assign(turn, number, position)?;
                count += 1;
            }
        }
        Ok(Reply::TasksAssigned { count })
    }

    /// The tasks that the offers take, each with the position of its offer.
    fn candidates(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Result<Vec<(ActionRunNumber, usize)>, StoreError> {
        let mut open = self.open_offers(turn, namespace)?;
        let mut taken = Vec::new();
        if open.is_empty() {
            return Ok(taken);
        }
        turn.visit_ready(&(namespace.clone(), self.action.clone()), |key, ready| {
            // Slots are counted here, so that tasks which fit no free one hold up nobody (A3).
            let fitting = open
                .iter_mut()
                .filter(|open| has_labels(open.offer, &ready.labels));
            if let Some(best) = fitting.max_by_key(|open| (open.slots, Reverse(open.position))) {
                best.slots -= 1;
                taken.push((key.3, best.position));
            }
            open.retain(|open| open.slots > 0);
            if open.is_empty() || taken.len() == ENTRY_COMMANDS_MAX {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(taken)
    }

    /// The offers for this action whose workers take tasks and have free slots.
    fn open_offers<'e>(
        &self,
        turn: &mut Turn<'_, 'e>,
        namespace: &Namespace,
    ) -> Result<Vec<OpenOffer<'e>>, StoreError> {
        let mut open = Vec::new();
        for (position, offer) in turn.offers().iter().enumerate() {
            let slots = turn.slots_left(position);
            if slots > 0
                && is_for(offer, namespace, &self.action)
                && worker::is_taking_tasks(turn, namespace, &offer.worker)?
            {
                open.push(OpenOffer {
                    offer,
                    position,
                    slots,
                });
            }
        }
        Ok(open)
    }
}

/// An offer with slots that are free so far.
struct OpenOffer<'e> {
    offer: &'e Offer,
    position: usize,
    slots: u32,
}

/// The offer that gets the task: of those that fit, the one with the most free slots.
pub(super) fn fitting_offer(
    turn: &mut Turn<'_, '_>,
    record: &ActionRunRecord,
) -> Result<Option<usize>, StoreError> {
    let mut best: Option<(u32, usize)> = None;
    for (position, offer) in turn.offers().iter().enumerate() {
        let slots = turn.slots_left(position);
        let fits = slots > best.map_or(0, |(slots, _)| slots)
            && is_for(offer, &record.namespace, &record.action)
            && has_labels(offer, &record.labels);
        if fits && worker::is_taking_tasks(turn, &offer.namespace, &offer.worker)? {
            best = Some((slots, position));
        }
    }
    Ok(best.map(|(_, position)| position))
}

fn is_for(offer: &Offer, namespace: &Namespace, action: &ActionName) -> bool {
    offer.namespace == *namespace && offer.actions.contains(action)
}

/// A run's labels must be a subset of the worker's (A3).
fn has_labels(offer: &Offer, labels: &BTreeMap<String, String>) -> bool {
    labels
        .iter()
        .all(|(key, value)| offer.labels.get(key) == Some(value))
}

/// Gives the task of `number` to the offer at `position`.
pub(super) fn assign(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    position: usize,
) -> Outcome<()> {
    let offer = &turn.offers()[position];
    turn.take_slot(position);
    let mut record = load(turn, number)?;
    let now_ms = turn.now_ms();
    let expires_at_ms = now_ms.saturating_add(record.timeout_ms);
    let secret = turn.random();
    record.status = ActionRunStatus::Running;
    record.started_at_ms = record.started_at_ms.or(Some(now_ms));
    record.lease = Some(Lease {
        worker: offer.worker.clone(),
        secret,
        expires_at_ms,
    });
    turn.set_timer(lease_timer(number, record.attempt, expires_at_ms));
    worker::hold(turn, (&record.namespace, &offer.worker), number)?;
    note_start(turn, number, &record, offer)?;
    let (run_id, step) = step_of(turn, &record)?.unzip();
    turn.effect(Effect::DeliverTask {
        worker: offer.worker.clone(),
        poll: offer.poll,
        assignment: Box::new(Assignment {
            token: TaskToken {
                action_run: number,
                attempt: record.attempt,
                secret,
            },
            namespace: record.namespace.clone(),
            action: record.action.clone(),
            input: record.input,
            lease_expires_at_ms: expires_at_ms,
            timeout_ms: record.timeout_ms,
            created_at_ms: record.created_at_ms,
            run_id,
            step,
            labels: record.labels.clone(),
        }),
    });
    turn.put::<ActionRuns>(&number, record);
    Ok(())
}

fn note_start(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    record: &ActionRunRecord,
    offer: &Offer,
) -> Result<(), StoreError> {
    let ActionRunOwner::Step { run, activation } = record.owner else {
        return Ok(());
    };
    let owner = run::load(turn, run)?;
    let step = owner.activation(activation).map(|active| active.step);
    let (worker, attempt) = (offer.worker.clone(), record.attempt);
    let kind = EventKind::ActionStarted {
        action_run: number,
        worker,
        attempt,
    };
    turn.event(run, Event { step, kind });
    Ok(())
}

/// The workflow run and step that the task belongs to.
fn step_of(
    turn: &mut Turn<'_, '_>,
    record: &ActionRunRecord,
) -> Outcome<Option<(RunId, StepName)>> {
    let ActionRunOwner::Step { run, activation } = record.owner else {
        return Ok(None);
    };
    let owner = run::load(turn, run)?;
    let definition = pinned(turn, owner.definition)?;
    let step = owner.activation(activation).map(|active| active.step);
    Ok(step.map(|step| (owner.id, definition.definition.step(step).name.clone())))
}
