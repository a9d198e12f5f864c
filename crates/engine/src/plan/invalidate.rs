//! Invalidating cached results (W37).

use crate::ids::{EventName, Namespace, PlanName, PlanRef, WorkflowName};
use crate::limits::INVALIDATED_PLANS_MAX;
use crate::rejection::Rejection;
use crate::reply::CacheInvalidated;
use crate::store::{KeyRange, StoreError};
use crate::tables::{Plans, PlansByEvent, Workflows, encode_key, encode_prefix};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Raises an invalidation event: plans that list it in `invalidate_on` drop their cached results. One command looks at a
/// bounded batch of these plans; the reply says where the next one continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidateCache {
    /// The event.
    pub event: EventName,
    /// Only the plans of this workflow.
    pub workflow: Option<WorkflowName>,
    /// Only the plans after this one: the `next` of the reply to the batch before.
    pub after: Option<PlanRef>,
}

impl InvalidateCache {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<CacheInvalidated> {
        if let Some(workflow) = &self.workflow {
            let key = (namespace.clone(), workflow.clone());
            if turn.get::<Workflows>(&key)?.is_none() {
                return Err(Rejection::WorkflowNotFound(workflow.clone()).into());
            }
        }
        let mut plans = self.find(turn, namespace)?;
        let has_more = plans.len() > INVALIDATED_PLANS_MAX;
        plans.truncate(INVALIDATED_PLANS_MAX);
        let mut plan_count = 0;
        for key in &plans {
            // A plan that no run has executed has no record and no cached results.
            let invalidated =
                turn.edit::<Plans, _>(key, |plan| plan.cache.invalidations_count += 1)?;
            plan_count += u32::from(invalidated.is_some());
        }
        let last = plans.pop().filter(|_| has_more);
        let next = last.map(|(_, workflow, plan)| PlanRef { workflow, plan });
        Ok(CacheInvalidated { plan_count, next })
    }

    /// The plans that list the event, and one more than a batch if there are more.
    fn find(
        &self,
        turn: &Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Result<Vec<(Namespace, WorkflowName, PlanName)>, StoreError> {
        let mut plans = Vec::new();
        turn.visit_range::<PlansByEvent>(&self.range(namespace), |key, _| {
            let (namespace, _, workflow, plan) = key;
            plans.push((namespace, workflow, plan));
            if plans.len() <= INVALIDATED_PLANS_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(plans)
    }

    /// The rows of the plans that the command may look at.
    fn range(&self, namespace: &Namespace) -> KeyRange {
        let event = (namespace.clone(), self.event.clone());
        let mut range = KeyRange::prefix(&match &self.workflow {
            None => encode_prefix::<PlansByEvent>(&event),
            Some(workflow) => {
                encode_prefix::<PlansByEvent>(&(event.0.clone(), event.1.clone(), workflow.clone()))
            }
        });
        if let Some(PlanRef { workflow, plan }) = self.after.clone() {
            let mut from = encode_key::<PlansByEvent>(&(event.0, event.1, workflow, plan));
            from.push(0);
            range.from = range.from.max(from);
        }
        range
    }
}
