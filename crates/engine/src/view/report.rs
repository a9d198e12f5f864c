//! Reads the report of a run: the visits to its steps, each with its attempts (W87).

use super::page::{PageBudget, PageRange};
use super::payload;
use super::reported_step::{ReportedAttempt, Visit};
use super::run::{RunView, active, find_run, run};
use super::run_definitions::RunDefinitions;
use crate::definition::{Definition, StepIndex};
use crate::ids::{Namespace, OutcomeName, RunId, RunNumber, ScopeNumber, StepName};
use crate::json::Json;
use crate::limits::REPORTED_RESULTS_MAX;
use crate::run::{error_in, is_good};
use crate::scope_path;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ActionRuns, Activation, ActivationState, Event, EventKind, History, Key, Phase,
    ResumableScopes, ResumableSteps, RunUsages, ScopePath, ScopeStep, Scopes, StepResult,
    StepResults, StepUsages, encode_prefix, read, visit,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// A visit to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedStep {
    /// The path of its scope; empty for the run itself (W53).
    pub scope: String,
    /// The step.
    pub step: StepName,
    /// The visit to the step in its scope, from 1.
    pub visit: u32,
    /// The kind of the step, or `compensation` or `on_cancel` for what is called after a visit.
    pub kind: &'static str,
    /// The phase of the run in which it began; `None` for the main one.
    pub phase: Option<Phase>,
    /// Whether it is active.
    pub is_active: bool,
    /// `None` while it is active, if the end of the run has ended it, and if that is no longer known.
    pub outcome: Option<OutcomeName>,
    /// The input of the last task, if that is kept.
    pub input: Option<Json>,
    /// The output.
    pub output: Option<Json>,
    /// When it was entered, in milliseconds; `None` if that is no longer known.
    pub started_at_ms: Option<u64>,
    /// When it was left, in milliseconds; `None` as for the outcome.
    pub ended_at_ms: Option<u64>,
    /// The first attempts and the last ones that the history still has.
    pub attempts: Vec<ReportedAttempt>,
    /// All attempts.
    pub attempts_count: u32,
}

/// What tasks have used: objects of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageView {
    /// The tasks of the run.
    pub own: Json,
    /// The tasks of the runs below it.
    pub below: Json,
    /// The tasks of each step of the run, in all visits and scopes.
    pub steps: BTreeMap<StepName, Json>,
}

/// Some visits of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPage {
    /// The run; `None` on the pages after the first.
    pub run: Option<Box<RunView>>,
    /// In the order in which they began.
    pub steps: Vec<ReportedStep>,
    /// What the tasks of the run and of the runs below it have used; `None` if they have reported nothing, and on the pages
    /// after the first.
    pub usage: Option<UsageView>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<Vec<u8>>,
    /// Whether attempts and visits may be missing: events of the run were trimmed, or it has more than
    /// [`REPORTED_RESULTS_MAX`] results of steps.
    pub is_incomplete: bool,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundReport {
    /// There is no such run.
    NoRun,
    /// The page token is not one of this run.
    OtherToken,
    /// A page.
    Page(ReportPage),
}

/// The visits of a run that the range has, as many as fit into a page. The first page also has the run, and only the visits
/// that fit beside it.
///
/// Iterations that have succeeded are not among them (W57).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn report(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
    range: PageRange<'_>,
) -> Result<FoundReport, StoreError> {
    let Some((number, record)) = find_run(reader, namespace, run_id)? else {
        return Ok(FoundReport::NoRun);
    };
    let after = match range.after.map(|token| position(number, token)) {
        Some(None) => return Ok(FoundReport::OtherToken),
        Some(after) => after,
        None => None,
    };
    // The head of a trimmed history is read, too.
    let definitions = RunDefinitions::of(reader, &record, 0)?;
    let mut search = Search::new(reader, number, &definitions);
    search.active = active(reader, number)?;
    search.add_events()?;
    search.add_results()?;
    let visits = search.in_order().into_iter();
    let left = visits.filter(|(position, _)| after.is_none_or(|after| *position > after));
    let (run, usage) = match range.after {
        None => (
            run(reader, namespace, run_id)?.map(Box::new),
            usage(reader, number, definitions.current())?,
        ),
        Some(_) => (None, None),
    };
    let mut budget = match &run {
        Some(run) => PageBudget::beside(run.bytes(), range.limit),
        None => PageBudget::new(range.limit),
    };
    let mut page = ReportPage {
        run,
        steps: Vec::new(),
        usage,
        next: None,
        is_incomplete: record.history.trimming.until > 0 || search.has_more_results,
    };
    let mut last = after.unwrap_or(BEGINNING);
    for (position, visit) in left {
        let step = search.describe(position, visit)?;
        if !budget.take(step.bytes()) {
            page.next = Some(token(number, last));
            break;
        }
        page.steps.push(step);
        last = position;
    }
    Ok(FoundReport::Page(page))
}

