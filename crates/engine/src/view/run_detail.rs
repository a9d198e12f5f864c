//! One sentence about a run: what it waits for, or how it ended (W21a).

use super::concurrency::waiting_detail;
use super::plan::rate_detail;
use super::run::awaited;
use super::run_attempts::latest_attempt;
use super::worker::has_live_worker;
use crate::definition::{Definition, RunTarget, Step, StepKind};
use crate::expression::Timestamp;
use crate::ids::RunNumber;
use crate::run;
use crate::store::{Reader, StoreError};
use crate::tables::{
    ActionRunRecord, ActionRunStatus, ActionType, Actions, Activation, ActivationState, PlanState,
    PlanWait, Quarantine, QuarantinedKind, RunRecord, Runs, read,
};

/// The detail of a run that is not quarantined, with the given active steps; `None` if nothing is to be said.
pub(super) fn run_detail(
    reader: &dyn Reader,
    run: &RunRecord,
    active: &[Activation],
    definition: &Definition,
) -> Result<Option<String>, StoreError> {
    let begins = run.timers.starts_at_ms.map(|starts_at_ms| {
        let time = Timestamp::from_millis(starts_at_ms);
        format!("begins at {time}")
    });
    let detail = match &run.detail {
        Some(detail) => Some(detail.clone()),
        None => wait_detail(reader, run, active, definition)?,
    };
    let stopping = stopping_detail(reader, active, definition)?;
    let waits = waiting_detail(reader, run)?;
    let compiles = run
        .awaits_locks()
        .then(|| "waits until its locks are compiled".to_owned());
    let notes = [
        begins,
        waits,
        compiles,
        detail,
        stopping,
        run::describe_loop(definition, run),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    Ok((!notes.is_empty()).then(|| notes.join("; ")))
}

/// Describes what the stopping steps wait for: a quarantined child if there is one, because it does not end without a
/// release; otherwise, the worker or child of the first such step (W54).
fn stopping_detail(
    reader: &dyn Reader,
    active: &[Activation],
    definition: &Definition,
) -> Result<Option<String>, StoreError> {
    let mut first = None;
    for active in active.iter().filter(|active| active.is_stopping()) {
        let step = &definition.step(active.step).name;
        if let ActivationState::Child(number) = active.state
            && let Some((number, child)) = last_attempt(reader, number)?
        {
            let id = &child.id;
            if read::<Quarantine>(reader, &(QuarantinedKind::Run, number.0))?.is_some() {
                return Ok(Some(format!(
                    "step \"{step}\" waits for the end of child run {id}, which is quarantined: \
                     release it with `flo cluster quarantine release run {id}`"
                )));
            }
            let detail = format!("step \"{step}\" waits for the end of child run {id}");
            first.get_or_insert(detail);
        }
        if first.is_none()
            && let Some(lease) = awaited(reader, &active.state)?.and_then(|task| task.lease)
        {
            let (worker, end) = (&lease.worker, Timestamp::from_millis(lease.expires_at_ms));
            first = Some(format!(
                "step \"{step}\" waits for worker \"{worker}\" to stop; its lease expires at {end}"
            ));
        }
    }
    Ok(first)
}

/// The last attempt at a child (W77).
fn last_attempt(
    reader: &dyn Reader,
    first: RunNumber,
) -> Result<Option<(RunNumber, RunRecord)>, StoreError> {
    let Some(run) = read::<Runs>(reader, &first)? else {
        return Ok(None);
    };
    let latest = latest_attempt(reader, &run)?;
    Ok(Some(latest.unwrap_or((first, run))))
}

/// What an open run waits for, if that is not obvious.
fn wait_detail(
    reader: &dyn Reader,
    run: &RunRecord,
    active: &[Activation],
    definition: &Definition,
) -> Result<Option<String>, StoreError> {
    // What a stopping step waits for is said elsewhere.
    for active in active.iter().filter(|active| !active.is_stopping()) {
        let step = Awaiting {
            active,
            action_run: awaited(reader, &active.state)?,
            definition,
        };
        let mut detail = step.blocked(reader, run)?;
        if detail.is_none() {
            detail = rate_detail(reader, run, definition, active)?;
        }
        if detail.is_none() {
            detail = step.under_way(reader)?;
        }
        if detail.is_some() {
            return Ok(detail);
        }
    }
    Ok(None)
}

/// Describes why the run is quarantined, if it is; this comes before any other detail.
pub(super) fn quarantine_detail(
    reader: &dyn Reader,
    number: RunNumber,
    run: &RunRecord,
) -> Result<Option<String>, StoreError> {
    let quarantined = read::<Quarantine>(reader, &(QuarantinedKind::Run, number.0))?;
    Ok(quarantined.map(|record| {
        format!(
            "quarantined after a bug at log index {}, which the node that led then has logged; \
             `flo cluster quarantine release run {}` takes it up again",
            record.raft_index, run.id
        )
    }))
}

/// An active step, with the action run that it waits for.
struct Awaiting<'a> {
    active: &'a Activation,
    action_run: Option<ActionRunRecord>,
    definition: &'a Definition,
}

