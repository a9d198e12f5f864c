//! The types of events are what their table says, and the manual's page is that table.

use crate::{samples, tables, testdata};
use flotilla_engine::NodeId;
use flotilla_engine::definition::StepIndex;
use flotilla_engine::rows::{Event, EventKind, HistoryRecord, ScopeId};
use flotilla_engine::view::{self, EventType, EventView};
use std::collections::BTreeSet;
use std::fmt::Write;

const HEAD: &str = "\
# History events

`flo workflow history RUN` prints the events of a run, `--follow` continues as they occur, and `-o json` prints one object
a line with `seq`, `at_ms`, `raft_index`, `node_id`, `term`, `type`, `scope`, `step`, `visit`, `detail` and the attributes of
its type. `scope`, `step` and `visit` say which step the event is about, if any; for a compensation, that is the step that it
undoes. `node_id` is the leader that proposed the event's entry.

A history has at most 10,000 events; beyond that, its middle is dropped, and the run continues.

| type | when | detail | attributes |
|---|---|---|---|
";

/// One event of each kind with everything that it may hold, as callers see it.
fn views() -> Vec<EventView> {
    let definition = samples::definition();
    let record = HistoryRecord {
        at_ms: 0,
        raft_index: 0,
        term: 0,
        node: NodeId(1),
        payloads_count: 3,
        events: Vec::new(),
    };
    let view = |kind| {
        let step = match kind {
            EventKind::FallbackStarted { .. } => StepIndex::START,
            // The step with branches.
            _ => StepIndex(4),
        };
        let event = Event {
            scope: ScopeId::default(),
            step: Some(step),
            visit: 1,
            activation: Some(1),
            kind,
        };
        view::describe(&definition, &event, 1, &record)
    };
    tables::event::events().into_iter().map(view).collect()
}

/// The names in a flat JSON object of the engine's own making, whose values hold no `":`.
fn names(object: &str) -> BTreeSet<&str> {
    let before = object.split("\":").collect::<Vec<_>>();
    let (_, before) = before.split_last().expect("a split has a part");
    let name = |text: &&'_ str| text.rfind('"').map_or(0, |at| at + 1);
    before.iter().map(|text| &text[name(text)..]).collect()
}

#[test]
fn every_event_has_a_type_of_its_own_and_the_attributes_that_its_type_names() {
    let mut seen = BTreeSet::from(["history_trimmed"]);
    for view in views() {
        assert!(
            seen.insert(view.type_name),
            "{} comes twice",
            view.type_name
        );
        let event_type = EventType::ALL
            .iter()
            .find(|event_type| event_type.as_str() == view.type_name)
            .expect("a type of the table");
        let named: BTreeSet<&str> = event_type.attributes().iter().copied().collect();
        assert_eq!(names(&view.attributes), named, "{event_type}");
        assert_eq!(
            view.detail.is_empty(),
            event_type.detail().is_empty(),
            "{event_type}"
        );
    }
    assert_eq!(seen.len(), EventType::ALL.len());
}

#[test]
fn the_page_of_events_lists_the_types() {
    let mut page = HEAD.to_owned();
    for event_type in EventType::ALL {
        let attributes: Vec<String> = event_type
            .attributes()
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let (when, detail) = (event_type.when(), event_type.detail());
        writeln!(
            page,
            "| `{event_type}` | {when} | {detail} | {} |",
            attributes.join(", ")
        )
        .expect("a string takes any text");
    }
    let path = testdata::file("../../../docs/manual/reference/events.md");
    if let Err(difference) = testdata::compare(&path, &page) {
        panic!("{difference}");
    }
}
