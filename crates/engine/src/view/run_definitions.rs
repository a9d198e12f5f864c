//! The revisions to which a run was pinned, for its events (W89).

use super::run::definition_of;
use crate::definition::Definition;
use crate::store::{Reader, StoreError};
use crate::tables::{DefinitionRecord, Definitions, RunRecord, read};

/// The revisions to which a run was pinned.
pub(super) struct RunDefinitions {
    /// The number of the last event that the run had with each former one, the oldest first.
    former: Vec<(u64, Definition)>,
    /// The one that the run has.
    pub(super) current: DefinitionRecord,
}

impl RunDefinitions {
    /// Reads them.
    pub(super) fn of(reader: &dyn Reader, run: &RunRecord) -> Result<Self, StoreError> {
        let mut former = Vec::new();
        for definition in &*run.former_definitions {
            let record = read::<Definitions>(reader, &definition.definition)?;
            former.extend(record.map(|record| (definition.last_event, record.definition)));
        }
        Ok(Self {
            former,
            current: definition_of(reader, run)?,
        })
    }

    /// The one that the run had when it noted the event number `seq`.
    pub(super) fn at(&self, seq: u64) -> &Definition {
        let former = self.former.iter().find(|(last, _)| seq <= *last);
        former.map_or(&self.current.definition, |(_, definition)| definition)
    }

    /// The one with which the run began.
    pub(super) fn first(&self) -> &Definition {
        self.at(1)
    }
}
