//! Checks in the log of some runs that nothing that has succeeded is executed again, however often they are resumed (W89).
//!
//! Dropped work may be executed again (W82a): that of a block that is retried, and that below a step for which something was
//! undone. So may the blocks of a step that neither succeeds nor fails, but ends with `rejected` or a custom outcome. In a
//! tree, no block fails although its last step did not, so none starts from its beginning for that reason.

use super::player::Player;
use super::undone_history::{definition_of, is_good};
use crate::invariants::{read, rows};
use flotilla_engine::definition::{Definition, StepIndex, StepKind};
use flotilla_engine::ids::{OutcomeName, RunNumber, StepName};
use flotilla_engine::rows::{
    Activation, Activations, Event, EventKind, History, RunRecord, Runs, ScopePath, Scopes,
    UndoOwner,
};
use flotilla_engine::{Body, Budgets, Entry};
use std::collections::{BTreeMap, BTreeSet};

/// Plays the log of a player again, and panics if anything that has succeeded is executed again.
pub(super) fn expect_no_repeats(player: &Player, budgets: Budgets) {
    let mut again = Player::with(budgets);
    let mut runs: BTreeMap<RunNumber, Progress> = BTreeMap::new();
    for entry in &player.log {
        again.play(entry);
        for (number, record) in rows::<Runs>(&again.store, &()) {
            let progress = runs.entry(number).or_default();
            if progress.record.as_ref() != Some(&record) {
                progress.note(&again, number, entry);
                progress.record = Some(record);
            }
        }
    }
}

/// The blocks around a step, the outermost first: the step that opened each, and its position. Visits do not count: a run
/// of a tree visits a step again only if it is resumed, or drops the first visit.
type Blocks = Vec<(StepName, u32)>;

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    blocks: Blocks,
    step: StepName,
}

/// Something that happens once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    /// A step has succeeded.
    Step(Place),
    /// A block has succeeded.
    Block(Blocks),
    /// A step has its result, but may not have ended: it has taken a signal or appended a record.
    Result(Place),
}

impl Done {
    fn blocks(&self) -> &Blocks {
        match self {
            Self::Step(place) | Self::Result(place) => &place.blocks,
            Self::Block(blocks) => blocks,
        }
    }
}

/// How far a run has come.
#[derive(Default)]
struct Progress {
    record: Option<RunRecord>,
    done: BTreeSet<Done>,
    /// The active steps in iterations: the history has only what did not succeed there.
    active: BTreeMap<u64, Place>,
}

impl Progress {
    /// Notes what the last entry did to a run.
    fn note(&mut self, player: &Player, run: RunNumber, entry: &Entry) {
        let definition = definition_of(player, run);
        let events = self.new_events(player, run);
        let active = rows::<Activations>(&player.store, &run).into_iter();
        let active: BTreeMap<u64, Activation> = active
            .map(|((_, number), active)| (number, active))
            .collect();
        if !is_forced_cancel(entry) {
            self.note_ends(&events, &active);
        }
        for event in &events {
            self.note_event(&definition, event);
        }
        let place_of = |active: &Activation| {
            let scope = read::<Scopes>(&player.store, &(run, active.scope));
            let path = scope.map_or_else(ScopePath::default, |scope| scope.id.path);
            let place = place(&definition, &path, active.step);
            (place, path.is_of_iteration(&definition))
        };
        let own = active.iter().filter(|(_, active)| {
            let outermost = definition.outermost(active.step);
            !active.call.is_after_visit() && !definition.is_handler(outermost)
        });
        let places = own.map(|(number, active)| (*number, place_of(active)));
        let in_iterations = places.filter(|(_, (_, is_of_iteration))| *is_of_iteration);
        let before = std::mem::take(&mut self.active);
        for (number, (place, _)) in in_iterations {
            if !before.contains_key(&number) {
                self.expect_new(&Done::Step(place.clone()));
            }
            self.active.insert(number, place);
        }
        for undoing in active.values().filter_map(Activation::undoes_for) {
            if let UndoOwner::Step(owner) = undoing
                && let Some(owner) = active.get(&owner)
            {
                self.drop_below(&place_of(owner).0);
            }
        }
    }

    /// The events that were added to the history.
    fn new_events(&self, player: &Player, run: RunNumber) -> Vec<Event> {
        let seen = self.record.as_ref();
        let mut seen = seen.map_or(0, |record| record.history.events_count);
        let mut events = Vec::new();
        // A record has the number of its first event.
        while let Some(record) = read::<History>(&player.store, &(run, seen + 1)) {
            seen += record.events.len() as u64;
            events.extend(record.events);
        }
        events
    }

