//! Assignment of ready tasks to the entry's offers (A3, A21, design rule 3).

use super::loaded::{LoadedTask, load, with_owner};
use super::queue::{self, QueuePosition, Reader};
use super::token::TaskToken;
use super::tracking::tracking_of;
use super::wait;
use crate::definition::Tracking;
use crate::effect::{Assignment, Effect};
use crate::ids::{ActionName, Namespace, RunId, StepName};
use crate::limits::TASKS_ASSIGNED_MAX;
use crate::offer::Offer;
use crate::reply::TasksAssigned;
use crate::store::StoreError;
use crate::subject::Subject;
use crate::tables::{
    ActionRunOwner, ActionRunRecord, ActionRunStatus, EventKind, LabelSet, Lease, LeasePlace,
    ReportProof,
};
use crate::turn::{LoadedRun, Turn, TurnResult};
use crate::{access, run, worker};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Assigns the ready tasks of one action to the offers of this entry, by priority and then by age.
///
/// The cost is bounded, however many tasks wait that match no offer: each label set has its own queue, and only queues
/// that match some offer are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignTasks {
    /// The action.
    pub action: ActionName,
}

impl AssignTasks {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<TasksAssigned> {
        let mut offers = self.open_offers(turn, namespace)?;
        let waiting = queue::waiting(turn, namespace, &self.action)?;
        let mut is_fitting_left = false;
        let mut queues = Queues::default();
        for labels in waiting {
            let fitting = fitting(&labels, &offers);
            if !fitting.is_empty() {
                let queue = (namespace.clone(), self.action.clone(), labels);
                let tasks = Reader::new(queue);
                queues.add(turn, FittingQueue { tasks, fitting })?;
            }
        }
        let (mut count, mut looked_at) = (0, 0);
        while let Some((position, queue)) = queues.by_first.pop_first() {
            let best = queue.best_offer(&mut offers);
            let Some(best) = best.filter(|_| looked_at < TASKS_ASSIGNED_MAX) else {
                is_fitting_left = true;
                continue;
            };
            looked_at += 1;
            turn.attribute_to(Subject::ActionRun(position.number));
            let task = load(turn, position.number)?;
            queue::leave(turn, &task)?;
            // A quarantined task leaves the queue, so that it does not block others (design rule 10).
            if !task.is_quarantined(turn) {
                best.slots -= 1;
                let position = best.position;
                with_owner(turn, task.record.owner, |turn, run| {
                    assign(turn, run, task, position)
                })?;
                count += 1;
            }
            queues.add(turn, queue)?;
        }
        Ok(TasksAssigned {
            count,
            is_fitting_left,
        })
    }

    /// The offers for this action whose workers accept tasks, including offers without a free slot.
    fn open_offers<'e>(
        &self,
        turn: &mut Turn<'_, 'e>,
        namespace: &Namespace,
    ) -> Result<Vec<OpenOffer<'e>>, StoreError> {
        let mut open = Vec::new();
        for (position, offer) in turn.offers().iter().enumerate() {
            if is_for(offer, namespace, &self.action)
                && worker::is_taking_tasks(turn, (namespace, &offer.worker))?
            {
                open.push(OpenOffer {
                    offer,
                    position,
                    slots: turn.slots_left(position),
                });
            }
        }
        Ok(open)
    }
}

/// An offer with its free slots.
struct OpenOffer<'e> {
    offer: &'e Offer,
    position: usize,
    slots: u32,
}

/// A queue that matches some offer.
struct FittingQueue {
    tasks: Reader,
    /// Indexes of the matching offers.
    fitting: Vec<usize>,
}

/// The queues from which tasks are taken, ordered by their first task.
#[derive(Default)]
struct Queues {
    by_first: BTreeMap<QueuePosition, FittingQueue>,
}

impl FittingQueue {
    /// The offer that gets the next task: the one with the most free slots.
    fn best_offer<'o, 'e>(&self, open: &'o mut [OpenOffer<'e>]) -> Option<&'o mut OpenOffer<'e>> {
        let free = self.fitting.iter().filter(|which| open[**which].slots > 0);
        let best = free.max_by_key(|which| (open[**which].slots, Reverse(**which)))?;
        Some(&mut open[*best])
    }
}

impl Queues {
    /// Adds the rest of a queue.
    fn add(&mut self, turn: &mut Turn<'_, '_>, mut queue: FittingQueue) -> Result<(), StoreError> {
        if let Some(first) = queue.tasks.next(turn)? {
            self.by_first.insert(first, queue);
        }
        Ok(())
    }
}

