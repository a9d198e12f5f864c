//! Reads the report of a run: the visits to its steps, each with its attempts (W87).

use super::page::PageRange;
use super::payload;
use super::reported_step::{ReportedAttempt, Visit};
use super::run::{active, definition_of, find_run};
use crate::definition::{Definition, StepIndex};
use crate::ids::{Namespace, OutcomeName, RunId, RunNumber, ScopeNumber, StepName};
use crate::json::Json;
use crate::limits::READ_BYTES_MAX;
use crate::run::error_in;
use crate::scope_path;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ActionRuns, EventKind, History, Key, Phase, ResumableScopes, ScopePath, ScopeStep, Scopes,
    StepResult, StepResults, encode_prefix, read, visit,
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

/// Some visits of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPage {
    /// In the order in which they began.
    pub steps: Vec<ReportedStep>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<Vec<u8>>,
    /// Whether attempts and earlier visits may be missing, because events of the run were trimmed.
    pub is_trimmed: bool,
}

/// The visits of a run that the range has, and at most [`READ_BYTES_MAX`] bytes of them unless one alone is larger; `None` if
/// there is no such run.
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
) -> Result<Option<ReportPage>, StoreError> {
    let Some((number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(None);
    };
    let definition = definition_of(reader, &run)?.definition;
    let mut search = Search::new(reader, number, &definition);
    search.add_events()?;
    search.add_results()?;
    let active = active(reader, number)?;
    search.active = active.iter().map(|active| active.number).collect();
    let after = range.after.and_then(position);
    let visits = search.in_order();
    let mut left = visits
        .into_iter()
        .filter(|(position, _)| after.is_none_or(|after| *position > after))
        .peekable();
    let mut page = ReportPage {
        steps: Vec::new(),
        next: None,
        is_trimmed: run.history.trimming.until > 0,
    };
    let mut bytes = 0;
    while let Some((position, visit)) = left.next() {
        let step = search.describe(position, visit)?;
        bytes += step.bytes();
        page.steps.push(step);
        let is_full = page.steps.len() == range.limit || bytes >= READ_BYTES_MAX;
        if is_full && left.peek().is_some() {
            page.next = Some(token(position));
            break;
        }
    }
    Ok(Some(page))
}

/// The order of visits: when they were entered, then their activation, or the order of their result if that is unknown.
type Position = (u64, u64);

fn token(position: Position) -> Vec<u8> {
    let mut token = Vec::new();
    position.encode(&mut token);
    token
}

fn position(mut token: &[u8]) -> Option<Position> {
    Key::decode(&mut token)
}

impl ReportedStep {
    /// The size of its payloads and attempts, in bytes.
    fn bytes(&self) -> u64 {
        let payloads = [&self.input, &self.output].into_iter().flatten();
        let payloads: usize = payloads.map(|payload| payload.as_str().len()).sum();
        let errors = self.attempts.iter().flat_map(|attempt| &attempt.error);
        let errors: usize = errors.map(|error| error.message.len()).sum();
        (payloads + errors) as u64
    }
}

/// A search for the visits of a run: in its history, and among the results of its steps.
struct Search<'a> {
    reader: &'a dyn Reader,
    number: RunNumber,
    definition: &'a Definition,
    /// By activation.
    found: BTreeMap<u64, Visit>,
    /// The visits that the history does not have, by the order of their results.
    others: BTreeMap<u64, Visit>,
    paths: BTreeMap<ScopeNumber, ScopePath>,
    /// The open activations.
    active: BTreeSet<u64>,
}

impl<'a> Search<'a> {
    fn new(reader: &'a dyn Reader, number: RunNumber, definition: &'a Definition) -> Self {
        Self {
            reader,
            number,
            definition,
            found: BTreeMap::new(),
            others: BTreeMap::new(),
            paths: BTreeMap::new(),
            active: BTreeSet::new(),
        }
    }