    /// Notes the steps in iterations that have succeeded: those that are no longer active, and of which the history has no
    /// other end.
    fn note_ends(&mut self, events: &[Event], active: &BTreeMap<u64, Activation>) {
        let is_bad_end = |event: &&Event| match &event.kind {
            EventKind::StepCancelled => true,
            EventKind::StepCompleted { outcome, .. } => !is_good(outcome),
            _ => false,
        };
        let bad = events.iter().filter(is_bad_end);
        let bad: BTreeSet<u64> = bad.filter_map(|event| event.activation).collect();
        for (number, place) in &self.active {
            if !active.contains_key(number) && !bad.contains(number) {
                self.done.insert(Done::Step(place.clone()));
            }
        }
    }

    fn note_event(&mut self, definition: &Definition, event: &Event) {
        let path = &event.scope.path;
        let opener = path.0.first().map(|down| down.step);
        // A handler is executed at each end of its run.
        let outermost = opener.or_else(|| event.step.map(|step| definition.outermost(step)));
        if outermost.is_some_and(|step| definition.is_handler(step)) {
            return;
        }
        match event.step {
            Some(step) => self.note_step(definition, event, step),
            None => self.note_scope(definition, event),
        }
    }

    /// Notes an event of a step.
    fn note_step(&mut self, definition: &Definition, event: &Event, step: StepIndex) {
        let place = place(definition, &event.scope.path, step);
        match &event.kind {
            EventKind::StepStarted => self.expect_new(&Done::Step(place)),
            EventKind::StepCompleted { outcome, .. } if is_good(outcome) => {
                self.done.insert(Done::Step(place));
            }
            // What its blocks have done is kept only if it fails.
            EventKind::StepCompleted { outcome, .. } if !is_failure(outcome) => {
                self.drop_below(&place);
            }
            EventKind::StepRetry { .. }
                if matches!(definition.step(step).kind, StepKind::Block(_)) =>
            {
                self.drop_below(&place);
            }
            EventKind::IterationEnded { index, outcome } if is_good(outcome) => {
                let mut blocks = place.blocks.clone();
                blocks.push((place.step.clone(), *index));
                // Its step may have ended in the same entry.
                let is_new = self.done.insert(Done::Block(blocks));
                assert!(is_new, "iteration {index} of {} again", place.step);
            }
            EventKind::WaitingForSignal { .. } => self.expect_new(&Done::Result(place)),
            EventKind::SignalMatched { .. } => {
                self.done.insert(Done::Result(place));
            }
            EventKind::RecordEmitted { .. } => {
                let result = Done::Result(place);
                self.expect_new(&result);
                self.done.insert(result);
            }
            _ => {}
        }
    }

    /// Notes an event of a scope.
    fn note_scope(&mut self, definition: &Definition, event: &Event) {
        let path = &event.scope.path;
        let blocks = blocks(definition, path);
        match &event.kind {
            EventKind::ScopeStarted => self.expect_new(&Done::Block(blocks)),
            EventKind::ScopeEnded { outcome } if is_good(outcome) => {
                self.done.insert(Done::Block(blocks));
            }
            _ => {}
        }
    }

    /// Forgets what was done in the blocks of a step.
    fn drop_below(&mut self, opener: &Place) {
        self.done.retain(|done| {
            let below = done.blocks().strip_prefix(&opener.blocks[..]);
            let first = below.and_then(<[_]>::first);
            first.is_none_or(|(step, _)| *step != opener.step)
        });
    }

    /// Panics if something was done before, or if it is below a step or in a block that has succeeded.
    fn expect_new(&self, next: &Done) {
        assert!(!self.done.contains(next), "{next:?} again");
        for (depth, (step, _)) in next.blocks().iter().enumerate() {
            let (blocks, inner) = next.blocks().split_at(depth);
            let opener = Place {
                blocks: blocks.to_vec(),
                step: step.clone(),
            };
            let block = [blocks, &inner[..1]].concat();
            for around in [Done::Step(opener), Done::Block(block)] {
                let is_done = self.done.contains(&around);
                assert!(!is_done, "{next:?}, but {around:?}");
            }
        }
    }
}

/// Whether a step with this outcome has failed (W34). One that was rejected has neither failed nor succeeded.
fn is_failure(outcome: &OutcomeName) -> bool {
    matches!(
        outcome.as_str(),
        "failure" | "timeout" | "execution_failure" | "target_not_found" | "target_disabled"
    )
}

fn is_forced_cancel(entry: &Entry) -> bool {
    let mut bodies = entry.commands.iter().map(|envelope| &envelope.command.body);
    bodies.any(|body| matches!(body, Body::CancelRun(cancel) if cancel.is_forced))
}

fn blocks(definition: &Definition, path: &ScopePath) -> Blocks {
    let down = path.0.iter();
    down.map(|down| (definition.step(down.step).name.clone(), down.position))
        .collect()
}

fn place(definition: &Definition, path: &ScopePath, step: StepIndex) -> Place {
    Place {
        blocks: blocks(definition, path),
        step: definition.step(step).name.clone(),
    }
}
