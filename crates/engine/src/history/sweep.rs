//! Deletes what only the trimmed part of a history refers to (design rule 13).
//!
//! A turn's record has the number of payloads that the run had by then, so the payloads stored before the end of the
//! trimmed part are known. Each of them is checked: it is deleted unless a row still refers to it. A payload that is
//! kept, or that is referred to again after the turn that stored it, gets a row and is checked again by each sweep. An
//! action run names the first and the last event about it, and is deleted with them. Whatever the head of the history
//! refers to stays.
//!
//! A sweep reads everything that refers to payloads of the run except its history. It therefore runs only after many
//! events were trimmed, and waits while the turn or its entry has no budget left. An ended run is left to its
//! retention.

use crate::action;
use crate::ids::ActionRunNumber;
use crate::limits::{HISTORY_SWEEP_EVENTS, HISTORY_SWEEP_LOOKED_AT_MAX, HISTORY_SWEEP_ROWS_MAX};
use crate::store::{KeyRange, StoreError};
use crate::tables::{
    ActionRunRecord, ActionRuns, ActionRunsByRun, Activation, ActivationState, BranchResults,
    Compensations, Cursor, PayloadOwner, PayloadRef, Payloads, PayloadsHeld, PendingWorks,
    ResumableScopes, ResumableSteps, Scopes, SignalsWaiting, StepResults, TakenSignals,
    TargetResult, Work, encode_key,
};
use crate::turn::{LoadedRun, Turn};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Deletes what only trimmed events of the run refer to, if enough were trimmed since the last sweep.
pub(super) fn sweep(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Result<(), StoreError> {
    let trimmed_until = run.record.history.trimming.until;
    let new_count = trimmed_until - run.record.history.trimming.swept_until;
    if !run.record.status.is_open() || new_count < HISTORY_SWEEP_EVENTS || turn.is_spent() {
        return Ok(());
    }
    let mut named = Named {
        activations: activations(turn, run)?,
        payloads: BTreeSet::new(),
    };
    named.add_of_run(turn, run)?;
    let are_action_runs_done = sweep_action_runs(turn, run, &mut named)?;
    let are_payloads_done = sweep_payloads(turn, run, &named)?;
    if are_action_runs_done && are_payloads_done {
        run.record.history.trimming.swept_until = trimmed_until;
    }
    Ok(())
}

fn activations(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
) -> Result<Vec<Activation>, StoreError> {
    let mut activations = Vec::new();
    for number in run.active(turn)? {
        activations.extend(run.activation(turn, number)?.cloned());
    }
    Ok(activations)
}

/// What a run's state refers to, apart from its history.
struct Named {
    activations: Vec<Activation>,
    /// Positions of payloads.
    payloads: BTreeSet<u64>,
}

impl Named {
    fn add(&mut self, payloads: impl IntoIterator<Item = PayloadRef>) {
        let positions = payloads.into_iter().map(|payload| payload.position);
        self.payloads.extend(positions);
    }

    fn add_of_run(&mut self, turn: &Turn<'_, '_>, run: &LoadedRun) -> Result<(), StoreError> {
        let inputs: Vec<_> = self.activations.iter().map(|one| one.input).collect();
        let plans = self.activations.iter().filter_map(|one| one.state.plan());
        let failures = plans.filter_map(|plan| plan.failure.as_ref()?.output);
        let failures: Vec<_> = failures.collect();
        let unchecked = self.activations.iter().filter_map(|one| match &one.state {
            ActivationState::OutputCheck(unchecked) => Some(unchecked.payloads()),
            _ => None,
        });
        let unchecked: Vec<_> = unchecked.flatten().collect();
        self.add(inputs.into_iter().chain(failures).chain(unchecked));
        self.add([run.record.input].into_iter().chain(run.record.output));
        self.add(run.record.metadata);
        let fixed = run.record.fixed_end.as_ref();
        self.add(fixed.and_then(|end| end.cause));
        let errors = [
            fixed.and_then(|end| end.error.as_deref()),
            run.record.end.as_ref().and_then(|end| end.error.as_deref()),
        ];
        self.add(errors.into_iter().flatten().copied());
        let undoing = self
            .activations
            .iter()
            .filter_map(|one| one.ending.undoing.as_ref());
        let undoing: Vec<_> = undoing
            .flat_map(|one| one.target_result.payloads())
            .collect();
        self.add(undoing);
        let overdue = self
            .activations
            .iter()
            .filter_map(|one| one.ending.timeout_result.as_ref())
            .flat_map(TargetResult::payloads);
        let overdue: Vec<_> = overdue.collect();
        self.add(overdue);
        turn.visit::<Compensations>(&run.number, |_, compensation| {
            self.add(compensation.input.iter().copied());
            ControlFlow::Continue(())
        })?;
        turn.visit::<StepResults>(&run.number, |_, result| {
            self.add(result.output);
            ControlFlow::Continue(())
        })?;
        turn.visit::<BranchResults>(&run.number, |_, result| {
            self.add(result.output);
            ControlFlow::Continue(())
        })?;
        self.add_of_resume(turn, run)?;
        turn.visit::<SignalsWaiting>(&run.number, |_, signal| {
            self.add([signal.payload]);
            ControlFlow::Continue(())
        })?;
        turn.visit::<TakenSignals>(&run.number, |_, taken| {
            self.add([taken.signal.payload]);
            ControlFlow::Continue(())
        })?;
        turn.visit::<PendingWorks>(&run.number, |_, work| {
            match &*work {
                Work::FinishStep { target_result, .. } => self.add(target_result.payloads()),
                Work::DecideOutput { output, .. } => self.add(output.payloads()),
                _ => {}
            }
            ControlFlow::Continue(())
        })
    }

    /// What a resume of the run would need (W89).
    fn add_of_resume(&mut self, turn: &Turn<'_, '_>, run: &LoadedRun) -> Result<(), StoreError> {
        self.add(
            run.record
                .resumption
                .cursor
                .as_ref()
                .and_then(|cursor| cursor.at.payload()),
        );
        turn.visit::<Scopes>(&run.number, |_, scope| {
            self.add(scope.cursor.as_ref().and_then(Cursor::payload));
            ControlFlow::Continue(())
        })?;
        turn.visit::<ResumableScopes>(&run.number, |_, scope| {
            self.add(scope.cursor.as_ref().and_then(Cursor::payload));
            ControlFlow::Continue(())
        })?;
        turn.visit::<ResumableSteps>(&run.number, |_, step| {
            let undoing = step.ending.undoing.as_ref();
            self.add([step.input]);
            let undoing = undoing.map(|undoing| undoing.target_result.payloads());
            self.add(undoing.into_iter().flatten());
            ControlFlow::Continue(())
        })
    }

    /// Whether the action run is still active, or its result is still in use.
    fn is_worked_on(&self, number: ActionRunNumber, record: &ActionRunRecord) -> bool {
        let mut activations = self.activations.iter();
        record.status.is_open() || activations.any(|one| one.state.action_run() == Some(number))
    }
}

/// Deletes the action runs to which no kept event refers, in order; true if none remain.
fn sweep_action_runs(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    named: &mut Named,
) -> Result<bool, StoreError> {
    let cursor = run.record.history.clone();
    let mut room = HISTORY_SWEEP_ROWS_MAX;
    let mut swept_until = cursor.trimming.swept_action_runs;
    let mut is_any_kept = false;
    let made = made_in_trimmed(turn, run)?;
    let mut is_done = made.len() < HISTORY_SWEEP_LOOKED_AT_MAX;
    for (number, first_event) in made {
        let record = turn.get::<ActionRuns>(&number)?;
        let record = record.expect("an action run is kept until it is forgotten");
        let is_ended = !named.is_worked_on(number, &record);
        let is_head = cursor.keeps(first_event);
        let is_forgotten = is_ended && !is_head && !cursor.keeps(record.last_event);
        if is_forgotten && room > 0 {
            room -= 1;
            action::forget(turn, number, &record)?;
            turn.delete::<ActionRunsByRun>(&(run.number, number));
        } else {
            is_done &= !is_forgotten;
            named.add([record.input].into_iter().chain(record.output));
        }
        if !is_any_kept && is_ended && is_head {
            // The action run stays as long as the run, and so do its output and its input, which a patch can have changed.
            for payload in [record.input].into_iter().chain(record.output) {
                run.hold_payload(turn, payload, first_event)?;
            }
            swept_until = number.0;
        } else if !is_any_kept && is_forgotten && is_done {
            swept_until = number.0;
        } else {
            is_any_kept = true;
        }
    }
    run.record.history.trimming.swept_action_runs = swept_until;
    Ok(is_done)
}

/// The unswept action runs that trimmed turns created, each with its first event. Besides those that this sweep can
/// forget, these are at most the ones of the head and the ones that were open at the last trimmed event.
fn made_in_trimmed(
    turn: &Turn<'_, '_>,
    run: &LoadedRun,
) -> Result<Vec<(ActionRunNumber, u64)>, StoreError> {
    let cursor = &run.record.history;
    let first = (
        run.number,
        ActionRunNumber(cursor.trimming.swept_action_runs + 1),
    );
    let mut made = Vec::new();
    turn.visit_from::<ActionRunsByRun>(&run.number, &first, |(_, number), first_event| {
        if *first_event > cursor.trimming.until {
            return ControlFlow::Break(());
        }
        made.push((number, *first_event));
        // The rest comes with a later sweep.
        match made.len() < HISTORY_SWEEP_LOOKED_AT_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(made)
}

/// Deletes the payloads of trimmed turns to which nothing refers; true if all were checked.
fn sweep_payloads(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    named: &Named,
) -> Result<bool, StoreError> {
    let cursor = run.record.history.clone();
    let rows_max = u64::try_from(HISTORY_SWEEP_ROWS_MAX).expect("a sweep is bounded");
    let first = cursor.trimming.swept_payloads_count;
    let end = cursor
        .trimming
        .payloads_count
        .min(first.saturating_add(rows_max));
    let mut candidates: BTreeMap<u64, Option<u64>> =
        (first..end).map(|position| (position, None)).collect();
    let range = KeyRange {
        from: encode_key::<PayloadsHeld>(&(run.number, cursor.trimming.head_payloads_count)),
        to: encode_key::<PayloadsHeld>(&(run.number, end)),
    };
    turn.visit_range::<PayloadsHeld>(&range, |(_, position), event| {
        candidates.insert(position, Some(*event));
        ControlFlow::Continue(())
    })?;
    for (position, held) in candidates {
        let key = (run.number, position);
        let is_in_history = held.is_some_and(|event| cursor.keeps(event));
        if !is_in_history && !named.payloads.contains(&position) {
            let owner = PayloadOwner::Run(run.number);
            turn.delete::<Payloads>(&PayloadRef { owner, position });
            if held.is_some() {
                turn.delete::<PayloadsHeld>(&key);
            }
        } else if held.is_none() {
            turn.put::<PayloadsHeld>(&key, cursor.trimming.until);
        }
    }
    run.record.history.trimming.swept_payloads_count = end;
    Ok(end == cursor.trimming.payloads_count)
}
