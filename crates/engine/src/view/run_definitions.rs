//! The revisions to which a run was pinned, for its events (W89).

use super::run::{definition_of, revision_of};
use crate::definition::{Definition, StepMapping};
use crate::store::{Reader, StoreError};
use crate::tables::{DefinitionNumber, DefinitionRecord, RunRecord, Runs, read};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The revisions to which a run was pinned.
pub(super) struct RunDefinitions {
    /// The number of the last event that the run had with each former one, the oldest first.
    former: Vec<(u64, Definition)>,
    current: Definition,
}

impl RunDefinitions {
    /// Reads those that the run had behind the event number `after_seq`.
    pub(super) fn of(
        reader: &dyn Reader,
        run: &RunRecord,
        after_seq: u64,
    ) -> Result<Self, StoreError> {
        let mut former = Vec::new();
        let later = run.resumption.former_definitions.iter();
        for definition in later.filter(|former| former.last_event > after_seq) {
            let record = revision_of(reader, run, definition.definition)?;
            former.push((definition.last_event, record.definition));
        }
        Ok(Self {
            former,
            current: definition_of(reader, run)?.definition,
        })
    }

    /// For each former definition, the number of the last event that the run had with it, and where its steps are in the
    /// current one.
    pub(super) fn mappings(&self) -> Vec<(u64, StepMapping)> {
        let former = self.former.iter();
        let mappings = former.map(|(last, former)| (*last, former.mapping_to(&self.current)));
        mappings.collect()
    }

    /// The current definition of the run.
    pub(super) fn current(&self) -> &Definition {
        &self.current
    }

    /// The one that the run had when it noted the event number `seq`.
    pub(super) fn at(&self, seq: u64) -> &Definition {
        let former = self.former.iter().find(|(last, _)| seq <= *last);
        former.map_or(&self.current, |(_, definition)| definition)
    }
}

/// The revisions that a list has read for its rows: each is read once.
#[derive(Default)]
pub(super) struct KnownDefinitions(BTreeMap<DefinitionNumber, DefinitionRecord>);

impl KnownDefinitions {
    /// The revision to which a run is pinned.
    pub(super) fn of(
        &mut self,
        reader: &dyn Reader,
        run: &RunRecord,
    ) -> Result<&DefinitionRecord, StoreError> {
        Ok(match self.0.entry(run.definition) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(definition_of(reader, run)?),
        })
    }
}

/// The one with which the first attempt at a run began; `None` if that is no longer kept.
pub(super) fn first_definition(
    reader: &dyn Reader,
    run: &RunRecord,
) -> Result<Option<Definition>, StoreError> {
    let first = match run.chain {
        Some(chain) => read::<Runs>(reader, &chain.first)?.map(Cow::Owned),
        None => Some(Cow::Borrowed(run)),
    };
    let Some(first) = first else {
        return Ok(None);
    };
    let former = first.resumption.former_definitions.first();
    let number = former.map_or(first.definition, |former| former.definition);
    Ok(Some(revision_of(reader, &first, number)?.definition))
}