fn usage(
    reader: &dyn Reader,
    number: RunNumber,
    definition: &Definition,
) -> Result<Option<UsageView>, StoreError> {
    let Some(sums) = read::<RunUsages>(reader, &number)? else {
        return Ok(None);
    };
    let mut steps = BTreeMap::new();
    let range = KeyRange::prefix(&encode_prefix::<StepUsages>(&number));
    visit::<StepUsages>(reader, &range, Order::Ascending, |(_, step), sums| {
        steps.insert(definition.step(step).name.clone(), sums);
        ControlFlow::Continue(())
    })?;
    Ok(Some(UsageView {
        own: sums.own,
        below: sums.below,
        steps,
    }))
}

/// The order of visits: when they were entered, then their activation. Of those that only a result tells of, the order of
/// that; they follow the others of the same time.
type Position = (u64, (u8, u64));

/// Before all visits: activations are numbered from 1.
const BEGINNING: Position = (0, (0, 0));

/// A page token names the run, too.
fn token(run: RunNumber, position: Position) -> Vec<u8> {
    let mut token = Vec::new();
    (run, position).encode(&mut token);
    token
}

/// The position in a token of the run.
fn position(run: RunNumber, mut token: &[u8]) -> Option<Position> {
    let (of_run, position) = <(RunNumber, Position)>::decode(&mut token)?;
    (of_run == run && token.is_empty()).then_some(position)
}

/// A search for the visits of a run: in its history, and among the results of its steps.
struct Search<'a> {
    reader: &'a dyn Reader,
    number: RunNumber,
    definitions: &'a RunDefinitions,
    /// By activation.
    found: BTreeMap<u64, Visit>,
    /// The visits that the history does not have, by the order of their results.
    others: BTreeMap<u64, Visit>,
    paths: BTreeMap<ScopeNumber, ReportedPath>,
    /// The open activations.
    active: Vec<Activation>,
    /// Whether the run has more results than were looked at.
    has_more_results: bool,
}

/// The scopes that a step has opened.
struct Opened {
    /// One behind the last one.
    end: ScopeNumber,
    /// The scope of the step.
    around: ScopeNumber,
    step: StepIndex,
    visit: u32,
}

impl<'a> Search<'a> {
    fn new(reader: &'a dyn Reader, number: RunNumber, definitions: &'a RunDefinitions) -> Self {
        Self {
            reader,
            number,
            definitions,
            found: BTreeMap::new(),
            others: BTreeMap::new(),
            paths: BTreeMap::new(),
            active: Vec::new(),
            has_more_results: false,
        }
    }

    /// Looks through the history, of which a run keeps a bounded part.
    fn add_events(&mut self) -> Result<(), StoreError> {
        let mut phase = None;
        let mut visited = BTreeSet::new();
        // The number of the event that ended the iteration, by its path.
        let mut succeeded = BTreeMap::new();
        // The number of the event that began the compensation, by its activation.
        let mut undone_at = BTreeMap::new();
        let range = KeyRange::prefix(&encode_prefix::<History>(&self.number));
        visit::<History>(
            self.reader,
            &range,
            Order::Ascending,
            |(_, first), record| {
                for (seq, event) in (first..).zip(&record.events) {
                    let definition = self.definitions.at(seq);
                    match &event.kind {
                        EventKind::PhaseChanged { phase: next } => phase = Some(*next),
                        EventKind::RunResumed { .. } => phase = None,
                        EventKind::IterationEnded { index, outcome } if is_good(outcome) => {
                            let path = iteration(definition, event, *index);
                            succeeded.extend(path.map(|path| (path, seq)));
                        }
                        _ => {}
                    }
                    self.paths
                        .entry(event.scope.number)
                        .or_insert_with(|| ReportedPath::of(definition, &event.scope.path));
                    let (Some(step), Some(activation)) = (event.step, event.activation) else {
                        continue;
                    };
                    if event.kind == EventKind::CompensationStarted {
                        undone_at.insert(activation, seq);
                    }
                    let found = self.found.entry(activation).or_insert_with(|| {
                        let begins = begins(&event.kind);
                        let phase = phase.filter(|_| begins);
                        let mut visit = Visit::of(definition, step, event, phase);
                        let is_first = visited.insert(visit.place());
                        if !is_first && !begins {
                            visit.follow_cancellation();
                        }
                        visit
                    });
                    found.add(event, record.at_ms);
                }
                ControlFlow::Continue(())
            },
        )?;
        for active in &self.active {
            let definition = self.definitions.current();
            let new = || Visit::of_active(definition, active);
            let found = self.found.entry(active.number);
            found
                .and_modify(|visit| visit.continue_as(active))
                .or_insert_with(new);
            if let Some(undone) = &active.undone {
                let path = || ReportedPath::of(definition, &undone.scope.path);
                self.paths.entry(undone.scope.number).or_insert_with(path);
            }
        }
        let paths = &self.paths;
        self.found.retain(|activation, visit| {
            let path = paths.get(&visit.scope).map_or(&[][..], |path| &path.steps);
            let mut above = (1..=path.len()).map(|length| &path[..length]);
            // What was undone after the success of the iteration is not a part of it.
            let undone_at = undone_at.get(activation).copied().unwrap_or_default();
            !above.any(|above| succeeded.get(above).is_some_and(|ended| undone_at < *ended))
        });
        Ok(())
    }

