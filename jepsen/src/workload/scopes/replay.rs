//! Replays the history of a run. The replay keeps which scopes and steps are open, and what is done and not undone yet. It
//! ends at the first event that must not follow.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The types of the events that are replayed.
pub(super) const KINDS: [&str; 13] = [
    "action_completed",
    "branch_joined",
    "compensation_completed",
    "compensation_failed",
    "compensation_started",
    "handler_failed",
    "phase_changed",
    "scope_ended",
    "scope_started",
    "step_cancelled",
    "step_completed",
    "step_started",
    "step_timeout",
];

/// A step that opens scopes.
struct Opener {
    name: &'static str,
    /// How the step ends, unless the run is cancelled.
    outcome: &'static str,
    /// Which of its scopes are dropped when the step ends (W82a).
    drops: Drops,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Drops {
    Nothing,
    Losers,
    Everything,
}

const OPENERS: [Opener; 4] = [
    Opener {
        name: "race",
        outcome: "success",
        drops: Drops::Losers,
    },
    Opener {
        name: "fan",
        outcome: "failure",
        drops: Drops::Everything,
    },
    Opener {
        name: "dropped",
        outcome: "timeout",
        drops: Drops::Everything,
    },
    Opener {
        name: "kept",
        outcome: "timeout",
        drops: Drops::Nothing,
    },
];

/// The paths of the scopes below the run.
const SCOPES: [&str; 7] = [
    "race/left",
    "race/right",
    "race/late",
    "fan/good",
    "fan/bad",
    "dropped",
    "kept",
];

/// An event of the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Fact {
    pub(super) kind: String,
    pub(super) scope: String,
    pub(super) step: String,
    /// The outcome; the phase for `phase_changed`.
    pub(super) outcome: String,
}

/// A step and its scope. Each step is entered once, and no name is used twice.
type Place<'f> = (&'f str, &'f str);

/// What became of a step that was entered.
#[derive(Debug, PartialEq, Eq)]
enum Visit {
    Open,
    Completed,
    Cancelled {
        /// Whether its `onCancel` has succeeded.
        is_tidied: bool,
    },
}

/// What has happened up to an event.
#[derive(Debug, Default)]
pub(super) struct Replay<'f> {
    /// The scopes that have started, with the outcomes of those that have ended.
    scopes: BTreeMap<&'f str, Option<&'f str>>,
    visits: BTreeMap<Place<'f>, Visit>,
    /// The steps that have cancelled what was open in their scopes.
    decided: BTreeSet<&'f str>,
    /// What has succeeded and is not undone, in the order of its success.
    done: Vec<Place<'f>>,
    /// What is being undone, and whether the action of the compensation has succeeded.
    undoing: Option<(Place<'f>, bool)>,
    /// Empty until the end of the run is decided.
    phase: &'f str,
    is_run_cancelled: bool,
    /// The input `name` of each action run that has succeeded.
    executed: Vec<String>,
}

impl Fact {
    /// The step that it is about.
    fn place(&self) -> Place<'_> {
        (&self.scope, &self.step)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            scope,
            step,
            outcome,
        } = self;
        write!(formatter, "{kind} [{scope}] {step} {outcome}")
    }
}

impl<'f> Replay<'f> {
    /// Replays all events.
    pub(super) fn of(facts: &'f [Fact]) -> Result<Self, String> {
        let mut replay = Self::default();
        for fact in facts {
            let applied = replay.apply(fact);
            applied.map_err(|text| format!("`{fact}`, but {text}"))?;
        }
        Ok(replay)
    }

    /// The inputs of the actions that have succeeded.
    pub(super) fn executed(&self) -> &[String] {
        &self.executed
    }

    /// Checks what must hold when the run has ended.
    pub(super) fn check_end(&self, status: &str) -> Result<(), String> {
        self.check_steps_ended("")?;
        expect(self.undoing.is_none(), || {
            format!("{:?} is still being undone", self.undoing)
        })?;
        let is_cancelled = status == "RUN_STATUS_CANCELLED";
        expect(is_cancelled == self.is_run_cancelled, || {
            "a run is cancelled if it ends so, and only then".to_owned()
        })?;
        if status == "RUN_STATUS_COMPLETED" {
            expect(self.phase.is_empty(), || {
                format!("the run completed in the phase {}", self.phase)
            })?;
            self.check_dropped_work_is_undone()?;
        } else {
            expect(self.done.is_empty(), || {
                format!("{:?} is not undone", self.done)
            })?;
        }
        if is_cancelled {
            Ok(())
        } else {
            self.check_whole()
        }
    }

