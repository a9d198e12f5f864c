//! A visit to a step as a report shows it, made from the events about it (W87).

use crate::definition::{Definition, StepIndex, StepKind};
use crate::ids::{
    ActionRunNumber, ExecutorName, OutcomeName, RunId, ScopeNumber, StepName, WorkerId,
};
use crate::limits::{REPORTED_FIRST_ATTEMPTS, REPORTED_LAST_ATTEMPTS};
use crate::run::{is_failure, outcome_name as name};
use crate::tables::{
    Activation, Event, EventKind, PayloadRef, Phase, PlanEvent, StepResult, StepTimeout, TaskError,
};
use std::collections::VecDeque;

/// An attempt of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedAttempt {
    /// Which attempt of the visit it is, from 1: those of the step, of its action and of the executors of its plan count.
    pub number: u32,
    /// When it began, in milliseconds; `None` if the history does not say.
    pub started_at_ms: Option<u64>,
    /// When it ended, in milliseconds; `None` while it is open, or if the history does not say.
    pub ended_at_ms: Option<u64>,
    /// How it ended; `None` while it is open.
    pub outcome: Option<OutcomeName>,
    /// Why it failed.
    pub error: Option<TaskError>,
    /// The worker that executed the task, the last one if several did.
    pub worker: Option<WorkerId>,
    /// The executor of the plan.
    pub executor: Option<String>,
    /// The child run.
    pub child: Option<RunId>,
}

impl ReportedAttempt {
    fn end(&mut self, at_ms: u64, outcome: OutcomeName) {
        self.ended_at_ms = Some(at_ms);
        self.outcome = Some(outcome);
    }

    /// Notes why it failed, unless that is known.
    fn note_code(&mut self, code: &str) {
        self.error.get_or_insert_with(|| TaskError {
            code: code.to_owned(),
            message: String::new(),
        });
    }

    /// The engine has failed the attempt although its target succeeded: its output or its patch is invalid.
    fn fail_after_success(&mut self, failure: &OutcomeName) {
        let has_succeeded = self.outcome.as_ref().is_some_and(is_success);
        if is_failure(failure) && has_succeeded {
            self.outcome = Some(failure.clone());
        }
    }

    /// Notes how it ended, unless that is known.
    fn end_if_open(&mut self, at_ms: u64, outcome: &OutcomeName) {
        if self.outcome.is_none() {
            self.end(at_ms, outcome.clone());
        }
    }
}

/// The attempts of a visit: if there are many, the first and the last ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts {
    first: Vec<ReportedAttempt>,
    last: VecDeque<ReportedAttempt>,
    /// Those that have ended.
    count: u32,
    current: Option<ReportedAttempt>,
}

impl Attempts {
    /// The attempts in order, and how many there were.
    pub(super) fn in_order(mut self) -> (Vec<ReportedAttempt>, u32) {
        self.close();
        let kept = self.first.into_iter().chain(self.last);
        (kept.collect(), self.count)
    }

    /// Begins an attempt; the one before it has ended.
    fn begin(&mut self, at_ms: u64) -> &mut ReportedAttempt {
        self.close();
        self.current.insert(ReportedAttempt {
            number: self.count + 1,
            started_at_ms: Some(at_ms),
            ..ReportedAttempt::default()
        })
    }

    /// The current attempt; one whose beginning is unknown if there is none.
    fn current(&mut self) -> &mut ReportedAttempt {
        let number = self.count + 1;
        self.current.get_or_insert_with(|| ReportedAttempt {
            number,
            ..ReportedAttempt::default()
        })
    }

    /// The current attempt; a new one if the last one was closed.
    fn current_since(&mut self, at_ms: u64) -> &mut ReportedAttempt {
        match self.current.is_some() {
            true => self.current(),
            false => self.begin(at_ms),
        }
    }

    /// The target of the current attempt has ended, which is returned unless a timeout has ended it before. A target that is
    /// polled continues the same attempt.
    fn settle(&mut self, at_ms: u64, outcome: &OutcomeName) -> Option<&mut ReportedAttempt> {
        let is_polled = outcome.as_str() == name::PENDING;
        let current = self.current();
        let is_over = current.outcome.as_ref().is_some_and(is_timeout);
        if is_polled || is_over {
            return None;
        }
        current.end(at_ms, outcome.clone());
        Some(current)
    }

