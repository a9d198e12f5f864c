//! Reads what steps have returned: the outputs of a run as far as they fit into a response, and any single one.

use super::payload;
use super::run::{StepView, active, definition_of, find_run};
use super::run_definitions::RunDefinitions;
use super::scope_tree::ScopedRun;
use crate::definition::{BlockIndex, Definition, StepIndex};
use crate::ids::{Namespace, OutcomeName, RunId, RunNumber, ScopeNumber, ScopePathText, StepName};
use crate::json::Json;
use crate::scope_path;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    Activation, ActivationState, Event, EventKind, History, PayloadRef, RunRecord, ScopeStep,
    StepResult, StepResults, encode_prefix, read, visit,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;

/// Names the result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepResultSelector {
    /// The step.
    pub step: StepName,
    /// The path of its scope (W53); `None` for the scope in which it was left last.
    pub scope: Option<ScopePathText>,
    /// The visit to the step in its scope, from 1; `None` for the last one that has ended.
    pub visit: Option<u32>,
}

/// What a visit to a step has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutput {
    /// The visit, from 1.
    pub visit: u32,
    /// Its outcome.
    pub outcome: OutcomeName,
    /// Its output; `None` if the step has no output.
    pub output: Option<Json>,
}

/// The result of a look-up of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundOutput {
    /// There is no such run.
    NoRun,
    /// The run has left no such step, or its result is no longer kept.
    NoResult,
    /// The output.
    Found(StepOutput),
}

