//! A scope ends once. No step starts in it after it has ended or one of its steps was cancelled. While a run waits for its
//! cancelled steps to end, no step or compensation starts in it (W53, W54).

use super::histories::is_end;
use super::rows::{events_of, rows};
use flotilla_engine::ids::ScopeNumber;
use flotilla_engine::rows::{Event, EventKind, Phase, Runs};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeSet;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let mut state = State::default();
        for past in events_of(store, number, &run) {
            // Of iterations, the history has only failures; `loops` checks their ends.
            if past.is_of_iteration() {
                continue;
            }
            if let Err(text) = state.add(&past.event) {
                broken.push(format!("in {}, expected {text}", run.id));
            }
        }
    }
    broken
}

/// What is open in a run.
#[derive(Default)]
struct State {
    scopes: BTreeSet<ScopeNumber>,
    /// The scopes in which a step was cancelled, except the root scope.
    cancelled: BTreeSet<ScopeNumber>,
    is_cancelling: bool,
    is_ended: bool,
}

impl State {
    /// Adds an event. `Err` completes the sentence "expected …".
    fn add(&mut self, event: &Event) -> Result<(), String> {
        let scope = event.scope.number;
        let place = &event.scope.path;
        let is_open = match scope {
            ScopeNumber::ROOT => !self.is_ended,
            scope => self.scopes.contains(&scope),
        };
        match &event.kind {
            EventKind::ScopeStarted if !self.scopes.insert(scope) => {
                return Err(format!("scope {place:?} not to start while it is open"));
            }
            EventKind::ScopeEnded { .. } if !self.scopes.remove(&scope) => {
                return Err(format!("scope {place:?} to end only while it is open"));
            }
            EventKind::StepCancelled if scope != ScopeNumber::ROOT => {
                self.cancelled.insert(scope);
            }
            EventKind::StepStarted if self.cancelled.contains(&scope) => {
                return Err(format!(
                    "no step to start in {place:?}, which was cancelled"
                ));
            }
            EventKind::StepStarted if !is_open => {
                return Err(format!("no step to start in {place:?}, which has ended"));
            }
            EventKind::StepStarted | EventKind::CompensationStarted if self.is_cancelling => {
                return Err(format!(
                    "nothing to start in {place:?} before what was cancelled has ended"
                ));
            }
            EventKind::PhaseChanged { phase } => self.is_cancelling = *phase == Phase::Cancelling,
            EventKind::RunResumed { .. } => *self = Self::default(),
            kind if is_end(kind) => {
                *self = Self {
                    is_ended: true,
                    ..Self::default()
                };
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::OutcomeName;
    use flotilla_engine::rows::{ScopeId, ScopePath};

    /// Whether a history is accepted; the scopes are 0, the run itself, and 1.
    fn is_accepted(events: &[(u64, EventKind)]) -> bool {
        let mut state = State::default();
        events.iter().all(|(scope, kind)| {
            let event = Event {
                scope: ScopeId {
                    number: ScopeNumber(*scope),
                    path: ScopePath::default(),
                },
                step: None,
                visit: 0,
                activation: None,
                kind: kind.clone(),
            };
            state.add(&event).is_ok()
        })
    }

    fn ended() -> EventKind {
        EventKind::ScopeEnded {
            outcome: OutcomeName::new("success").expect("an outcome"),
        }
    }

    #[test]
    fn a_scope_ends_once_and_nothing_starts_in_it_afterwards() {
        let opened = [
            (1, EventKind::ScopeStarted),
            (1, EventKind::StepStarted),
            (1, ended()),
        ];
        assert!(is_accepted(&opened));
        for late in [ended(), EventKind::StepStarted] {
            assert!(!is_accepted(&[&opened[..], &[(1, late)]].concat()));
        }
        assert!(!is_accepted(&[
            (1, EventKind::ScopeStarted),
            (1, EventKind::ScopeStarted)
        ]));
    }

    #[test]
    fn nothing_starts_in_a_cancelled_scope() {
        let cancelled = [(1, EventKind::ScopeStarted), (1, EventKind::StepCancelled)];
        assert!(is_accepted(&[&cancelled[..], &[(1, ended())]].concat()));
        assert!(!is_accepted(
            &[&cancelled[..], &[(1, EventKind::StepStarted)]].concat()
        ));
        let of_run = [(0, EventKind::StepCancelled), (0, EventKind::StepStarted)];
        assert!(is_accepted(&of_run));
    }

    #[test]
    fn nothing_starts_while_what_was_cancelled_has_not_ended() {
        let to = |phase| (0, EventKind::PhaseChanged { phase });
        for start in [EventKind::StepStarted, EventKind::CompensationStarted] {
            let cancelling = [to(Phase::Cancelling), (0, start.clone())];
            assert!(!is_accepted(&cancelling));
            let over = [to(Phase::Cancelling), to(Phase::Compensating), (0, start)];
            assert!(is_accepted(&over));
        }
    }
}
