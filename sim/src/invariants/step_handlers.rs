//! The `onCancel` of a step is called once, after the step was cancelled and before its scope ends (W81).

use super::histories::is_end;
use super::rows::runs_of;
use flotilla_engine::ids::ScopeNumber;
use flotilla_engine::rows::{EventKind, Phase};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

/// The workflow whose steps have handlers.
const WORKFLOW: &str = "trip";
/// The steps with `onCancel`.
const STEPS: [&str; 3] = ["flight", "near", "far"];

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (_, run, events) in runs_of(store, WORKFLOW) {
        let mut calls = Calls::default();
        for past in events {
            if let Err(text) = calls.add(past.event.scope.number, past.step(), &past.event.kind) {
                broken.push(format!("expected {} to {text}", run.id));
            }
        }
    }
    broken
}

/// The state of the call of a cancelled step's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Due,
    Open,
    Ended,
}

/// The handlers of the cancelled steps of a run. A scope visits each step once.
#[derive(Default)]
struct Calls(BTreeMap<(ScopeNumber, String), Call>);

impl Calls {
    /// Adds an event. `Err` completes the sentence "expected the run to …".
    fn add(&mut self, scope: ScopeNumber, step: &str, kind: &EventKind) -> Result<(), String> {
        let place = (scope, step.to_owned());
        let call = self.0.get(&place).copied();
        match kind {
            EventKind::StepCancelled if STEPS.contains(&step) => {
                self.0.insert(place, Call::Due);
            }
            EventKind::AwaitingAction { .. } if call == Some(Call::Due) => {
                self.0.insert(place, Call::Open);
            }
            EventKind::AwaitingAction { .. } if call.is_some() => {
                return Err(format!("call the handler of {step} once"));
            }
            EventKind::ActionCompleted { .. } if call == Some(Call::Open) => {
                self.0.insert(place, Call::Ended);
            }
            // The calls that follow are those of the compensation.
            EventKind::CompensationStarted if call == Some(Call::Ended) => {
                self.0.remove(&place);
            }
            EventKind::CompensationStarted if call.is_some() => {
                return Err(format!("call the handler of {step} before it is undone"));
            }
            EventKind::ScopeEnded { .. } => return self.expect_ended(|of| of == scope),
            EventKind::PhaseChanged { phase } if *phase != Phase::Cancelling => {
                return self.expect_ended(|_| true);
            }
            kind if is_end(kind) => return self.expect_ended(|_| true),
            _ => {}
        }
        Ok(())
    }

    fn expect_ended(&self, is_within: impl Fn(ScopeNumber) -> bool) -> Result<(), String> {
        let mut within = self.0.iter().filter(|((scope, _), _)| is_within(*scope));
        match within.find(|(_, call)| **call != Call::Ended) {
            Some(((_, step), _)) => {
                Err(format!("call the handler of {step} before its scope ends"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventKind::{CompensationStarted, StepCancelled};
    use flotilla_engine::definition::{BuiltInTerminal, Target};
    use flotilla_engine::ids::{ActionName, ActionRunNumber, OutcomeName};

    fn success() -> OutcomeName {
        OutcomeName::new("success").expect("an outcome")
    }

    fn called() -> EventKind {
        EventKind::AwaitingAction {
            action: ActionName::new("undo").expect("a name"),
            action_run: ActionRunNumber(1),
        }
    }

    fn answered() -> EventKind {
        EventKind::ActionCompleted {
            action_run: ActionRunNumber(1),
            outcome: success(),
            error: None,
        }
    }

    fn ended() -> EventKind {
        EventKind::ScopeEnded { outcome: success() }
    }

    /// Whether a history of the step `near` in scope 1 is accepted.
    fn is_accepted(kinds: &[EventKind]) -> bool {
        let mut calls = Calls::default();
        let mut added = kinds
            .iter()
            .map(|kind| calls.add(ScopeNumber(1), "near", kind));
        added.all(|added| added.is_ok())
    }

    #[test]
    fn a_handler_is_called_once_before_the_scope_ends_and_the_step_is_undone() {
        let full = [StepCancelled, called(), answered()];
        assert!(is_accepted(&[called(), answered(), ended()]));
        assert!(is_accepted(&[&full[..], &[ended()]].concat()));
        let undone = [CompensationStarted, called(), answered(), ended()];
        assert!(is_accepted(&[&full[..], &undone].concat()));
        for length in [1, 2] {
            for next in [ended(), CompensationStarted] {
                assert!(!is_accepted(&[&full[..length], &[next]].concat()));
            }
        }
        for length in [2, 3] {
            assert!(!is_accepted(&[&full[..length], &[called()]].concat()));
        }
    }

    #[test]
    fn a_run_ends_and_is_undone_after_the_handlers_of_its_steps() {
        let of_run = |phase| EventKind::PhaseChanged { phase };
        let is_accepted = |before: &[EventKind], next: EventKind| {
            let mut calls = Calls::default();
            for kind in before {
                calls.add(ScopeNumber(1), "near", kind).expect("accepted");
            }
            calls.add(ScopeNumber::ROOT, "", &next).is_ok()
        };
        let open = [StepCancelled, called()];
        assert!(is_accepted(&open, of_run(Phase::Cancelling)));
        let cancelled = EventKind::WorkflowCancelled {
            terminal: Target::BuiltIn(BuiltInTerminal::Cancelled),
            reason: None,
        };
        for next in [of_run(Phase::Compensating), cancelled] {
            assert!(!is_accepted(&open, next.clone()));
            assert!(is_accepted(&[&open[..], &[answered()]].concat(), next));
        }
    }
}
