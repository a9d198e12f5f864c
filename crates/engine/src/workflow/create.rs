//! Storing a definition (W5).

use crate::codec;
use crate::definition::Definition;
use crate::ids::{Namespace, WorkflowName};
use crate::limits::{
    ATTRIBUTES_MAX, INVALIDATION_EVENTS_MAX, MAPPING_PATHS_MAX, PLANS_MAX, REVISIONS_BYTES_MAX,
    REVISIONS_MAX, TRIGGER_BATCH_MAX, TRIGGERS_MAX, WORKFLOWS_MAX,
};
use crate::plan::{self, RevisionChange};
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::DefinitionCreated;
use crate::schedule;
use crate::tables::{
    DefinitionNumber, DefinitionRecord, DefinitionSources, Definitions, Revisions,
    RevisionsByContent, VersionRecord, Versions, WorkflowCounts, WorkflowRecord, Workflows,
    WorkflowsBeingDeleted,
};
use crate::trigger;
use crate::turn::{Turn, TurnResult};
use crate::workflow_rejection::WorkflowRejection;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many revisions with the same fingerprint are compared with a new one. Two contents rarely share a fingerprint;
/// more of them are revisions, whether or not they are equal.
const FINGERPRINTS_COMPARED_MAX: usize = 4;

/// Stores a definition in its validated intermediate form (design rule 1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateDefinition {
    /// The definition that the engine executes.
    pub definition: Definition,
    /// The original text, for display.
    pub source: String,
    /// Whether existing content becomes the latest revision again (W5).
    pub make_latest: bool,
}

impl CreateDefinition {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<DefinitionCreated> {
        self.check(namespace)?;
        let definition = &self.definition;
        let workflow = (namespace.clone(), definition.name.clone());
        if turn.get::<WorkflowsBeingDeleted>(&workflow)?.is_some() {
            return Err(WorkflowRejection::BeingDeleted(workflow.1).into());
        }
        let content = codec::fingerprint(&codec::encode(definition));
        let version = definition.version.clone();
        let place = (workflow.0, workflow.1, version, content);
        for key in turn.keys::<RevisionsByContent>(&place, FINGERPRINTS_COMPARED_MAX)? {
            let record = turn.pinned(key.4)?;
            if record.definition == *definition {
                return self.keep_existing(turn, namespace, key.4, record.revision);
            }
        }
        let number = DefinitionNumber(turn.next_number(|cluster| &mut cluster.definitions_count));
        self.count_for_workflow(turn, namespace, number)?;
        let revision = self.count_revision(turn, namespace, number)?;
        let record = DefinitionRecord {
            namespace: namespace.clone(),
            revision,
            created_at_ms: turn.now_ms(),
            definition: definition.clone(),
        };
        turn.put::<Definitions>(&number, record);
        turn.put::<DefinitionSources>(&number, self.source.clone());
        turn.put::<RevisionsByContent>(&(place.0, place.1, place.2, place.3, number), ());
        self.set_latest(turn, namespace, number)?;
        Ok(DefinitionCreated {
            revision,
            is_new: true,
            is_latest: true,
        })
    }

    fn check(&self, namespace: &Namespace) -> Result<(), Rejection> {
        let definition = &self.definition;
        if let Some(found) = &definition.namespace
            && found != namespace
        {
            let (expected, found) = (namespace.clone(), found.clone());
            return Err(Rejection::NamespaceMismatch { expected, found });
        }
        if definition.search_attributes.len() > ATTRIBUTES_MAX {
            return Err(Rejection::too_many("search attributes", ATTRIBUTES_MAX));
        }
        let mut templates = definition.templates();
        if templates.any(|template| template.paths().count() > MAPPING_PATHS_MAX) {
            return Err(Rejection::too_many("paths in a mapping", MAPPING_PATHS_MAX));
        }
        if definition.plans.len() > PLANS_MAX {
            return Err(Rejection::too_many("plans", PLANS_MAX));
        }
        for cache in definition
            .plans
            .iter()
            .filter_map(|plan| plan.cache.as_ref())
        {
            if cache.key.len() > 2 * MAPPING_PATHS_MAX {
                return Err(Rejection::too_many(
                    "placeholders in a key",
                    MAPPING_PATHS_MAX,
                ));
            }
            if cache.invalidate_on.len() > INVALIDATION_EVENTS_MAX {
                let noun = "events of a plan's `invalidate_on`";
                return Err(Rejection::too_many(noun, INVALIDATION_EVENTS_MAX));
            }
        }
        let mut triggers = definition.triggers.iter();
        if triggers.len() > TRIGGERS_MAX {
            return Err(Rejection::too_many("triggers", TRIGGERS_MAX));
        }
        if triggers.any(|trigger| trigger.batch_size > TRIGGER_BATCH_MAX) {
            let count_max = TRIGGER_BATCH_MAX as usize;
            return Err(Rejection::too_many("records in a batch", count_max));
        }
        Ok(())
    }

