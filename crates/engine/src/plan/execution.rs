//! The execution of a plan while a turn works on it.

use super::events::{RevisionChange, last_executed_changed};
use crate::definition::{Executor, ExecutorIndex, Plan, PlanIndex, RunTarget, Step};
use crate::ids::{ExecutorName, Namespace, PlanName, PlanNumber, WorkflowName};
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, CacheUsage, DefinitionRecord, EventKind, PlanEvent,
    PlanExecutorRecord, PlanExecutors, PlanNumbers, PlanRecord, PlanState, Plans, Probe,
};
use crate::turn::{Draft, LoadedRun, Turn};
use std::sync::Arc;

/// An active step whose target is a plan.
pub(crate) struct Execution<'r> {
    pub(super) run: &'r mut LoadedRun,
    /// The step, taken out of its run.
    pub(super) active: Draft<Activation>,
    definition: Arc<DefinitionRecord>,
    plan: PlanIndex,
}

impl<'r> Execution<'r> {
    /// Notes that the call of the step was made.
    pub(super) fn open_call(&mut self) {
        self.active.open_call(&self.definition.definition);
    }

    /// Makes an execution from an active step.
    ///
    /// # Panics
    /// If the step's target is not a plan.
    pub(crate) fn new(run: &'r mut LoadedRun, active: Draft<Activation>) -> Self {
        let definition = run.definition.clone();
        let call = definition.definition.step(active.step).call(active.call);
        let RunTarget::Plan(plan) = call.expect("only run steps execute plans").target else {
            panic!("only steps that target a plan execute one");
        };
        Self {
            run,
            active,
            definition,
            plan,
        }
    }

    /// Puts the step back into its run, in `state`.
    pub(super) fn put(mut self, state: ActivationState) -> &'r mut LoadedRun {
        self.active.state = state;
        self.run.put_back(self.active);
        self.run
    }

    /// The execution's state; `None` before it has begun.
    pub(super) fn plan_state(&self) -> Option<PlanState> {
        self.active.state.plan().cloned()
    }

    pub(super) fn plan(&self) -> &Plan {
        self.definition.definition.plan(self.plan)
    }

    pub(super) fn executor(&self, index: ExecutorIndex) -> &Executor {
        self.plan().executor(index)
    }

    pub(super) fn step(&self) -> &Step {
        self.definition.definition.step(self.active.step)
    }

    /// The identity of this execution's attempts for breakers.
    pub(super) fn probe(&self) -> Probe {
        Probe {
            run: self.run.number,
            activation: self.active.number,
        }
    }

    /// Adds an event to the run's history.
    pub(super) fn event(&mut self, event: PlanEvent) {
        self.run.note(&self.active, EventKind::Plan(event));
    }

    /// The key of the plan's record.
    pub(super) fn key(&self) -> (Namespace, WorkflowName, PlanName) {
        (
            self.run.record.namespace.clone(),
            self.definition.definition.name.clone(),
            self.plan().name.clone(),
        )
    }

    /// The plan's record, created by the first execution.
    pub(super) fn plan_record(&self, turn: &mut Turn<'_, '_>) -> Result<PlanRecord, StoreError> {
        let key = self.key();
        let definition = self.run.record.definition;
        if let Some(record) = turn.get::<Plans>(&key)? {
            let mut record = Arc::unwrap_or_clone(record);
            if record.last_executed != definition {
                let change = RevisionChange {
                    before: Some(record.last_executed),
                    after: Some(definition),
                };
                last_executed_changed(turn, &key, change)?;
                record.last_executed = definition;
                turn.put::<Plans>(&key, record.clone());
            }
            return Ok(record);
        }
        let number = PlanNumber(turn.next_number(|cluster| &mut cluster.plan_count));
        let record = PlanRecord {
            number,
            last_executed: definition,
            rotations_count: 0,
            cache: CacheUsage::default(),
        };
        let change = RevisionChange {
            before: None,
            after: Some(definition),
        };
        last_executed_changed(turn, &key, change)?;
        turn.put::<PlanNumbers>(&number, key.clone());
        turn.put::<Plans>(&key, record.clone());
        Ok(record)
    }

    /// The key and the record of an executor.
    pub(super) fn executor_record(
        &self,
        turn: &mut Turn<'_, '_>,
        index: ExecutorIndex,
    ) -> Result<ExecutorRow, StoreError> {
        let plan = self.plan_record(turn)?.number;
        let key = (plan, self.executor(index).name.clone());
        let record = turn.get::<PlanExecutors>(&key)?;
        let record = record.map(Arc::unwrap_or_clone).unwrap_or_default();
        let before = record.clone();
        Ok(ExecutorRow {
            key,
            record,
            before,
        })
    }
}

/// The record of an executor, to be changed and put back.
pub(super) struct ExecutorRow {
    key: (PlanNumber, ExecutorName),
    pub(super) record: PlanExecutorRecord,
    before: PlanExecutorRecord,
}

impl ExecutorRow {
    /// Writes the record if it has changed: most attempts leave a closed breaker as it is.
    pub(super) fn put(self, turn: &mut Turn<'_, '_>) {
        if self.record != self.before {
            turn.put::<PlanExecutors>(&self.key, self.record);
        }
    }
}