    /// Adds what only the results of the steps say.
    fn add_results(&mut self) -> Result<(), StoreError> {
        let visits = self.found.iter().filter(|(_, visit)| visit.is_visit());
        let by_place: BTreeMap<_, u64> = visits
            .map(|(activation, visit)| (visit.place(), *activation))
            .collect();
        let active: BTreeSet<u64> = self.active.iter().map(|active| active.number).collect();
        let definition = self.definitions.current();
        let mut opened = self.opened_by_activations()?;
        let mut count = 0;
        let range = KeyRange::prefix(&encode_prefix::<StepResults>(&self.number));
        visit::<StepResults>(
            self.reader,
            &range,
            Order::Ascending,
            |(_, scope, step), result: StepResult| {
                count += 1;
                if count > REPORTED_RESULTS_MAX {
                    self.has_more_results = true;
                    return ControlFlow::Break(());
                }
                if let Some(first) = result.first_scope {
                    let count = definition.branches(step).len() as u64;
                    opened.insert(
                        first,
                        Opened {
                            end: ScopeNumber(first.0 + count),
                            around: scope,
                            step,
                            visit: result.visit,
                        },
                    );
                }
                let other = Visit::of_result(definition, scope, step, &result);
                match by_place.get(&other.place()) {
                    // It was resumed: its result is the former one.
                    Some(activation) if active.contains(activation) => {}
                    Some(activation) => {
                        let found = self.found.get_mut(activation);
                        found.expect("it was found").add_result(&result);
                    }
                    None => {
                        self.others.insert(result.order, other);
                    }
                }
                ControlFlow::Continue(())
            },
        )?;
        let all = self.others.values().chain(self.found.values());
        let scopes: BTreeSet<ScopeNumber> = all.map(|one| one.scope).collect();
        for scope in scopes {
            self.find_path(scope, &opened)?;
        }
        let paths = &self.paths;
        self.others.retain(|_, visit| {
            visit.scope == ScopeNumber::ROOT || paths.contains_key(&visit.scope)
        });
        Ok(())
    }

    /// The scopes that steps have opened that are active, or that a resume can continue, by the first one.
    fn opened_by_activations(&self) -> Result<BTreeMap<ScopeNumber, Opened>, StoreError> {
        let mut opened = BTreeMap::new();
        let mut add = |opener: &Activation| {
            let scopes = match &opener.state {
                ActivationState::Branches(branches) => {
                    Some((branches.first_scope, branches.begun_count))
                }
                ActivationState::Iterations(iterations) => {
                    Some((iterations.first_scope, iterations.total_count))
                }
                _ => None,
            };
            if let Some((first, count)) = scopes {
                opened.insert(
                    first,
                    Opened {
                        end: ScopeNumber(first.0 + u64::from(count)),
                        around: opener.scope,
                        step: opener.step,
                        visit: opener.visit,
                    },
                );
            }
        };
        self.active.iter().for_each(&mut add);
        let range = KeyRange::prefix(&encode_prefix::<ResumableSteps>(&self.number));
        visit::<ResumableSteps>(self.reader, &range, Order::Ascending, |_, stopped| {
            add(&stopped);
            ControlFlow::Continue(())
        })?;
        Ok(opened)
    }

