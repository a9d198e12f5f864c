//! Reconstructs from a run's history the step results and the state that it had when it first entered a top-level step
//! (W90).

use super::state_fields::{Change, StateFields};
use crate::definition::{Definition, StepIndex, StepMapping};
use crate::ids::{RunNumber, ScopeNumber, StateKey};
use crate::json::Json;
use crate::tables::{
    DefinitionRecord, Event, EventKind, History, PayloadRef, RunRecord, ScopeId, StepResult,
};
use crate::turn::{Turn, TurnResult};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a history says about the first visit to a step.
pub(super) enum Replayed {
    /// The history before the visit is complete.
    Found(ReplayedRun),
    /// There is no such visit.
    NotVisited,
    /// Events before it, or the visit itself, were trimmed.
    Trimmed,
}

/// A run as it was when it entered a step.
pub(super) struct ReplayedRun {
    /// The visit, from 1.
    pub(super) visit: u32,
    /// The results that the step could see, and some that it could not, in the order in which the steps were left.
    pub(super) results: Vec<ReplayedResult>,
    /// The changes of the state, in their order.
    changes: Vec<StateChange>,
}

/// The result of a step.
pub(super) struct ReplayedResult {
    pub(super) scope: ScopeId,
    pub(super) step: StepIndex,
    /// The output is a payload of the replayed run.
    pub(super) result: StepResult,
}

/// A change of the state of the run itself.
enum StateChange {
    /// The fields of the object are set; these are their names.
    Set(Vec<StateKey>, PayloadRef),
    /// The fields of the object are set, and these are removed.
    Joined(Vec<String>, PayloadRef),
    /// A merge patch.
    Patch(PayloadRef),
    /// The whole state.
    Full(PayloadRef),
}

/// What is known of a step, in the scope that entered it last.
#[derive(Default)]
struct StepProgress {
    /// The activation of the visit that began last; `None` before the first one.
    activation: Option<u64>,
    /// Attempts of its calls before the current one.
    earlier_attempts_count: u32,
    /// Attempts of the current call.
    attempt: u32,
    started_at_ms: u64,
    /// The scope of its first branch.
    first_scope: Option<ScopeNumber>,
    /// The result of the visit that ended last.
    result: Option<ReplayedResult>,
}

/// Reads the history of a run until it first entered `step`, a step of the workflow's own block.
pub(super) fn replay(
    turn: &mut Turn<'_, '_>,
    (number, run): (RunNumber, &RunRecord),
    step: StepIndex,
) -> TurnResult<Replayed> {
    let mut reader = Reader {
        revisions: Revision::all(turn, run, step)?.into(),
        steps: BTreeMap::new(),
        changes: Vec::new(),
        left_count: 0,
    };
    let mut next = 1;
    let mut replayed = Replayed::NotVisited;
    turn.visit::<History>(&number, |(_, first), record| {
        if first != next {
            replayed = Replayed::Trimmed;
            return ControlFlow::Break(());
        }
        next += record.events.len() as u64;
        for (seq, event) in (first..).zip(&record.events) {
            reader.advance_to(seq);
            let is_first_visit = event.kind == EventKind::StepStarted
                && event.scope.number == ScopeNumber::ROOT
                && event.step.is_some()
                && event.step == reader.revision().step;
            if is_first_visit {
                replayed = Replayed::Found(reader.end(event.visit));
                return ControlFlow::Break(());
            }
            reader.add(event, record.at_ms);
        }
        ControlFlow::Continue(())
    })?;
    Ok(replayed)
}

/// A revision that the run had.
struct Revision {
    record: Arc<DefinitionRecord>,
    /// The number of the last event that the run recorded with this revision.
    last_event: u64,
    /// The wanted step, if the revision has it.
    step: Option<StepIndex>,
    /// Where its steps are in the next revision; `None` for the current one.
    to_next: Option<StepMapping>,
}

impl Revision {
    /// The revisions of a run, the oldest first; `step` is the wanted step of the current one.
    fn all(turn: &mut Turn<'_, '_>, run: &RunRecord, step: StepIndex) -> TurnResult<Vec<Self>> {
        let last_events = run
            .resumption
            .former_definitions
            .iter()
            .map(|former| former.last_event);
        let last_events: Vec<u64> = last_events.chain([u64::MAX]).collect();
        let mut revisions: Vec<Self> = Vec::new();
        for (number, last_event) in run.definition_numbers().zip(last_events) {
            revisions.push(Self {
                record: turn.pinned(number)?,
                last_event,
                step: Some(step),
                to_next: None,
            });
        }
        for index in (1..revisions.len()).rev() {
            let (former, next) = (&revisions[index - 1], &revisions[index]);
            let (own, other) = (&former.record.definition, &next.record.definition);
            turn.spend_comparison(own, other);
            let mapping = own.mapping_to(other);
            let step = next.step.and_then(|step| mapping.former(step));
            revisions[index - 1].step = step;
            revisions[index - 1].to_next = Some(mapping);
        }
        Ok(revisions)
    }
}

