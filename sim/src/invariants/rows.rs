//! Reads the rows of a table for the invariants.

use flotilla_engine::definition::Definition;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{
    DefinitionNumber, Definitions, Event, History, Key, RunRecord, Runs, Table, encode_prefix,
    visit,
};
use flotilla_engine::store::{KeyRange, MemoryStore, Order};
use std::ops::ControlFlow;
use std::rc::Rc;

/// The records whose keys start with these parts, by key.
pub(super) fn rows<T: Table>(store: &MemoryStore, prefix: &impl Key) -> Vec<(T::Key, T::Record)> {
    let range = KeyRange::prefix(&encode_prefix::<T>(prefix));
    let mut rows = Vec::new();
    visit::<T>(store, &range, Order::Ascending, |key, record| {
        rows.push((key, record));
        ControlFlow::Continue(())
    })
    .expect("memory does not fail, and the engine reads what it wrote");
    rows
}

/// A definition of a run.
pub(super) fn definition(store: &MemoryStore, number: DefinitionNumber) -> Definition {
    let found = rows::<Definitions>(store, &number);
    let (_, record) = found.into_iter().next().expect("a run has a definition");
    record.definition
}

/// An event of a run, with the definition that the run had then: a run that is resumed can have several.
pub(super) struct PastEvent {
    pub(super) event: Event,
    definition: Rc<Definition>,
}

impl PastEvent {
    /// The step that it is about; empty without one.
    pub(super) fn step(&self) -> &str {
        let step = self.event.step;
        step.map_or("", |step| self.definition.step(step).name.as_str())
    }

    /// Whether it is about an iteration of a loop.
    pub(super) fn is_of_iteration(&self) -> bool {
        self.event.scope.path.is_of_iteration(&self.definition)
    }

    /// Whether it is in a scope that the visit of the event `opener` opened.
    pub(super) fn is_below(&self, opener: &Self) -> bool {
        let scope = self.scope();
        let below = scope.strip_prefix(&opener.scope()[..]);
        let visit = (opener.step(), opener.event.visit);
        let first = below.and_then(<[_]>::first);
        first.is_some_and(|(step, number, _)| (step.as_str(), *number) == visit)
    }

    /// The place of its scope: for each step on the way down from the run, its name, the visit to it and the branch.
    pub(super) fn scope(&self) -> Vec<(String, u32, u32)> {
        let steps = self.event.scope.path.0.iter();
        let named = steps.map(|down| {
            let step = self.definition.step(down.step);
            (step.name.to_string(), down.visit, down.position)
        });
        named.collect()
    }
}

/// The runs of a workflow with their events.
pub(super) fn runs_of(
    store: &MemoryStore,
    workflow: &str,
) -> Vec<(RunNumber, RunRecord, Vec<PastEvent>)> {
    let runs = rows::<Runs>(store, &()).into_iter();
    let own = runs.filter(|(_, run)| definition(store, run.definition).name.as_str() == workflow);
    own.map(|(number, run)| {
        let events = events_of(store, number, &run);
        (number, run, events)
    })
    .collect()
}

/// The events of a run.
pub(super) fn events_of(store: &MemoryStore, number: RunNumber, run: &RunRecord) -> Vec<PastEvent> {
    let former = run.resumption.former_definitions.iter();
    let of_former = former.map(|former| (former.last_event, former.definition));
    let of_all = of_former.chain([(u64::MAX, run.definition)]);
    let definitions: Vec<(u64, Rc<Definition>)> = of_all
        .map(|(last_event, number)| (last_event, Rc::new(definition(store, number))))
        .collect();
    let records = rows::<History>(store, &number).into_iter();
    let events = records.flat_map(|((_, first), record)| (first..).zip(record.events));
    let dated = events.map(|(seq, event)| {
        let then = definitions
            .iter()
            .find(|(last_event, _)| seq <= *last_event);
        let (_, definition) = then.expect("the last definition has no last event");
        PastEvent {
            event,
            definition: definition.clone(),
        }
    });
    dated.collect()
}