    /// Looks through the history, of which a run keeps a bounded part.
    fn add_events(&mut self) -> Result<(), StoreError> {
        let mut phase = None;
        let mut visited = BTreeSet::new();
        let range = KeyRange::prefix(&encode_prefix::<History>(&self.number));
        visit::<History>(self.reader, &range, Order::Ascending, |_, record| {
            for event in &record.events {
                match event.kind {
                    EventKind::PhaseChanged { phase: next } => phase = Some(next),
                    EventKind::RunResumed { .. } => phase = None,
                    _ => {}
                }
                self.paths
                    .entry(event.scope.number)
                    .or_insert_with(|| event.scope.path.clone());
                let (Some(step), Some(activation)) = (event.step, event.activation) else {
                    continue;
                };
                let found = self.found.entry(activation).or_insert_with(|| {
                    let mut visit = Visit::of(self.definition, step, event, phase);
                    let is_first = visited.insert((visit.scope, step, visit.visit));
                    if !is_first && !begins(&event.kind) {
                        visit.follow_cancellation();
                    }
                    visit
                });
                found.add(event, record.at_ms);
            }
            ControlFlow::Continue(())
        })
    }

    /// Adds what only the results of the steps say.
    fn add_results(&mut self) -> Result<(), StoreError> {
        let visits = self.found.iter().filter(|(_, visit)| visit.is_visit());
        let by_place: BTreeMap<_, u64> = visits
            .map(|(activation, visit)| ((visit.scope, visit.step, visit.visit), *activation))
            .collect();
        let mut openers = BTreeMap::new();
        let range = KeyRange::prefix(&encode_prefix::<StepResults>(&self.number));
        visit::<StepResults>(
            self.reader,
            &range,
            Order::Ascending,
            |(_, scope, step), result: StepResult| {
                if let Some(first_scope) = result.first_scope {
                    openers.insert(first_scope, (scope, step, result.visit));
                }
                let activation = by_place.get(&(scope, step, result.visit));
                match activation.and_then(|activation| self.found.get_mut(activation)) {
                    Some(found) => found.add_result(&result),
                    None => {
                        let other = Visit::of_result(self.definition, scope, step, &result);
                        self.others.insert(result.order, other);
                    }
                }
                ControlFlow::Continue(())
            },
        )?;
        let scopes: BTreeSet<ScopeNumber> = self.others.values().map(|one| one.scope).collect();
        for scope in scopes {
            self.find_path(scope, &openers)?;
        }
        Ok(())
    }

    /// Finds the path of a scope that no event names: in its own row, or through the step that opened it.
    fn find_path(
        &mut self,
        scope: ScopeNumber,
        openers: &BTreeMap<ScopeNumber, (ScopeNumber, StepIndex, u32)>,
    ) -> Result<ScopePath, StoreError> {
        if scope == ScopeNumber::ROOT {
            return Ok(ScopePath::default());
        }
        if let Some(path) = self.paths.get(&scope) {
            return Ok(path.clone());
        }
        let key = (self.number, scope);
        let row = match read::<Scopes>(self.reader, &key)? {
            Some(row) => Some(row),
            None => read::<ResumableScopes>(self.reader, &key)?,
        };
        let opener = openers.range(..=scope).next_back();
        let path = match (row, opener) {
            (Some(row), _) => row.id.path,
            (None, Some((first, (around, step, visit)))) => {
                let mut path = self.find_path(*around, openers)?;
                path.0.push(ScopeStep {
                    step: *step,
                    visit: *visit,
                    position: u32::try_from(scope.0 - first.0).unwrap_or(u32::MAX),
                });
                path
            }
            (None, None) => ScopePath::default(),
        };
        self.paths.insert(scope, path.clone());
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
                ((last_ms, activation), visit)
            })
            .collect();
        for (order, visit) in others {
            all.insert((visit.started_at_ms.unwrap_or_default(), order), visit);
        }
        all
    }

    fn describe(&self, position: Position, mut visit: Visit) -> Result<ReportedStep, StoreError> {
        visit.finish();
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
            scope: scope_path::to_text(self.definition, &path),
            step: self.definition.step(visit.step).name.clone(),
            visit: visit.visit,
            kind: visit.kind,
            phase: visit.phase,
            is_active: self.active.contains(&position.1) && visit.outcome.is_none(),
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

/// Whether a visit or the call of a compensation begins with this event.
fn begins(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::StepStarted | EventKind::CompensationStarted | EventKind::StepDelayed { .. }
    )
}
