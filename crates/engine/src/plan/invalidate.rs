//! Invalidating cached results (W37).

use crate::ids::{EventName, Namespace, PlanName, WorkflowName};
use crate::rejection::Rejection;
use crate::reply::CacheInvalidated;
use crate::tables::{DefinitionNumber, Plans, Workflows};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Raises an invalidation event: plans that list it in `invalidate_on` drop their cached results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidateCache {
    /// The event.
    pub event: EventName,
    /// Only the plans of this workflow.
    pub workflow: Option<WorkflowName>,
}

impl InvalidateCache {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<CacheInvalidated> {
        let plans = match &self.workflow {
            None => turn.list::<Plans>(namespace, usize::MAX)?,
            Some(workflow) => {
                let key = (namespace.clone(), workflow.clone());
                if turn.get::<Workflows>(&key)?.is_none() {
                    return Err(Rejection::WorkflowNotFound(workflow.clone()).into());
                }
                turn.list::<Plans>(&key, usize::MAX)?
            }
        };
        let mut plan_count = 0;
        for (key, record) in plans {
            let (namespace, workflow, plan) = &key;
            let workflow = turn.get::<Workflows>(&(namespace.clone(), workflow.clone()))?;
            let latest = workflow.map(|workflow| workflow.latest);
            // Either may have cached results, or be about to.
            let revisions = latest.into_iter().chain([record.last_executed]);
            if self.is_named_by(turn, plan, revisions)? {
                let mut record = Arc::unwrap_or_clone(record);
                record.cache.invalidations_count += 1;
                turn.put::<Plans>(&key, record);
                plan_count += 1;
            }
        }
        Ok(CacheInvalidated { plan_count })
    }

    /// Whether the plan lists the event in one of the revisions.
    fn is_named_by(
        &self,
        turn: &mut Turn<'_, '_>,
        plan: &PlanName,
        revisions: impl Iterator<Item = DefinitionNumber>,
    ) -> TurnResult<bool> {
        for number in revisions {
            let definition = turn.pinned(number)?;
            let plan = definition.definition.plan_named(plan);
            let cache = plan.and_then(|plan| plan.cache.as_ref());
            if cache.is_some_and(|cache| cache.invalidate_on.contains(&self.event)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
