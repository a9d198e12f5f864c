//! Searches a run's history backwards for visits.
//!
//! A visit ends with `step_completed`, or with the end of the run while the step is active. It begins with the last
//! `step_started` of its step before that. Several steps may be active at the same time, so each is tracked separately.
//! The history does not name the steps that the run's end has ended, but the run's counters give their number: those
//! entered and not left. They are the steps with an event before the end and no `step_completed` in between.

use super::event::{EventView, describe};
use super::run_definitions::RunDefinitions;
use super::visit_events::VisitEvents;
use crate::definition::{StepIndex, StepMapping};
use crate::ids::{NodeId, OutcomeName, ScopeNumber};
use crate::limits::VISIT_EVENTS_LOOKED_AT_MAX;
use crate::run::outcome_name as name;
use crate::store::StoreError;
use crate::tables::{Event, EventKind, HistoryRecord, RunRecord, ScopeId, StepResult};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};

/// A step of a scope: at any time, at most one visit to it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) scope: ScopeNumber,
    pub(super) step: StepIndex,
}

/// A visit of which both ends are known.
pub(super) struct FoundVisit {
    pub(super) place: Place,
    pub(super) entered_at_ms: u64,
    pub(super) attempts: u32,
    pub(super) is_beginning_missing: bool,
    pub(super) end: VisitEnd,
}

/// How a visit ended, and what was found of it so far.
#[derive(Clone)]
pub(super) struct VisitEnd {
    /// The scope of the step.
    pub(super) scope: ScopeId,
    /// The step, in the definition that the run had then; `None` for the end of the run itself.
    pub(super) step: Option<StepIndex>,
    /// The visit to the step in its scope, from 1.
    pub(super) visit: u32,
    /// The event that ended it.
    pub(super) seq: u64,
    pub(super) at_ms: u64,
    pub(super) raft_index: u64,
    pub(super) node: NodeId,
    /// `None` when the run ended under it.
    pub(super) outcome: Option<OutcomeName>,
    /// Whether what the run remembers of the step is of this visit.
    is_remembered: bool,
    /// The attempt that was begun last, where that was not the first.
    attempt: Option<u32>,
    /// The attempts at its fallback, once the search has passed the beginning of that.
    fallback_attempts: u32,
    pub(super) events: VisitEvents,
}

/// A search for the visits that ended in some entries.
pub(super) struct VisitSearch<'a> {
    run: &'a RunRecord,
    definitions: &'a RunDefinitions,
    /// Where the steps of events up to these numbers are in the current definition.
    mappings: Vec<(u64, StepMapping)>,
    entries: RangeInclusive<u64>,
    /// Visits whose beginning is not found yet.
    ended: BTreeMap<Place, VisitEnd>,
    /// Steps that were left behind the place of the search.
    left: BTreeSet<Place>,
    /// Steps whose beginning the search has passed.
    begun: BTreeSet<Place>,
    /// The end of the run, if it is wanted, and how many of the steps that it has ended are not found yet.
    run_end: Option<(VisitEnd, u64)>,
    found: Vec<FoundVisit>,
    /// Events of other entries.
    others_count: usize,
}

/// An event, its number and the record that it belongs to.
#[derive(Clone, Copy)]
struct HistoryEntry<'a> {
    pub(super) seq: u64,
    event: &'a Event,
    record: &'a HistoryRecord,
}

impl<'a> VisitSearch<'a> {
    pub(super) fn new(
        run: &'a RunRecord,
        definitions: &'a RunDefinitions,
        entries: RangeInclusive<u64>,
    ) -> Self {
        Self {
            run,
            definitions,
            mappings: definitions.mappings(),
            entries,
            ended: BTreeMap::new(),
            left: BTreeSet::new(),
            begun: BTreeSet::new(),
            run_end: None,
            found: Vec::new(),
            others_count: 0,
        }
    }

    /// Looks at the record whose first event has the number `first`: the one before that which was looked
    /// at last.
    pub(super) fn look_at(&mut self, first: u64, record: &HistoryRecord) -> ControlFlow<()> {
        let is_before = record.raft_index < *self.entries.start();
        if self.others_count > VISIT_EVENTS_LOOKED_AT_MAX || (is_before && self.is_done()) {
            return ControlFlow::Break(());
        }
        if !self.entries.contains(&record.raft_index) {
            self.others_count += record.events.len();
        }
        let mut seq = first + record.events.len() as u64;
        for event in record.events.iter().rev() {
            seq -= 1;
            let entry = HistoryEntry { seq, event, record };
            match event.step {
                Some(step) => {
                    let scope = event.scope.number;
                    // The results of steps that the current definition does not have are deleted (W89).
                    if let Some(step) = self.current_step(seq, step) {
                        self.look_at_step(Place { scope, step }, entry);
                    }
                }
                None => self.look_at_run(entry),
            }
        }
        ControlFlow::Continue(())
    }

    /// The visits, in the order in which they ended; `result_of` looks up what the run remembers of a step.
    ///
    /// # Errors
    /// Those of the look-up.
    pub(super) fn finish(
        mut self,
        result_of: impl Fn(Place) -> Result<Option<StepResult>, StoreError>,
    ) -> Result<Vec<FoundVisit>, StoreError> {
        for (place, end) in std::mem::take(&mut self.ended) {
            if end.is_remembered
                && let Some(result) = result_of(place)?
            {
                self.found.push(end.remembered(place, &result));
            }
        }
        self.found.sort_by_key(|found| (found.end.seq, found.place));
        Ok(self.found)
    }