struct Reader {
    /// The revision of the events that are being read, followed by the later ones.
    revisions: VecDeque<Revision>,
    /// A step can be seen in one scope at most.
    steps: BTreeMap<StepIndex, StepProgress>,
    changes: Vec<StateChange>,
    left_count: u64,
}

impl Reader {
    fn revision(&self) -> &Revision {
        self.revisions.front().expect("a run has a revision")
    }

    /// Switches to the revision with which the run recorded the event `seq`. Discards the progress of steps that this
    /// revision does not have.
    fn advance_to(&mut self, seq: u64) {
        while self.revision().last_event < seq {
            let former = self.revisions.pop_front().expect("it is the first one");
            let mapping = former.to_next.expect("only the last one has no next one");
            let own = &former.record.definition;
            let steps = std::mem::take(&mut self.steps).into_iter();
            let steps = steps.filter_map(|(step, progress)| {
                let progress = progress.mapped((own, step), &mapping)?;
                Some((mapping.step(step)?, progress))
            });
            self.steps = steps.collect();
        }
    }

    fn add(&mut self, event: &Event, at_ms: u64) {
        if event.scope.number == ScopeNumber::ROOT {
            self.add_change(&event.kind);
        }
        if let EventKind::ScopeStarted = event.kind {
            let opener = event.scope.path.0.last();
            let opener = opener.expect("a step opens each scope below the run");
            let first = event.scope.number.0 - u64::from(opener.position);
            self.step(opener.step).first_scope = Some(ScopeNumber(first));
        }
        if let Some(step) = event.step.filter(|_| self.is_visible(event)) {
            self.add_to_step(step, event, at_ms);
        }
    }

    /// Whether the steps of the scope can be seen from the run itself: those of iterations and handlers cannot.
    fn is_visible(&self, event: &Event) -> bool {
        let path = &event.scope.path;
        let definition = &self.revision().record.definition;
        let outermost = path.0.first().map(|down| down.step).or(event.step);
        let is_handler = outermost.is_some_and(|step| definition.is_handler(step));
        !is_handler && !path.is_of_iteration(definition)
    }

    fn add_to_step(&mut self, step: StepIndex, event: &Event, at_ms: u64) {
        match &event.kind {
            EventKind::StepStarted => {
                // A step that is resumed keeps its activation, and what it has opened.
                if self.step(step).activation != event.activation {
                    self.discard_branches(step);
                }
                let progress = self.step(step);
                progress.activation = event.activation;
                progress.earlier_attempts_count = 0;
                progress.attempt = 1;
                progress.started_at_ms = at_ms;
            }
            EventKind::RetryScheduled { .. } => self.discard_branches(step),
            EventKind::StepRetry { attempt } => {
                self.discard_branches(step);
                self.step(step).attempt = *attempt;
            }
            EventKind::FallbackStarted { .. } => {
                let progress = self.step(step);
                progress.earlier_attempts_count += progress.attempt;
                progress.attempt = 1;
            }
            EventKind::StepCompleted { outcome, output } => {
                let progress = self.step(step);
                let result = StepResult {
                    outcome: outcome.clone(),
                    output: *output,
                    visit: event.visit,
                    first_scope: progress.first_scope,
                    attempts: progress.earlier_attempts_count + progress.attempt,
                    started_at_ms: progress.started_at_ms,
                    completed_at_ms: at_ms,
                    order: 0,
                };
                self.leave(&event.scope, step, result);
            }
            EventKind::StepTakenOver(result) => {
                self.step(step).first_scope = result.first_scope;
                self.leave(&event.scope, step, (**result).clone());
            }
            _ => {}
        }
    }

    fn add_change(&mut self, kind: &EventKind) {
        let change = match kind {
            EventKind::StateChanged {
                writes,
                is_patch: true,
                ..
            } => StateChange::Patch(*writes),
            EventKind::StateChanged { keys, writes, .. } => StateChange::Set(keys.clone(), *writes),
            EventKind::StateJoined {
                writes, removed, ..
            } => StateChange::Joined(removed.clone(), *writes),
            EventKind::StateRecorded { state } => {
                self.changes.clear();
                StateChange::Full(*state)
            }
            _ => return,
        };
        self.changes.push(change);
    }