/// The offers that may take tasks with `labels` (A3).
fn fitting(labels: &LabelSet, open: &[OpenOffer<'_>]) -> Vec<usize> {
    let fits = |which: &usize| labels.is_subset_of(&open[*which].offer.labels);
    (0..open.len()).filter(fits).collect()
}

/// The offer that gets a task immediately: among those that match and that no waiting task could use, the one with the
/// most free slots.
pub(super) fn free_offer(
    turn: &mut Turn<'_, '_>,
    record: &ActionRunRecord,
) -> Result<Option<usize>, StoreError> {
    let required = LabelSet(record.labels.clone());
    let offers = turn.offers();
    let fitting = offers.iter().enumerate().filter_map(|(position, offer)| {
        let slots = turn.slots_left(position);
        let fits = slots > 0
            && is_for(offer, &record.namespace, &record.action)
            && required.is_subset_of(&offer.labels);
        fits.then_some((slots, Reverse(position)))
    });
    let mut fitting: BinaryHeap<_> = fitting.collect();
    if fitting.is_empty() {
        return Ok(None);
    }
    let waiting = queue::waiting(turn, &record.namespace, &record.action)?;
    while let Some((_, Reverse(position))) = fitting.pop() {
        let offer = &offers[position];
        let is_claimed = waiting
            .iter()
            .any(|labels: &LabelSet| labels.is_subset_of(&offer.labels));
        if !is_claimed && worker::is_taking_tasks(turn, (&offer.namespace, &offer.worker))? {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

fn is_for(offer: &Offer, namespace: &Namespace, action: &ActionName) -> bool {
    offer.namespace == *namespace && offer.actions.contains(action)
}

/// Assigns the task to the offer at `position`.
pub(super) fn assign(
    turn: &mut Turn<'_, '_>,
    mut run: Option<&mut LoadedRun>,
    mut task: LoadedTask,
    position: usize,
) -> TurnResult<()> {
    let offer = &turn.offers()[position];
    turn.take_slot(position);
    let now_ms = turn.now_ms();
    let expires_at_ms = now_ms.saturating_add(task.record.timeout_ms);
    let worker = (&task.record.namespace, &offer.worker);
    let place = LeasePlace {
        expires_at_ms,
        task: task.number,
    };
    let lease = Lease {
        worker: offer.worker.clone(),
        holder: worker::begin_lease(turn, worker, place)?,
        proof: ReportProof {
            secret: turn.random(),
            requires_mac: access::is_closed(turn)?,
        },
        expires_at_ms,
    };
    wait::end(turn, &mut task);
    let kind = EventKind::ActionStarted {
        action_run: task.number,
        worker: offer.worker.clone(),
        attempt: task.record.attempt,
    };
    task.note(turn, run.as_deref_mut(), kind)?;
    if let (ActionRunOwner::Step { activation, .. }, Some(run)) =
        (task.record.owner, run.as_deref_mut())
    {
        run::note_taken(turn, run, activation)?;
    }
    let origin = origin_of(turn, run, &task)?;
    turn.effect(Effect::DeliverTask {
        worker: offer.worker.clone(),
        poll: offer.poll,
        assignment: Box::new(assignment(&task, &lease, origin)),
    });
    let record = &mut *task.record;
    record.become_status(ActionRunStatus::Running);
    record.started_at_ms = record.started_at_ms.or(Some(now_ms));
    record.lease = Some(lease);
    task.put(turn);
    Ok(())
}

/// What the worker gets.
fn assignment(task: &LoadedTask, lease: &Lease, origin: Origin) -> Assignment {
    let record = &task.record;
    Assignment {
        token: TaskToken {
            action_run: task.number,
            attempt: record.attempt,
            secret: lease.proof.secret,
        },
        namespace: record.namespace.clone(),
        action: record.action.clone(),
        input: record.input,
        lease_expires_at_ms: lease.expires_at_ms,
        timeout_ms: record.timeout_ms,
        created_at_ms: record.created_at_ms,
        run_id: origin.run_id,
        step: origin.step,
        labels: record.labels.clone(),
        is_cancelled: record.is_cancelling,
        tracking: origin.tracking,
    }
}

/// The workflow run and step of a task, and how its outcome is reported (W38).
#[derive(Default)]
struct Origin {
    run_id: Option<RunId>,
    step: Option<StepName>,
    tracking: Tracking,
}

fn origin_of(
    turn: &mut Turn<'_, '_>,
    run: Option<&mut LoadedRun>,
    task: &LoadedTask,
) -> TurnResult<Origin> {
    let (ActionRunOwner::Step { activation, .. }, Some(run)) = (task.record.owner, run) else {
        return Ok(Origin::default());
    };
    let definition = run.definition.clone();
    let definition = &definition.definition;
    let run_id = Some(run.record.id.clone());
    let active = run.activation(turn, activation)?;
    Ok(Origin {
        step: active.map(|active| definition.step(active.step).name.clone()),
        tracking: active.map_or(Tracking::Sync, |active| tracking_of(definition, active)),
        run_id,
    })
}