    /// Checks that each top-level step has completed, and that each scope has started.
    fn check_whole(&self) -> Result<(), String> {
        for step in ["first", "race", "fan", "dropped", "kept", "last"] {
            let is_completed = self.visits.get(&("", step)) == Some(&Visit::Completed);
            expect(is_completed, || format!("{step} has not completed"))?;
        }
        for scope in SCOPES {
            let has_started = self.scopes.contains_key(scope);
            expect(has_started, || format!("{scope} has not started"))?;
        }
        Ok(())
    }

    fn apply(&mut self, fact: &'f Fact) -> Result<(), String> {
        let is_success = fact.outcome == "success";
        match fact.kind.as_str() {
            "scope_started" => self.start_scope(fact),
            "scope_ended" => self.end_scope(fact),
            "step_started" => self.start_step(fact),
            "step_completed" => self.complete_step(fact),
            "step_cancelled" => self.cancel_step(fact),
            "branch_joined" if is_success == has_winner(&fact.step) => self.decide_step(fact),
            "step_timeout" => self.decide_step(fact),
            "action_completed" if is_success => self.succeed(fact),
            "compensation_started" => self.start_undo(fact),
            "compensation_completed" => self.end_undo(fact),
            "phase_changed" => self.change_phase(fact),
            "compensation_failed" | "handler_failed" => {
                Err("its action can only succeed".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn start_scope(&mut self, fact: &'f Fact) -> Result<(), String> {
        self.check_not_cancelling(&fact.scope)?;
        let is_new = self.scopes.insert(&fact.scope, None).is_none();
        expect(is_new, || "the scope has started before".to_owned())
    }

    fn end_scope(&mut self, fact: &'f Fact) -> Result<(), String> {
        self.check_open(&fact.scope)?;
        self.check_steps_ended(&fact.scope)?;
        let is_cancelled = fact.outcome == "cancelled";
        expect(is_cancelled == self.is_cancelling(&fact.scope), || {
            "a scope is cancelled if it ends so, and only then".to_owned()
        })?;
        self.scopes.insert(&fact.scope, Some(&fact.outcome));
        Ok(())
    }

    fn start_step(&mut self, fact: &'f Fact) -> Result<(), String> {
        self.check_open(&fact.scope)?;
        self.check_not_cancelling(&fact.scope)?;
        if fact.scope.is_empty() {
            expect(!self.has_open_scopes(), || "scopes are open".to_owned())?;
            self.check_dropped_work_is_undone()?;
        }
        let is_new = self.visits.insert(fact.place(), Visit::Open).is_none();
        expect(is_new, || "the step has started before".to_owned())
    }

    fn complete_step(&mut self, fact: &'f Fact) -> Result<(), String> {
        self.check_not_cancelling(&fact.scope)?;
        if let Some(opener) = opener(&fact.step) {
            expect(opener.outcome == fact.outcome, || {
                format!("it should end with {}", opener.outcome)
            })?;
            expect(!self.has_open_scopes(), || "its scopes are open".to_owned())?;
            self.check_dropped_work_is_undone()?;
        } else if fact.outcome == "success" {
            expect(self.executed.contains(&fact.step), || {
                "its action has not succeeded".to_owned()
            })?;
        }
        self.end_step(fact, Visit::Completed)
    }

    fn cancel_step(&mut self, fact: &'f Fact) -> Result<(), String> {
        // Steps that a cancel of the run ends immediately are recorded before `phase_changed`.
        self.is_run_cancelled |= !self.is_cancelling(&fact.scope);
        self.end_step(fact, Visit::Cancelled { is_tidied: false })
    }

    fn end_step(&mut self, fact: &'f Fact, end: Visit) -> Result<(), String> {
        let before = self.visits.insert(fact.place(), end);
        expect(before == Some(Visit::Open), || {
            format!("the step was not open, but {before:?}")
        })
    }

    fn decide_step(&mut self, fact: &'f Fact) -> Result<(), String> {
        let is_new = self.decided.insert(&fact.step);
        expect(is_new, || "the step was decided before".to_owned())
    }

    fn change_phase(&mut self, fact: &'f Fact) -> Result<(), String> {
        let before = std::mem::replace(&mut self.phase, &fact.outcome);
        self.is_run_cancelled |= self.phase == "cancelling";
        expect(before != self.phase, || "the phase is the same".to_owned())?;
        expect(
            self.phase == "cancelling" || !self.has_open_scopes(),
            || "scopes are open".to_owned(),
        )
    }

    /// An action has succeeded: that of a step, of its compensation or of its `onCancel`.
    fn succeed(&mut self, fact: &'f Fact) -> Result<(), String> {
        let place = fact.place();
        let step = place.1;
        match (&mut self.undoing, self.visits.get_mut(&place)) {
            (Some((undone, is_undone @ false)), _) if place == *undone => {
                *is_undone = true;
                self.executed.push(format!("undo-{step}"));
            }
            (_, Some(visit @ Visit::Cancelled { is_tidied: false })) => {
                *visit = Visit::Cancelled { is_tidied: true };
                self.executed.push(format!("tidy-{step}"));
            }
            (_, Some(Visit::Open)) if !self.done.contains(&place) => {
                self.done.push(place);
                self.executed.push(step.to_owned());
            }
            (_, visit) => return Err(format!("the step was {visit:?}")),
        }
        Ok(())
    }

    fn start_undo(&mut self, fact: &'f Fact) -> Result<(), String> {
        expect(self.undoing.is_none(), || {
            format!("{:?} is still being undone", self.undoing)
        })?;
        expect(!self.has_open_scopes(), || "scopes are open".to_owned())?;
        let next = match self.phase {
            "" if !self.is_run_cancelled => {
                self.done.iter().rposition(|place| self.is_dropped(place.0))
            }
            "compensating" => self.done.len().checked_sub(1),
            _ => None,
        };
        let next = next.map(|at| self.done.remove(at));
        let place = fact.place();
        expect(next == Some(place), || {
            format!("the next compensation due is that of {next:?}")
        })?;
        self.undoing = Some((place, false));
        Ok(())
    }

    fn end_undo(&mut self, fact: &'f Fact) -> Result<(), String> {
        let ended = self.undoing.take();
        expect(ended == Some((fact.place(), true)), || {
            format!("the compensation in progress was {ended:?}")
        })
    }

    /// Whether any scope below the run is open.
    fn has_open_scopes(&self) -> bool {
        self.scopes.values().any(Option::is_none)
    }

    /// Whether what a scope has done is undone before the step that opened it ends.
    fn is_dropped(&self, scope: &str) -> bool {
        match opener(scope).map(|opener| opener.drops) {
            Some(Drops::Everything) => true,
            Some(Drops::Losers) => self.scopes.get(scope) != Some(&Some("success")),
            Some(Drops::Nothing) | None => false,
        }
    }

    fn check_dropped_work_is_undone(&self) -> Result<(), String> {
        let mut dropped = self.done.iter().filter(|place| self.is_dropped(place.0));
        let dropped = dropped.next();
        expect(dropped.is_none(), || format!("{dropped:?} is not undone"))
    }

    fn check_open(&self, scope: &str) -> Result<(), String> {
        let is_open = scope.is_empty() || self.scopes.get(scope) == Some(&None);
        expect(is_open, || format!("the scope {scope} is not open"))
    }

    /// Whether a scope is being cancelled, or the run.
    fn is_cancelling(&self, scope: &str) -> bool {
        let is_decided = opener(scope).is_some_and(|opener| self.decided.contains(opener.name));
        is_decided || self.is_run_cancelled || !self.phase.is_empty()
    }

    fn check_not_cancelling(&self, scope: &str) -> Result<(), String> {
        expect(!self.is_cancelling(scope), || {
            "its scope is being cancelled".to_owned()
        })
    }

    /// Checks that each step of a scope has ended, with its `onCancel`.
    fn check_steps_ended(&self, scope: &str) -> Result<(), String> {
        let open = self.visits.iter().find(|(place, visit)| {
            // A step with scopes has no `onCancel`.
            let is_tidied = opener(place.1).is_none();
            let ends = [Visit::Completed, Visit::Cancelled { is_tidied }];
            place.0 == scope && !ends.contains(visit)
        });
        expect(open.is_none(), || format!("{open:?} has not ended"))
    }
}

/// The step with this name that opens scopes, or that opened the scope with this path.
fn opener(path: &str) -> Option<&'static Opener> {
    let name = path.split('/').next();
    OPENERS.iter().find(|opener| Some(opener.name) == name)
}

/// Whether the first branch that succeeds decides the step. Otherwise, the first one that does not succeed does.
fn has_winner(step: &str) -> bool {
    opener(step).is_some_and(|opener| opener.outcome == "success")
}

fn expect(holds: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(text()),
    }
}