    /// A timeout of the step ends the current attempt, if one is open.
    fn time_out(&mut self, at_ms: u64, timeout: StepTimeout) {
        let open = self.current.as_mut();
        if let Some(open) = open.filter(|current| current.outcome.is_none()) {
            open.end(at_ms, name::of(name::TIMEOUT));
            open.note_code(timeout.code());
        }
    }

    /// The executor of the current attempt has failed.
    fn fail_executor(&mut self, at_ms: u64, executor: &ExecutorName) -> &mut ReportedAttempt {
        let current = self.fail(at_ms);
        current.executor.get_or_insert_with(|| executor.to_string());
        current
    }

    /// The current attempt has failed, unless it has ended otherwise.
    fn fail(&mut self, at_ms: u64) -> &mut ReportedAttempt {
        let failure = name::of(name::FAILURE);
        let current = self.current();
        current.end_if_open(at_ms, &failure);
        current.fail_after_success(&failure);
        current
    }

    fn close(&mut self) {
        let Some(ended) = self.current.take() else {
            return;
        };
        self.count += 1;
        if self.first.len() < REPORTED_FIRST_ATTEMPTS {
            self.first.push(ended);
            return;
        }
        self.last.push_back(ended);
        if self.last.len() > REPORTED_LAST_ATTEMPTS {
            self.last.pop_front();
        }
    }
}

/// What events and rows say about a visit.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) scope: ScopeNumber,
    pub(super) step: StepName,
    pub(super) visit: u32,
    pub(super) kind: &'static str,
    /// Whether it makes attempts: it calls something, or has a block that can be retried.
    has_attempts: bool,
    /// In which phase of the run it began; `None` for the main one, and if the history does not say.
    pub(super) phase: Option<Phase>,
    pub(super) started_at_ms: Option<u64>,
    pub(super) ended_at_ms: Option<u64>,
    pub(super) outcome: Option<OutcomeName>,
    pub(super) output: Option<PayloadRef>,
    /// The last action run that it has started.
    pub(super) action_run: Option<ActionRunNumber>,
    pub(super) attempts: Attempts,
}

/// The kind of a visit that undoes what a step has done.
const COMPENSATION: &str = "compensation";
/// The kind of a visit that executes the `onCancel` of a step.
const ON_CANCEL: &str = "on_cancel";

fn is_success(outcome: &OutcomeName) -> bool {
    outcome.as_str() == name::SUCCESS
}

fn is_timeout(outcome: &OutcomeName) -> bool {
    outcome.as_str() == name::TIMEOUT
}

impl Visit {
    /// The visit of which this is the first event.
    pub(super) fn of(
        definition: &Definition,
        step: StepIndex,
        event: &Event,
        phase: Option<Phase>,
    ) -> Self {
        Self {
            scope: event.scope.number,
            visit: event.visit,
            phase,
            ..Self::to(definition, step)
        }
    }

    /// The visit of which only the result is kept.
    pub(super) fn of_result(
        definition: &Definition,
        scope: ScopeNumber,
        step: StepIndex,
        result: &StepResult,
    ) -> Self {
        let mut visit = Self {
            scope,
            visit: result.visit,
            ..Self::to(definition, step)
        };
        visit.add_result(result);
        visit
    }

    /// The visit that is active, and of which the history has nothing.
    pub(super) fn of_active(definition: &Definition, active: &Activation) -> Self {
        let mut visit = Self {
            scope: active.scope,
            visit: active.visit,
            started_at_ms: Some(active.started_at_ms),
            action_run: active.state.action_run(),
            ..Self::to(definition, active.step)
        };
        if let Some(undone) = &active.undone {
            visit.scope = undone.scope.number;
            visit.compensate();
        } else if active.call.is_on_cancel() {
            visit.follow_cancellation();
        }
        if visit.has_attempts {
            visit.attempts.count = active.attempt;
        }
        visit
    }

