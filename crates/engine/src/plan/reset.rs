//! Resetting the executors of a plan (W31).

use crate::ids::{ExecutorName, Namespace, PlanName, WorkflowName};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{PlanExecutors, Plans};
use crate::turn::{Turn, TurnResult};
use crate::workflow::newest;
use serde::{Deserialize, Serialize};

/// Clears the results, breakers, probes and calls of a plan's executors. Attempts in flight continue and count as new
/// ones; cached results stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetPlan {
    /// The workflow.
    pub workflow: WorkflowName,
    /// Its plan.
    pub plan: PlanName,
    /// Only this executor.
    pub executor: Option<ExecutorName>,
}

impl ResetPlan {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let latest = newest(turn, namespace, &self.workflow, None)?.record;
        let defined = latest.definition.plan_named(&self.plan);
        let key = (namespace.clone(), self.workflow.clone(), self.plan.clone());
        let known = match turn.get::<Plans>(&key)? {
            Some(record) => turn.list::<PlanExecutors>(&record.number, usize::MAX)?,
            None if defined.is_some() => Vec::new(),
            None => {
                let (workflow, plan) = (self.workflow.clone(), self.plan.clone());
                return Err(Rejection::PlanNotFound { workflow, plan }.into());
            }
        };
        let is_wanted = |name: &ExecutorName| self.executor.as_ref().is_none_or(|own| own == name);
        let mut is_found = defined
            .into_iter()
            .flat_map(|plan| &plan.executors)
            .any(|executor| is_wanted(&executor.name));
        for (key, _) in known.into_iter().filter(|(key, _)| is_wanted(&key.1)) {
            turn.delete::<PlanExecutors>(&key);
            is_found = true;
        }
        match &self.executor {
            Some(executor) if !is_found => Err(Rejection::ExecutorNotFound {
                plan: self.plan.clone(),
                executor: executor.clone(),
            }
            .into()),
            Some(_) | None => Ok(Done {}),
        }
    }
}