    fn keep_existing(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        number: DefinitionNumber,
        revision: u32,
    ) -> TurnResult<DefinitionCreated> {
        if self.make_latest {
            self.set_latest(turn, namespace, number)?;
        }
        let key = (namespace.clone(), self.definition.name.clone());
        let is_latest = turn
            .get::<Workflows>(&key)?
            .is_some_and(|workflow| workflow.latest == number);
        Ok(DefinitionCreated {
            revision,
            is_new: false,
            is_latest,
        })
    }

    /// Counts a revision that is new of its workflow, and the workflow if that is new.
    fn count_for_workflow(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        number: DefinitionNumber,
    ) -> TurnResult<()> {
        let key = (namespace.clone(), self.definition.name.clone());
        let mut workflow = match turn.get::<Workflows>(&key)? {
            Some(workflow) => Arc::unwrap_or_clone(workflow),
            None => {
                quota::check(turn, namespace, &[(QuotaDimension::Workflows, 1)])?;
                count_workflow(turn, namespace)?;
                WorkflowRecord {
                    is_enabled: true,
                    latest: number,
                    revisions_count: 0,
                    revisions_bytes: 0,
                }
            }
        };
        workflow.revisions_count += 1;
        let revisions_count = u64::from(workflow.revisions_count);
        let needs = (QuotaDimension::VersionsPerWorkflow, revisions_count);
        quota::check(turn, namespace, &[needs])?;
        workflow.revisions_bytes += self.source.len() as u64;
        if workflow.revisions_count > REVISIONS_MAX
            || workflow.revisions_bytes > REVISIONS_BYTES_MAX
        {
            return Err(WorkflowRejection::RevisionsTooMany(key.1).into());
        }
        turn.put::<Workflows>(&key, workflow);
        Ok(())
    }

    /// Counts a revision of its version, by whose number it is found.
    fn count_revision(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        number: DefinitionNumber,
    ) -> TurnResult<u32> {
        let key = (
            namespace.clone(),
            self.definition.name.clone(),
            self.definition.version.clone(),
        );
        let revisions_count = turn
            .get::<Versions>(&key)?
            .map_or(0, |version| version.revisions_count)
            + 1;
        turn.put::<Versions>(
            &key,
            VersionRecord {
                newest: number,
                revisions_count,
            },
        );
        turn.put::<Revisions>(&(key.0, key.1, key.2, revisions_count), number);
        Ok(revisions_count)
    }

    /// Checks that the quotas allow the schedule and the triggers that the workflow has in addition from now on.
    fn check_starters(
        &self,
        turn: &mut Turn<'_, '_>,
        key: &(Namespace, WorkflowName),
    ) -> TurnResult<()> {
        let had_schedule = schedule::is_live(turn, key)?;
        let has_schedule = self.definition.schedule.is_some();
        let triggers_before = trigger::count(turn, key)?;
        let triggers = self.definition.triggers.len() as u64;
        let needs = [
            (
                QuotaDimension::Schedules,
                u64::from(has_schedule && !had_schedule),
            ),
            (
                QuotaDimension::Triggers,
                triggers.saturating_sub(triggers_before),
            ),
        ];
        quota::check(turn, &key.0, &needs)
    }

    /// Makes a revision the latest; never re-enables a disabled workflow (W5).
    fn set_latest(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        number: DefinitionNumber,
    ) -> TurnResult<()> {
        let key = (namespace.clone(), self.definition.name.clone());
        let workflow = turn.get::<Workflows>(&key)?;
        let workflow = workflow.expect("a workflow is counted before it has a latest revision");
        let change = RevisionChange {
            // The record of a new workflow names its first revision already.
            before: (workflow.revisions_count > 1).then_some(workflow.latest),
            after: Some(number),
        };
        self.check_starters(turn, &key)?;
        plan::latest_changed(turn, &key, change)?;
        turn.put::<Workflows>(
            &key,
            WorkflowRecord {
                latest: number,
                ..(*workflow).clone()
            },
        );
        schedule::make_live(turn, &key, number)?;
        trigger::make_live(turn, &key, number)
    }
}

fn count_workflow(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<()> {
    let count = turn.get::<WorkflowCounts>(namespace)?;
    let count = count.map_or(0, |count| *count);
    if count >= WORKFLOWS_MAX {
        return Err(WorkflowRejection::WorkflowsTooMany(namespace.clone()).into());
    }
    turn.put::<WorkflowCounts>(namespace, count + 1);
    turn.note_use(namespace, QuotaDimension::Workflows, 1);
    Ok(())
}