    /// A visit to a step of which nothing else is known.
    fn to(definition: &Definition, step: StepIndex) -> Self {
        let step = definition.step(step);
        let kind = &step.kind;
        Self {
            scope: ScopeNumber::ROOT,
            step: step.name.clone(),
            visit: 1,
            kind: kind.name(),
            has_attempts: matches!(kind, StepKind::Run(_) | StepKind::Block(_)),
            phase: None,
            started_at_ms: None,
            ended_at_ms: None,
            outcome: None,
            output: None,
            action_run: None,
            attempts: Attempts::default(),
        }
    }

    /// Identifies the visit, together with its [kind](Self::is_visit). Contains the name of the step, because its index can
    /// change with the revision.
    pub(super) fn place(&self) -> (ScopeNumber, StepName, u32) {
        (self.scope, self.step.clone(), self.visit)
    }

    /// Whether it is a visit to the step, not a call that follows one.
    pub(super) fn is_visit(&self) -> bool {
        self.kind != COMPENSATION && self.kind != ON_CANCEL
    }

    /// Adds what the history does not say, since it was trimmed or leaves it out.
    pub(super) fn add_result(&mut self, result: &StepResult) {
        self.started_at_ms.get_or_insert(result.started_at_ms);
        self.ended_at_ms.get_or_insert(result.completed_at_ms);
        self.outcome.get_or_insert_with(|| result.outcome.clone());
        self.output = self.output.or(result.output);
        if let Some(open) = &mut self.attempts.current {
            open.end_if_open(result.completed_at_ms, &result.outcome);
        }
        self.attempts.close();
        if self.has_attempts {
            self.attempts.count = self.attempts.count.max(result.attempts);
        }
    }

    /// It is the call of `onCancel`, which no event begins.
    pub(super) fn follow_cancellation(&mut self) {
        self.kind = ON_CANCEL;
        self.has_attempts = true;
    }

    /// It is the call of a compensation.
    fn compensate(&mut self) {
        self.kind = COMPENSATION;
        self.has_attempts = true;
    }

    /// It begins, or continues after a resume.
    fn begin(&mut self, at_ms: u64) {
        self.started_at_ms.get_or_insert(at_ms);
        self.reopen();
    }

    /// It is active. If the history has its end, it was resumed.
    pub(super) fn continue_as(&mut self, active: &Activation) {
        if active.undone.is_some() {
            self.compensate();
        }
        self.reopen();
    }

    fn reopen(&mut self) {
        self.ended_at_ms = None;
        self.outcome = None;
        self.output = None;
    }

    /// Adds what follows once all events are known: the call of `onCancel` that is not active has ended with its last
    /// attempt.
    pub(super) fn finish(&mut self, is_active: bool) {
        if is_active {
            return;
        }
        let current = self.attempts.current.as_ref();
        if let (ON_CANCEL, None, Some(last)) = (self.kind, &self.outcome, current) {
            self.outcome.clone_from(&last.outcome);
            self.ended_at_ms = last.ended_at_ms;
        }
    }

    /// Adds the next event about it.
    pub(super) fn add(&mut self, event: &Event, at_ms: u64) {
        if self.kind == ON_CANCEL {
            self.started_at_ms.get_or_insert(at_ms);
        }
        match &event.kind {
            EventKind::StepStarted => {
                self.begin(at_ms);
                if self.has_attempts {
                    self.attempts.begin(at_ms);
                }
            }
            EventKind::CompensationStarted => {
                self.compensate();
                self.begin(at_ms);
                self.attempts.begin(at_ms);
            }
            EventKind::StepCompleted { outcome, output } => {
                self.end(at_ms, outcome.clone());
                self.output = *output;
            }
            EventKind::CompensationCompleted => {
                self.compensate();
                self.end(at_ms, name::of(name::SUCCESS));
            }
            EventKind::CompensationFailed { code } => {
                self.compensate();
                self.attempts.current().note_code(code);
                self.end(at_ms, name::of(name::FAILURE));
            }
            EventKind::HandlerFailed { .. } => self.end(at_ms, name::of(name::FAILURE)),
            EventKind::StepCancelled => self.end(at_ms, name::of(name::CANCELLED)),
            EventKind::Plan(plan) => self.add_plan(plan, at_ms),
            kind => self.add_attempt(kind, at_ms),
        }
    }