/// What a visit to a step of a run has returned, whatever size it has. The results of former visits are found as long as
/// the history of the run has them.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn step_output(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
    selector: &StepResultSelector,
) -> Result<FoundOutput, StoreError> {
    let Some((number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(FoundOutput::NoRun);
    };
    let kept = kept_result(reader, number, &run, selector)?;
    let is_wanted = |found: &FoundResult| selector.visit.is_none_or(|visit| visit == found.visit);
    let found = match kept.filter(is_wanted) {
        Some(kept) => Some(kept),
        None => former_result(reader, number, &run, selector)?,
    };
    let Some(found) = found else {
        return Ok(FoundOutput::NoResult);
    };
    let output = found.output.map(|output| payload(reader, output));
    Ok(FoundOutput::Found(StepOutput {
        visit: found.visit,
        outcome: found.outcome,
        output: output.transpose()?,
    }))
}

/// The result of a visit.
struct FoundResult {
    visit: u32,
    outcome: OutcomeName,
    output: Option<PayloadRef>,
}

impl From<StepResult> for FoundResult {
    fn from(result: StepResult) -> Self {
        Self {
            visit: result.visit,
            outcome: result.outcome,
            output: result.output,
        }
    }
}

/// The result that the run keeps of the last visit to the step.
fn kept_result(
    reader: &dyn Reader,
    number: RunNumber,
    run: &RunRecord,
    selector: &StepResultSelector,
) -> Result<Option<FoundResult>, StoreError> {
    let definition = definition_of(reader, run)?.definition;
    let Some(step) = definition.step_named(&selector.step) else {
        return Ok(None);
    };
    let scope = match &selector.scope {
        Some(text) => scope_of(reader, number, &definition, text)?,
        None if definition.step(step).block == BlockIndex::ROOT => Some(ScopeNumber::ROOT),
        None => {
            let found = last_results(reader, number)?.remove(&step);
            return Ok(found.map(Into::into));
        }
    };
    let Some(scope) = scope else {
        return Ok(None);
    };
    let found = read::<StepResults>(reader, &(number, scope, step))?;
    Ok(found.map(Into::into))
}

/// The number of the scope with this path, if a result or an active step leads to it.
fn scope_of(
    reader: &dyn Reader,
    number: RunNumber,
    definition: &Definition,
    text: &ScopePathText,
) -> Result<Option<ScopeNumber>, StoreError> {
    let Some(path) = scope_path::parse(definition, text.as_str(), true) else {
        return Ok(None);
    };
    let active = active(reader, number)?;
    let mut scope = ScopeNumber::ROOT;
    for down in &path.0 {
        let opener = active
            .iter()
            .find(|active| active.scope == scope && active.step == down.step);
        let first = match opener {
            Some(opener) => first_scope(opener, *down),
            None => read::<StepResults>(reader, &(number, scope, down.step))?
                .filter(|result| result.visit == down.visit)
                .and_then(|result| result.first_scope),
        };
        let Some(first) = first else {
            return Ok(None);
        };
        scope = ScopeNumber(first.0 + u64::from(down.position));
    }
    Ok(Some(scope))
}

/// The first of the scopes that an active step has opened.
fn first_scope(opener: &Activation, down: ScopeStep) -> Option<ScopeNumber> {
    let first = match &opener.state {
        ActivationState::Branches(branches) => branches.first_scope,
        ActivationState::Iterations(iterations) => iterations.first_scope,
        _ => return None,
    };
    (opener.visit == down.visit).then_some(first)
}

/// The last result in the history of the run that fits the selector.
fn former_result(
    reader: &dyn Reader,
    number: RunNumber,
    run: &RunRecord,
    selector: &StepResultSelector,
) -> Result<Option<FoundResult>, StoreError> {
    let definitions = RunDefinitions::of(reader, run, 0)?;
    let mut found = None;
    let range = KeyRange::prefix(&encode_prefix::<History>(&number));
    visit::<History>(reader, &range, Order::Descending, |(_, first), record| {
        let events = record.events.iter().enumerate().rev();
        let mut results = events.filter_map(|(position, event)| {
            let result = result_of(event)?;
            let definition = definitions.at(first + position as u64);
            let fits = selector.fits(definition, event, result.visit);
            fits.then_some(result)
        });
        found = results.next();
        match found {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    })?;
    Ok(found)
}

/// The result of the visit that ends with this event.
fn result_of(event: &Event) -> Option<FoundResult> {
    match &event.kind {
        EventKind::StepCompleted { outcome, output } => Some(FoundResult {
            visit: event.visit,
            outcome: outcome.clone(),
            output: *output,
        }),
        EventKind::StepTakenOver(result) => Some(StepResult::clone(result).into()),
        _ => None,
    }
}

impl StepResultSelector {
    /// Whether it selects a visit to the step of the event.
    fn fits(&self, definition: &Definition, event: &Event, visit: u32) -> bool {
        let is_step = |step: StepIndex| definition.step(step).name == self.step;
        let is_scope = |text: &ScopePathText| {
            text.as_str() == scope_path::to_text(definition, &event.scope.path)
        };
        event.step.is_some_and(is_step)
            && self.visit.is_none_or(|wanted| wanted == visit)
            && self.scope.as_ref().is_none_or(is_scope)
    }
}

/// The steps that a run has left and that are not active, with the outputs that fit into `bytes_left`. Those that were left
/// last come first. The first one that does not fit is the last one that is read.
pub(super) fn step_views(
    reader: &dyn Reader,
    run: ScopedRun<'_>,
    bytes_left: u64,
) -> Result<BTreeMap<StepName, StepView>, StoreError> {
    let mut last = last_results(reader, run.number)?;
    for active in run.active {
        last.remove(&active.step);
    }
    let mut results: Vec<_> = last.into_iter().collect();
    results.sort_by_key(|(_, result)| Reverse(result.order));
    let mut views: BTreeMap<StepName, StepView> = BTreeMap::new();
    let mut outputs = Vec::new();
    for (step, result) in results {
        let name = run.definition.step(step).name.clone();
        outputs.extend(result.output.map(|output| (name.clone(), output)));
        let view = StepView {
            outcome: result.outcome.to_string(),
            output: None,
            is_output_omitted: result.output.is_some(),
            attempts: result.attempts,
            started_at_ms: result.started_at_ms,
            completed_at_ms: result.completed_at_ms,
        };
        views.insert(name, view);
    }
    let rows: u64 = views.iter().map(|(name, view)| view.bytes(name)).sum();
    let mut bytes_left = bytes_left.saturating_sub(rows);
    for (name, output) in outputs {
        if bytes_left == 0 {
            break;
        }
        let output = payload(reader, output)?;
        let bytes = output.as_str().len() as u64;
        if bytes > bytes_left {
            break;
        }
        bytes_left -= bytes;
        if let Some(view) = views.get_mut(&name) {
            view.output = Some(output);
            view.is_output_omitted = false;
        }
    }
    Ok(views)
}

/// Of each step, the result in the scope in which it was left last.
fn last_results(
    reader: &dyn Reader,
    number: RunNumber,
) -> Result<BTreeMap<StepIndex, StepResult>, StoreError> {
    let mut last: BTreeMap<StepIndex, StepResult> = BTreeMap::new();
    let range = KeyRange::prefix(&encode_prefix::<StepResults>(&number));
    visit::<StepResults>(reader, &range, Order::Ascending, |(_, _, step), result| {
        match last.entry(step) {
            Entry::Vacant(first) => {
                first.insert(result);
            }
            Entry::Occupied(mut former) => {
                if former.get().order < result.order {
                    former.insert(result);
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(last)
}