    fn leave(&mut self, scope: &ScopeId, step: StepIndex, result: StepResult) {
        self.left_count += 1;
        let order = self.left_count;
        self.step(step).result = Some(ReplayedResult {
            scope: scope.clone(),
            step,
            result: StepResult { order, ..result },
        });
    }

    fn step(&mut self, step: StepIndex) -> &mut StepProgress {
        self.steps.entry(step).or_default()
    }

    /// Discards the results of branches of a previous visit or attempt, as entering the step again does.
    fn discard_branches(&mut self, step: StepIndex) {
        let progress = self.step(step);
        if progress.first_scope.take().is_none() {
            return;
        }
        if let Some(former) = &mut progress.result {
            former.result.first_scope = None;
        }
        let mut steps = std::mem::take(&mut self.steps);
        let definition = &self.revision().record.definition;
        steps.retain(|below, _| !definition.is_below(*below, step));
        self.steps = steps;
    }

    fn end(&mut self, visit: u32) -> ReplayedRun {
        // The results are those of the steps of the current definition.
        self.advance_to(u64::MAX);
        let steps = std::mem::take(&mut self.steps).into_values();
        let mut results: Vec<_> = steps.filter_map(|progress| progress.result).collect();
        results.sort_by_key(|replayed| replayed.result.order);
        ReplayedRun {
            visit,
            results,
            changes: std::mem::take(&mut self.changes),
        }
    }
}

impl StepProgress {
    /// What is known of a step, for the corresponding step of another definition; `None` if the scope of its result cannot
    /// exist there.
    fn mapped(
        mut self,
        (own, step): (&Definition, StepIndex),
        mapping: &StepMapping,
    ) -> Option<Self> {
        let has_blocks = mapping.has_blocks_of(own, step);
        self.first_scope = self.first_scope.filter(|_| has_blocks);
        if let Some(replayed) = &mut self.result {
            replayed.step = mapping.step(step)?;
            replayed.scope.path = replayed.scope.path.mapped(own, mapping)?;
            let first_scope = &mut replayed.result.first_scope;
            *first_scope = first_scope.filter(|_| has_blocks);
        }
        Some(self)
    }
}

/// Payloads are too large, or merging them takes too long.
pub(super) struct ReplayLimitExceeded;

impl ReplayedRun {
    /// The state, an object; `None` if nothing has written to it. `read` reads a payload of the run.
    pub(super) fn state<E: From<ReplayLimitExceeded>>(
        &self,
        mut read: impl FnMut(PayloadRef) -> Result<Json, E>,
    ) -> Result<Option<Json>, E> {
        let mut texts = Vec::new();
        for change in self.needed_changes() {
            texts.push((change, read(change.payload())?));
        }
        let mut fields = StateFields::default();
        let mut merged_bytes = 0;
        for (change, text) in texts.iter().rev() {
            let text = text.as_str().trim();
            match change {
                StateChange::Set(..) | StateChange::Full(_) => fields.add_object(text),
                StateChange::Joined(removed, _) => {
                    fields.add_object(text);
                    for key in removed {
                        fields.add(key.into(), Change::Removed);
                    }
                }
                StateChange::Patch(_) => {
                    let patched = fields.patch_changes(text);
                    merged_bytes += patched.bytes();
                    if merged_bytes > MERGED_BYTES_MAX {
                        return Err(ReplayLimitExceeded.into());
                    }
                    fields.add_all(patched);
                }
            }
        }
        let is_written = !texts.is_empty();
        Ok(is_written.then(|| Json::from_checked(fields.object())))
    }

    /// The changes that can affect the final state, most recent first.
    fn needed_changes(&self) -> impl Iterator<Item = &StateChange> {
        let mut later: BTreeSet<&StateKey> = BTreeSet::new();
        self.changes
            .iter()
            .rev()
            .filter(move |change| match change {
                StateChange::Set(keys, _) => {
                    let before = later.len();
                    later.extend(keys);
                    later.len() > before
                }
                StateChange::Joined(..) | StateChange::Patch(_) | StateChange::Full(_) => true,
            })
    }
}

impl StateChange {
    fn payload(&self) -> PayloadRef {
        match self {
            Self::Set(_, payload)
            | Self::Joined(_, payload)
            | Self::Patch(payload)
            | Self::Full(payload) => *payload,
        }
    }
}

/// The size of the values that patches of the state may make together, in bytes: it bounds the time of a replay.
const MERGED_BYTES_MAX: usize = 16 << 20;