    /// Adds what happened to an attempt.
    fn add_attempt(&mut self, kind: &EventKind, at_ms: u64) {
        let attempts = &mut self.attempts;
        match kind {
            EventKind::StepRetry { .. } => {
                attempts.fail(at_ms);
                attempts.begin(at_ms);
            }
            EventKind::FallbackStarted { code } => {
                attempts.fail(at_ms).note_code(code);
                attempts.begin(at_ms);
            }
            EventKind::RetryScheduled { .. } => {
                attempts.fail(at_ms);
            }
            EventKind::StepTimeout { timeout } => attempts.time_out(at_ms, *timeout),
            EventKind::ActionNotFound { .. } => {
                attempts.settle(at_ms, &name::of(name::TARGET_NOT_FOUND));
            }
            EventKind::ActionDisabled { .. } => {
                attempts.settle(at_ms, &name::of(name::TARGET_DISABLED));
            }
            EventKind::ChildRefused { detail } => {
                let current = attempts.current();
                current.error.get_or_insert_with(|| TaskError {
                    code: String::new(),
                    message: detail.clone(),
                });
            }
            EventKind::AwaitingAction { action_run, .. } => {
                self.action_run = Some(*action_run);
                attempts.current_since(at_ms);
            }
            EventKind::ActionStarted {
                action_run, worker, ..
            } => {
                self.action_run = Some(*action_run);
                attempts.current_since(at_ms).worker = Some(worker.clone());
            }
            EventKind::ActionRetryScheduled {
                action_run,
                message,
                ..
            } => {
                self.action_run = Some(*action_run);
                if let Some(current) = attempts.settle(at_ms, &name::of(name::FAILURE)) {
                    // The event does not say the code.
                    current.error = Some(TaskError {
                        code: String::new(),
                        message: message.clone(),
                    });
                }
                attempts.close();
            }
            EventKind::ActionCompleted {
                action_run,
                outcome,
                error,
            } => {
                self.action_run = Some(*action_run);
                if let Some(current) = attempts.settle(at_ms, outcome) {
                    current.error.clone_from(error);
                }
            }
            EventKind::ChildStarted { child } => {
                attempts.current_since(at_ms).child = Some(child.clone());
            }
            EventKind::ChildCompleted { child, outcome } => {
                attempts.current().child = Some(child.clone());
                attempts.settle(at_ms, outcome);
            }
            _ => {}
        }
    }

    /// Adds what happened to an executor of a plan.
    fn add_plan(&mut self, event: &PlanEvent, at_ms: u64) {
        let attempts = &mut self.attempts;
        match event {
            PlanEvent::ExecutorStart { executor, .. } => {
                let current = match attempts.current.as_ref().map(|current| &current.executor) {
                    // The step's own attempt has begun with it.
                    Some(None) => attempts.current(),
                    Some(Some(_)) | None => attempts.begin(at_ms),
                };
                current.executor = Some(executor.to_string());
            }
            PlanEvent::ExecutorSuccess { executor } => {
                let success = name::of(name::SUCCESS);
                let current = attempts.current();
                current.executor.get_or_insert_with(|| executor.to_string());
                current.end_if_open(at_ms, &success);
            }
            PlanEvent::ExecutorOutcome { executor, outcome } => {
                let current = attempts.current();
                current.executor.get_or_insert_with(|| executor.to_string());
                current.end_if_open(at_ms, outcome);
            }
            // In an iteration, the history does not say when the next one begins.
            PlanEvent::ExecutorRetry { executor, .. } => {
                attempts.fail_executor(at_ms, executor);
                attempts.close();
            }
            PlanEvent::ExecutorExhausted { executor, code, .. } => {
                attempts.fail_executor(at_ms, executor).note_code(code);
                attempts.close();
            }
            _ => {}
        }
    }

    /// The visit has ended, and its last attempt with it.
    fn end(&mut self, at_ms: u64, outcome: OutcomeName) {
        self.ended_at_ms = Some(at_ms);
        if let Some(current) = &mut self.attempts.current {
            current.end_if_open(at_ms, &outcome);
            current.fail_after_success(&outcome);
        }
        self.outcome = Some(outcome);
    }
}
