//! Which plans an invalidation event concerns (W37): the index by event.
//!
//! An event concerns a plan if `invalidate_on` lists it in the workflow's latest revision, or in the revision that
//! executed the plan last: either may have cached results, or be about to. A row says which of the two lists the event,
//! so a change of one reads only the definitions before and after it.

use crate::ids::{EventName, Namespace, PlanName, WorkflowName};
use crate::store::StoreError;
use crate::tables::{DefinitionNumber, Definitions, EventListing, PlansByEvent};
use crate::turn::Turn;
use std::collections::BTreeSet;

/// Names a workflow.
type WorkflowKey = (Namespace, WorkflowName);

/// Names a plan.
type PlanKey = (Namespace, WorkflowName, PlanName);

/// The revisions before and after a change; `None` if there is none.
#[derive(Clone, Copy)]
pub(crate) struct RevisionChange {
    pub(crate) before: Option<DefinitionNumber>,
    pub(crate) after: Option<DefinitionNumber>,
}

/// The events of plans before and after a change.
struct EventsChange {
    before: BTreeSet<(PlanName, EventName)>,
    after: BTreeSet<(PlanName, EventName)>,
}

/// The workflow has another latest revision.
pub(crate) fn latest_changed(
    turn: &mut Turn<'_, '_>,
    workflow: &WorkflowKey,
    change: RevisionChange,
) -> Result<(), StoreError> {
    let change = EventsChange {
        before: events(turn, change.before, None)?,
        after: events(turn, change.after, None)?,
    };
    follow(turn, workflow, &change, |listing| &mut listing.is_in_latest)
}

/// Another revision has executed the plan last.
pub(super) fn last_executed_changed(
    turn: &mut Turn<'_, '_>,
    key: &PlanKey,
    change: RevisionChange,
) -> Result<(), StoreError> {
    let (namespace, workflow, plan) = key;
    let change = EventsChange {
        before: events(turn, change.before, Some(plan))?,
        after: events(turn, change.after, Some(plan))?,
    };
    let workflow = (namespace.clone(), workflow.clone());
    follow(turn, &workflow, &change, |listing| {
        &mut listing.is_in_last_executed
    })
}

/// The events that the plans of a revision list, or only the plan `named`.
fn events(
    turn: &mut Turn<'_, '_>,
    revision: Option<DefinitionNumber>,
    named: Option<&PlanName>,
) -> Result<BTreeSet<(PlanName, EventName)>, StoreError> {
    let Some(number) = revision else {
        return Ok(BTreeSet::new());
    };
    let revision = turn.get::<Definitions>(&number)?;
    let revision = revision.expect("a definition is kept as long as anything refers to it");
    let plans = revision.definition.plans.iter();
    let plans = plans.filter(|plan| named.is_none_or(|name| plan.name == *name));
    let listed = plans.flat_map(|plan| {
        let caches = plan.cache.iter();
        let events = caches.flat_map(|cache| cache.invalidate_on.iter().cloned());
        events.map(|event| (plan.name.clone(), event))
    });
    Ok(listed.collect())
}

/// Changes one flag in the rows of the events that differ.
fn follow(
    turn: &mut Turn<'_, '_>,
    workflow: &WorkflowKey,
    change: &EventsChange,
    flag: fn(&mut EventListing) -> &mut bool,
) -> Result<(), StoreError> {
    let (namespace, workflow) = workflow;
    for (plan, event) in change.before.symmetric_difference(&change.after) {
        let (plan, event) = (plan.clone(), event.clone());
        let is_listed = change.after.contains(&(plan.clone(), event.clone()));
        let key = (namespace.clone(), event, workflow.clone(), plan);
        let mut listing = turn
            .get::<PlansByEvent>(&key)?
            .map_or_else(EventListing::default, |listing| *listing);
        *flag(&mut listing) = is_listed;
        if listing.is_in_latest || listing.is_in_last_executed {
            turn.put::<PlansByEvent>(&key, listing);
        } else {
            turn.delete::<PlansByEvent>(&key);
        }
    }
    Ok(())
}