impl Awaiting<'_> {
    /// What must happen outside the cluster before the step can continue, if anything must.
    fn blocked(&self, reader: &dyn Reader, run: &RunRecord) -> Result<Option<String>, StoreError> {
        if let ActivationState::Signal(wait) = &self.active.state {
            return Ok(Some(format!("waits for signal \"{}\"", wait.signal_type)));
        }
        if let (ActivationState::Approval(approval), StepKind::Approval(step)) =
            (&self.active.state, &self.step().kind)
        {
            let name = &self.step().name;
            let (count, quorum) = (approval.approvals_count, step.quorum);
            let given = match quorum {
                1 => String::new(),
                _ => format!(": {count} of {quorum} approvals"),
            };
            return Ok(Some(format!(
                "waits for a decision at step \"{name}\"{given}"
            )));
        }
        let Some(action_run) = &self.action_run else {
            return Ok(None);
        };
        let action = &action_run.action;
        if action_run.report.is_some() {
            return Ok(Some(format!("waits for the report on action \"{action}\"")));
        }
        let key = (run.namespace.clone(), action.clone());
        let is_user =
            read::<Actions>(reader, &key)?.is_some_and(|action| action.kind == ActionType::User);
        let is_waiting = action_run.status == ActionRunStatus::Pending && is_user;
        Ok(
            (is_waiting && !has_live_worker(reader, &run.namespace, action)?)
                .then(|| format!("no live worker for action \"{action}\"")),
        )
    }

    /// What the cluster does next, or what it has started.
    fn under_way(&self, reader: &dyn Reader) -> Result<Option<String>, StoreError> {
        let step = &self.step().name;
        Ok(match &self.active.state {
            ActivationState::Action(_) => self.action(),
            ActivationState::Plan(plan) => match plan.wait {
                PlanWait::Executing => None,
                PlanWait::Action(_) => self.action(),
                PlanWait::Retry { .. } => self.executor(plan),
            },
            ActivationState::Child(child) => last_attempt(reader, *child)?
                .map(|(_, child)| format!("waits for child run {}", child.id)),
            ActivationState::Retry { .. } => {
                let attempt = self.active.attempt;
                Some(format!("waits for attempt {attempt} of step \"{step}\""))
            }
            ActivationState::Poll { .. } => Some(format!("waits to poll step \"{step}\"")),
            ActivationState::ChildInput { .. } => {
                Some("waits for the check of the child's input".to_owned())
            }
            ActivationState::Timer { due_ms } => {
                let until = Timestamp::from_millis(*due_ms);
                Some(format!("waits until {until} at step \"{step}\""))
            }
            ActivationState::Delay { due_ms } => {
                let due = Timestamp::from_millis(*due_ms);
                Some(format!("enters step \"{step}\" at {due}"))
            }
            ActivationState::OutputCheck(_) => Some("waits for the check of the output".to_owned()),
            ActivationState::Executing
            | ActivationState::Signal(_)
            | ActivationState::Approval(_)
            | ActivationState::Branches(_)
            | ActivationState::Iterations(_) => None,
        })
    }

    fn step(&self) -> &Step {
        self.definition.step(self.active.step)
    }

    /// Describes the retry of the current executor of a plan.
    fn executor(&self, state: &PlanState) -> Option<String> {
        let RunTarget::Plan(index) = self.step().call(self.active.call)?.target else {
            return None;
        };
        let plan = self.definition.plan(index);
        let name = &plan.executors[usize::from(state.executor()?.0)].name;
        let attempt = state.attempt;
        Some(format!(
            "waits for attempt {attempt} of executor \"{name}\""
        ))
    }

    fn action(&self) -> Option<String> {
        let ActionRunRecord {
            action,
            attempt,
            status,
            lease,
            ..
        } = self.action_run.as_ref()?;
        match (status, lease) {
            (ActionRunStatus::Running, Some(lease)) => {
                let worker = &lease.worker;
                Some(format!("action \"{action}\" runs on worker \"{worker}\""))
            }
            (ActionRunStatus::Pending, _) if *attempt > 1 => Some(format!(
                "waits for attempt {attempt} of action \"{action}\""
            )),
            (ActionRunStatus::Pending, _) => {
                Some(format!("waits for a free worker for action \"{action}\""))
            }
            (
                ActionRunStatus::Running
                | ActionRunStatus::Completed
                | ActionRunStatus::Failed
                | ActionRunStatus::Cancelled
                | ActionRunStatus::TimedOut,
                _,
            ) => None,
        }
    }
}