    /// Finds the path of a scope that no event names: in its own row, or through the step that opened it.
    fn find_path(
        &mut self,
        scope: ScopeNumber,
        opened: &BTreeMap<ScopeNumber, Opened>,
    ) -> Result<Option<ReportedPath>, StoreError> {
        if scope == ScopeNumber::ROOT {
            return Ok(Some(ReportedPath::default()));
        }
        if let Some(path) = self.paths.get(&scope) {
            return Ok(Some(path.clone()));
        }
        let key = (self.number, scope);
        let row = match read::<Scopes>(self.reader, &key)? {
            Some(row) => Some(row),
            None => read::<ResumableScopes>(self.reader, &key)?,
        };
        let opener = opened.range(..=scope).next_back();
        let opener = opener.filter(|(_, opened)| scope < opened.end);
        let definition = self.definitions.current();
        let path = match (row, opener) {
            (Some(row), _) => Some(ReportedPath::of(definition, &row.id.path)),
            (None, Some((first, opened_scopes))) => {
                let around = self.find_path(opened_scopes.around, opened)?;
                around.map(|mut path| {
                    let down = ScopeStep {
                        step: opened_scopes.step,
                        visit: opened_scopes.visit,
                        position: u32::try_from(scope.0 - first.0).unwrap_or(u32::MAX),
                    };
                    path.push(definition, &down);
                    path
                })
            }
            (None, None) => None,
        };
        if let Some(path) = &path {
            self.paths.insert(scope, path.clone());
        }
        Ok(path)
    }

    /// The visits in the order in which they began.
    fn in_order(&mut self) -> BTreeMap<Position, Visit> {
        let found = std::mem::take(&mut self.found).into_iter();
        let others = std::mem::take(&mut self.others).into_iter();
        let mut last_ms = 0;
        let mut all: BTreeMap<Position, Visit> = found
            .map(|(activation, visit)| {
                // Without a time, it is shown behind the one before it.
                last_ms = visit.started_at_ms.unwrap_or(last_ms);
                ((last_ms, (0, activation)), visit)
            })
            .collect();
        for (order, visit) in others {
            let at_ms = visit.started_at_ms.unwrap_or_default();
            all.insert((at_ms, (1, order)), visit);
        }
        all
    }

    fn describe(&self, position: Position, mut visit: Visit) -> Result<ReportedStep, StoreError> {
        let (_, (source, activation)) = position;
        let is_active = source == 0 && self.active.iter().any(|one| one.number == activation);
        visit.finish(is_active);
        let output = visit.output.map(|output| payload(self.reader, output));
        let output = output.transpose()?;
        let input = match visit.action_run {
            Some(number) => read::<ActionRuns>(self.reader, &number)?.map(|record| record.input),
            None => None,
        };
        let input = input.map(|input| payload(self.reader, input)).transpose()?;
        let path = self.paths.get(&visit.scope).cloned().unwrap_or_default();
        let (mut attempts, attempts_count) = visit.attempts.in_order();
        // The engine itself has failed the last attempt.
        if let Some(last) = attempts.last_mut()
            && last.error.is_none()
            && last.outcome == visit.outcome
        {
            last.error = output.as_ref().and_then(error_in);
        }
        Ok(ReportedStep {
            scope: path.text,
            step: visit.step,
            visit: visit.visit,
            kind: visit.kind,
            phase: visit.phase,
            is_active: is_active && visit.outcome.is_none(),
            outcome: visit.outcome,
            input,
            output,
            started_at_ms: visit.started_at_ms,
            ended_at_ms: visit.ended_at_ms,
            attempts,
            attempts_count,
        })
    }
}

/// The path of the iteration with this index, of the step that the event is about.
fn iteration(definition: &Definition, event: &Event, index: u32) -> Option<Vec<PathStep>> {
    let down = ScopeStep {
        step: event.step?,
        visit: event.visit,
        position: index,
    };
    let mut path = ReportedPath::of(definition, &event.scope.path);
    path.push(definition, &down);
    Some(path.steps)
}

/// A step down in the path of a scope: the step that opened it, the visit and the position. It stays when a run changes its
/// revision, which can rename branches.
type PathStep = (StepName, u32, u32);

/// The path of a scope, with the names of the definition that the run had then.
#[derive(Clone, Debug, Default)]
struct ReportedPath {
    steps: Vec<PathStep>,
    text: String,
}

impl ReportedPath {
    fn of(definition: &Definition, path: &ScopePath) -> Self {
        let mut reported = Self::default();
        for down in &path.0 {
            reported.push(definition, down);
        }
        reported
    }

    fn push(&mut self, definition: &Definition, down: &ScopeStep) {
        let name = definition.step(down.step).name.clone();
        self.steps.push((name, down.visit, down.position));
        if !self.text.is_empty() {
            self.text.push('/');
        }
        self.text.push_str(&scope_path::segment(definition, down));
    }
}

/// Whether a visit or the call of a compensation begins with this event.
fn begins(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::StepStarted | EventKind::CompensationStarted | EventKind::StepDelayed { .. }
    )
}
