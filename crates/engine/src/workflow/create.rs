//! Storing a definition (W5).

use crate::codec;
use crate::definition::Definition;
use crate::ids::Namespace;
use crate::limits::{ATTRIBUTES_MAX, MAPPING_PATHS_MAX, TRIGGER_BATCH_MAX};
use crate::rejection::Rejection;
use crate::reply::DefinitionCreated;
use crate::schedule;
use crate::tables::{
    DefinitionNumber, DefinitionRecord, DefinitionSources, Definitions, RevisionsByContent,
    VersionRecord, Versions, WorkflowRecord, Workflows,
};
use crate::trigger;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Stores a definition: the validated intermediate form, never the question (design rule 1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateDefinition {
    /// What the engine will execute.
    pub definition: Definition,
    /// The text that it was made from, to be shown.
    pub source: String,
    /// Whether content that is already there becomes the latest again (W5).
    pub make_latest: bool,
}

impl CreateDefinition {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<DefinitionCreated> {
        self.check(namespace)?;
        let definition = &self.definition;
        let content = codec::fingerprint(&codec::encode(definition));
        let key = (
            namespace.clone(),
            definition.name.clone(),
            definition.version.clone(),
            content,
        );
        if let Some(number) = turn.get::<RevisionsByContent>(&key)?.map(|number| *number)
            && let Some(record) = turn.get::<Definitions>(&number)?
            && record.definition == *definition
        {
            return self.keep_existing(turn, namespace, number, record.revision);
        }
        let number = DefinitionNumber(turn.next_number(|cluster| &mut cluster.definitions_count)?);
        let revision = self.count_revision(turn, namespace, number)?;
        let record = DefinitionRecord {
            namespace: namespace.clone(),
            revision,
            created_at_ms: turn.now_ms(),
            definition: definition.clone(),
        };
        turn.put::<Definitions>(&number, record);
        turn.put::<DefinitionSources>(&number, self.source.clone());
        turn.put::<RevisionsByContent>(&key, number);
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
        let mut caches = definition
            .plans
            .iter()
            .filter_map(|plan| plan.cache.as_ref());
        if caches.any(|cache| cache.key.len() > 2 * MAPPING_PATHS_MAX) {
            return Err(Rejection::too_many("holes in a key", MAPPING_PATHS_MAX));
        }
        match &definition.trigger {
            Some(trigger) if trigger.batch_size > TRIGGER_BATCH_MAX => {
                let count_max = TRIGGER_BATCH_MAX as usize;
                Err(Rejection::too_many("records in a batch", count_max))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn keep_existing(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        number: DefinitionNumber,
        revision: u32,
    ) -> Outcome<DefinitionCreated> {
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

    fn count_revision(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        number: DefinitionNumber,
    ) -> Outcome<u32> {
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
        Ok(revisions_count)
    }

    /// Makes a revision what starts use; never re-enables a disabled workflow (W5).
    fn set_latest(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
        number: DefinitionNumber,
    ) -> Outcome<()> {
        let key = (namespace.clone(), self.definition.name.clone());
        let is_enabled = turn
            .get::<Workflows>(&key)?
            .is_none_or(|workflow| workflow.is_enabled);
        turn.put::<Workflows>(
            &key,
            WorkflowRecord {
                is_enabled,
                latest: number,
            },
        );
        schedule::make_live(turn, &key, number)?;
        trigger::make_live(turn, &key, number)
    }
}