    /// The step of the current definition for a step of the event with this number.
    fn current_step(&self, seq: u64, step: StepIndex) -> Option<StepIndex> {
        let mut mappings = self.mappings.iter();
        match mappings.find(|(last_event, _)| seq <= *last_event) {
            Some((_, mapping)) => mapping.step(step),
            None => Some(step),
        }
    }

    /// Whether nothing before this place belongs to a visit that is wanted.
    fn is_done(&self) -> bool {
        let left_to_find = self.run_end.as_ref().map_or(0, |(_, count)| *count);
        self.ended.is_empty() && left_to_find == 0
    }

    fn look_at_run(&mut self, entry: HistoryEntry<'_>) {
        if is_end(&entry.event.kind) {
            if self.entries.contains(&entry.record.raft_index) {
                let mut end = entry.end(None, false);
                end.events.add(self.describe(entry));
                self.run_end = Some((end, self.under_way_count()));
            }
            return;
        }
        // The beginning and the end of a scope are not about the steps of other scopes.
        if self.is_done() || entry.event.scope.number != ScopeNumber::ROOT {
            return;
        }
        let event = self.describe(entry);
        let of_run = self.run_end.as_mut().filter(|(_, count)| *count > 0);
        let of_run = of_run.map(|(end, _)| end).into_iter();
        for end in of_run.chain(self.ended.values_mut()) {
            end.events.add(event.clone());
        }
    }

    fn look_at_step(&mut self, place: Place, entry: HistoryEntry<'_>) {
        // It is of a visit of another run.
        if let EventKind::StepTakenOver(_) = entry.event.kind {
            return;
        }
        let outcome = match &entry.event.kind {
            EventKind::StepCompleted { outcome, .. } => Some(outcome.clone()),
            EventKind::StepCancelled => Some(name::of(name::CANCELLED)),
            _ => None,
        };
        if let Some(outcome) = outcome {
            let is_first = self.left.insert(place);
            // A visit that was cancelled has no result.
            let is_last = is_first && entry.event.kind != EventKind::StepCancelled;
            if self.entries.contains(&entry.record.raft_index) {
                let end = entry.end(Some(outcome), is_last);
                self.ended.insert(place, end);
            }
            return;
        }
        if let EventKind::StepDelayed { .. } = entry.event.kind {
            // Unless the visit has begun since, there was none.
            if !self.begun.remove(&place) && self.ended.remove(&place).is_none() {
                self.under_way(place, entry.event);
            }
            return;
        }
        let Some(mut end) = self
            .ended
            .remove(&place)
            .or_else(|| self.under_way(place, entry.event))
        else {
            return;
        };
        // What a compensation undoes has ended before: its events belong to no visit.
        if entry.event.kind == EventKind::CompensationStarted {
            return;
        }
        if entry.event.kind == EventKind::StepStarted {
            self.begun.insert(place);
            self.found.push(end.entered(place, entry.record.at_ms));
            return;
        }
        match entry.event.kind {
            EventKind::StepRetry { attempt } => {
                end.attempt.get_or_insert(attempt);
            }
            EventKind::FallbackStarted { .. } => {
                end.fallback_attempts = end.attempt.take().unwrap_or(1);
            }
            _ => {}
        }
        end.events.add(self.describe(entry));
        self.ended.insert(place, end);
    }

    /// The visit to a step that the run's end has ended, when the search first meets it.
    fn under_way(&mut self, place: Place, event: &Event) -> Option<VisitEnd> {
        let (end, left_to_find) = self.run_end.as_mut()?;
        if *left_to_find == 0 || self.left.contains(&place) {
            return None;
        }
        *left_to_find -= 1;
        Some(VisitEnd {
            scope: event.scope.clone(),
            step: event.step,
            visit: event.visit,
            ..end.clone()
        })
    }

    /// How many steps were active when the run ended.
    fn under_way_count(&self) -> u64 {
        let RunRecord {
            activations_count,
            left_count,
            ..
        } = self.run;
        activations_count.saturating_sub(*left_count)
    }

    fn describe(&self, entry: HistoryEntry<'_>) -> EventView {
        let definition = self.definitions.at(entry.seq);
        describe(definition, entry.event, entry.seq, entry.record)
    }
}

/// Whether a visit, or all of a run's, ended with this event.
pub(super) fn ends_visit(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::StepCompleted { .. } | EventKind::StepCancelled
    ) || is_end(&event.kind)
}

impl HistoryEntry<'_> {
    fn end(self, outcome: Option<OutcomeName>, is_remembered: bool) -> VisitEnd {
        VisitEnd {
            scope: self.event.scope.clone(),
            step: self.event.step,
            visit: self.event.visit,
            seq: self.seq,
            at_ms: self.record.at_ms,
            raft_index: self.record.raft_index,
            node: self.record.node,
            outcome,
            is_remembered,
            attempt: None,
            fallback_attempts: 0,
            events: VisitEvents::default(),
        }
    }
}

impl VisitEnd {
    /// The visit that began then.
    fn entered(self, place: Place, entered_at_ms: u64) -> FoundVisit {
        FoundVisit {
            place,
            entered_at_ms,
            attempts: self.attempt.unwrap_or(1) + self.fallback_attempts,
            is_beginning_missing: false,
            end: self,
        }
    }

    /// The visit whose beginning only the run's record tells.
    fn remembered(self, place: Place, result: &StepResult) -> FoundVisit {
        FoundVisit {
            place,
            entered_at_ms: result.started_at_ms,
            attempts: result.attempts,
            is_beginning_missing: true,
            end: self,
        }
    }
}

/// Whether it is the end of the run.
fn is_end(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::WorkflowCompleted { .. }
            | EventKind::WorkflowFailed { .. }
            | EventKind::WorkflowCancelled { .. }
            | EventKind::WorkflowTimedOut { .. }
    )
}
