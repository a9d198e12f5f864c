//! A run's counters of entered and left steps agree with its history.

use super::{read, rows};
use flotilla_engine::definition::{Definition, StepIndex};
use flotilla_engine::ids::{RunNumber, ScopeNumber, StepName};
use flotilla_engine::rows::{
    Activations, Definitions, EventKind, HistoryRecord, RunRecord, StepResults,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

pub(super) fn check(
    store: &MemoryStore,
    number: RunNumber,
    run: &RunRecord,
    history: &[((RunNumber, u64), HistoryRecord)],
) {
    let revisions = Revisions::of(store, run);
    let (mut entered, mut left) = (BTreeMap::new(), BTreeMap::new());
    for ((_, first), record) in history {
        if run.history.trimming.until > 0 && *first == run.history.trimming.until + 1 {
            // Steps may have been entered and left in what was trimmed.
            entered.clear();
            left.clear();
        }
        for (seq, event) in (*first..).zip(&record.events) {
            // A test can have damaged it.
            let steps = &revisions.at(seq).steps;
            let Some(step) = event.step.and_then(|step| steps.get(step.position())) else {
                continue;
            };
            let step = step.name.clone();
            let place = (event.scope.number, step);
            match event.kind {
                EventKind::StepStarted => {
                    entered.insert(place, record.at_ms);
                }
                EventKind::StepCompleted { .. } => {
                    let entered_at_ms = entered.remove(&place);
                    left.insert(place, (entered_at_ms, record.at_ms));
                }
                EventKind::StepCancelled => {
                    entered.remove(&place);
                }
                _ => {}
            }
        }
    }
    let active = rows::<Activations>(store, &number);
    for (_, active) in &active {
        // A test can have damaged it.
        let step = revisions.current().steps.get(active.step.position());
        let step = step.map(|step| (active.scope, step.name.clone()));
        let entered_at_ms = step.and_then(|place| entered.get(&place));
        let is_alike = entered_at_ms.is_none_or(|at_ms| *at_ms == active.started_at_ms);
        assert!(is_alike, "when {} entered {:?}", run.id, active.step);
    }
    for ((scope, name), (entered_at_ms, left_at_ms)) in left {
        // A run can have been resumed with a revision that does not have the step (W89).
        let Some(step) = revisions.step(&name) else {
            continue;
        };
        let result = read::<StepResults>(store, &(number, scope, step));
        // The results of branches are deleted when their step is entered again.
        if scope != ScopeNumber::ROOT && result.is_none() {
            continue;
        }
        let result = result.expect("a step that was left has a result");
        // The history has a failure of a step in an iteration, but not what follows a resume.
        if scope != ScopeNumber::ROOT && run.resumption.resumes_count > 0 {
            let is_later = result.completed_at_ms >= left_at_ms;
            assert!(is_later, "{} {name}", run.id);
            continue;
        }
        assert_eq!(result.completed_at_ms, left_at_ms, "{} {name}", run.id);
        if let Some(at_ms) = entered_at_ms {
            assert_eq!(result.started_at_ms, at_ms, "{} {name}", run.id);
        }
    }
    // The steps that were entered and not left were active when the run ended.
    let results = rows::<StepResults>(store, &number);
    let of_run = results.iter().filter(|((_, scope, step), _)| {
        *scope == ScopeNumber::ROOT && revisions.current().step(*step).has_output()
    });
    let left_last = of_run.max_by_key(|(_, result)| result.order);
    let last = left_last.map(|((_, _, step), _)| *step);
    assert_eq!(run.progress.last_left, last, "what {} left last", run.id);
    let orders = results.iter().map(|(_, result)| result.order);
    assert!(orders.max() <= Some(run.left_count), "{}", run.id);
    let under_way_count = run.activations_count - run.left_count;
    let active_count = active.len();
    assert_eq!(run.active_count as usize, active_count, "{}", run.id);
    let is_counted = !run.status.is_open() || active_count as u64 == under_way_count;
    assert!(is_counted, "{}: {active_count} steps are active", run.id);
}

/// The revisions that a run had (W89).
struct Revisions {
    /// Each former one with the number of the last event that the run had with it.
    former: Vec<(u64, Definition)>,
    current: Definition,
}

impl Revisions {
    fn of(store: &MemoryStore, run: &RunRecord) -> Self {
        let definition = |number| {
            let record = read::<Definitions>(store, &number);
            record.expect("a run is pinned").definition
        };
        let former = run.resumption.former_definitions.iter();
        let former = former.map(|former| (former.last_event, definition(former.definition)));
        Self {
            former: former.collect(),
            current: definition(run.definition),
        }
    }

    fn at(&self, seq: u64) -> &Definition {
        let former = self.former.iter().find(|(last, _)| seq <= *last);
        former.map_or(&self.current, |(_, definition)| definition)
    }

    fn current(&self) -> &Definition {
        &self.current
    }

    /// The step of the current revision with a name, unless an earlier one lacks it, has it in another block, or has another
    /// kind of step there.
    fn step(&self, name: &StepName) -> Option<StepIndex> {
        let position = |definition: &Definition| {
            let mut steps = definition.steps.iter();
            steps.position(|step| step.name == *name)
        };
        let found = position(&self.current)?;
        let place = |definition: &Definition, position: usize| {
            let step = &definition.steps[position];
            let around = definition.block(step.block).opener.map(|opener| {
                let branches = definition.branches(opener).iter();
                let names: Vec<_> = branches.map(|branch| branch.name.clone()).collect();
                (definition.step(opener).name.clone(), names)
            });
            (step.kind.name(), around)
        };
        let current = place(&self.current, found);
        let mut former = self.former.iter();
        let is_same = former.all(|(_, former)| {
            position(former).is_some_and(|position| place(former, position) == current)
        });
        let index = u16::try_from(found).expect("steps are bounded");
        is_same.then_some(StepIndex(index))
    }
}
