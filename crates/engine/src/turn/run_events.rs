//! The events that a turn adds to the history of a run.

use super::{LoadedRun, Turn, TurnResult};
use crate::definition::{StepIndex, StepKind};
use crate::ids::{RunNumber, ScopeNumber};
use crate::store::StoreError;
use crate::tables::{Activation, Event, EventKind, ScopeId, StepResult};

impl LoadedRun {
    /// Adds an event about the run to its history.
    pub(crate) fn note_run(&mut self, kind: EventKind) {
        self.note_scope(ScopeId::default(), kind);
    }

    /// Adds an event about a scope to the run's history.
    pub(crate) fn note_scope(&mut self, scope: ScopeId, kind: EventKind) {
        if self.is_noted(&scope, None, &kind) {
            self.add_event(Event {
                scope,
                step: None,
                visit: 0,
                activation: None,
                kind,
            });
        }
    }

    /// Adds the event of a result with which the run begins to its history (W90).
    pub(crate) fn note_taken_over(&mut self, scope: ScopeId, step: StepIndex, result: StepResult) {
        let visit = result.visit;
        let kind = EventKind::StepTakenOver(Box::new(result));
        if self.is_noted(&scope, Some((step, visit)), &kind) {
            self.add_event(Event {
                scope,
                step: Some(step),
                visit,
                activation: None,
                kind,
            });
        }
    }

    /// Whether the history keeps an event that happens in this scope, about a visit to a step or about the scope.
    fn is_noted(
        &self,
        scope: &ScopeId,
        visited: Option<(StepIndex, u32)>,
        kind: &EventKind,
    ) -> bool {
        let (step, visit) = visited.unzip();
        scope.number == ScopeNumber::ROOT
            || !self.is_silent(scope, visit.unwrap_or_default())
            || (kind.is_kept_in_iterations() && !self.is_choice(step, kind))
    }

    /// Whether a switch ends with the outcome that it has chosen.
    fn is_choice(&self, step: Option<StepIndex>, kind: &EventKind) -> bool {
        let definition = &self.definition.definition;
        let is_switch = |step| matches!(definition.step(step).kind, StepKind::Switch(_));
        match kind {
            EventKind::StepCompleted { outcome, .. } => {
                outcome.as_str() != "failure" && step.is_some_and(is_switch)
            }
            _ => false,
        }
    }

    fn add_event(&mut self, event: Event) {
        self.noted_bytes += event.content_bytes();
        self.events.push(event);
    }

    /// Whether the first visits to steps of an iteration are not in the history, but for failures and the like; nor those
    /// that follow a resume. A step that an iteration visits again is: the history bounds what the run keeps of it.
    pub(crate) fn is_silent(&self, scope: &ScopeId, visit: u32) -> bool {
        let definition = &self.definition.definition;
        visit <= 1 + self.record.resumption.resumes_count && scope.path.is_of_iteration(definition)
    }

    /// Adds an event about an active step to the run's history.
    pub(crate) fn note(&mut self, activation: &Activation, kind: EventKind) {
        self.add_event_about(About::of(activation), kind);
    }

    /// Like [`LoadedRun::note`], for the activation `number`, which may have ended.
    pub(crate) fn note_of(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: u64,
        kind: EventKind,
    ) -> Result<(), StoreError> {
        let active = self.activation(turn, number)?;
        match active.map(About::of) {
            Some(about) => self.add_event_about(about, kind),
            None => self.note_run(kind),
        }
        Ok(())
    }

    /// Adds an event about an activation.
    fn add_event_about(&mut self, about: About, kind: EventKind) {
        let scope = self.scope_id(about.scope);
        if self.is_noted(&scope, Some((about.step, about.visit)), &kind) {
            self.add_event(Event {
                // A compensation is shown with the scope of what it undoes.
                scope: about.undone.unwrap_or(scope),
                step: Some(about.step),
                visit: about.visit,
                activation: Some(about.activation),
                kind,
            });
        }
    }

    /// The scope that an activation is shown with: that of what it undoes, if it makes a compensation.
    pub(crate) fn shown_scope(&self, activation: &Activation) -> ScopeId {
        match &activation.undone {
            Some(undone) => undone.scope.clone(),
            None => self.scope_id(activation.scope),
        }
    }

    /// The number of the next event that is added to the run's history.
    pub(crate) fn next_event(&self) -> u64 {
        self.record.history.events_count + self.events.len() as u64 + 1
    }
}

/// The activation that an event is about.
struct About {
    activation: u64,
    /// The scope in which it is executed.
    scope: ScopeNumber,
    step: StepIndex,
    visit: u32,
    /// The scope of what it undoes, if it makes a compensation.
    undone: Option<ScopeId>,
}

impl About {
    fn of(activation: &Activation) -> Self {
        let undone = activation.undone.as_deref();
        Self {
            activation: activation.number,
            scope: activation.scope,
            step: activation.step,
            visit: activation.visit,
            undone: undone.map(|undone| undone.scope.clone()),
        }
    }
}

impl Turn<'_, '_> {
    /// Adds an event about the run to its history.
    pub(crate) fn note_run(&mut self, number: RunNumber, kind: EventKind) -> TurnResult<()> {
        let mut run = self.load_run(number)?;
        run.note_run(kind);
        self.put_back_run(run);
        Ok(())
    }

    /// Counts the events that were added to a run against the budget of the turn.
    pub(crate) fn count_events(&mut self, run: &mut LoadedRun) {
        self.runs.noted_bytes += std::mem::take(&mut run.noted_bytes);
    }
}
