//! The runs that a turn works on: each is loaded once, changed in place, and written once at the turn's end.

use super::index;
use crate::definition::StepIndex;
use crate::history;
use crate::ids::RunNumber;
use crate::json::Json;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Activations, DefinitionRecord, Event, EventKind, PayloadOwner,
    PayloadRef, Payloads, RunRecord, RunStatus, Runs,
};
use crate::turn::{Draft, Outcome, Turn};
use crate::workflow::pinned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run that a turn works on. Whoever takes it out of the turn returns it, or the turn fails.
pub(crate) struct LoadedRun {
    pub(crate) number: RunNumber,
    pub(crate) record: Draft<RunRecord>,
    /// The revision that it is pinned to.
    pub(crate) definition: Arc<DefinitionRecord>,
    /// What was there before the turn; `None` for a run that the turn has made.
    before: Option<Arc<RunRecord>>,
    activations: Vec<LoadedActivation>,
    events: Vec<Event>,
}

/// An activation that was looked up.
struct LoadedActivation {
    number: u32,
    /// What was there before the turn.
    before: Option<Arc<Activation>>,
    now: Now,
}

/// Where a loaded activation is.
enum Now {
    Here(Draft<Activation>),
    /// Taken out, to be put back or left.
    Taken,
    /// The step was left.
    Left,
}

/// Names an activation of a run.
#[derive(Clone, Copy)]
pub(crate) struct ActivationRef {
    pub(crate) run: RunNumber,
    pub(crate) activation: u32,
}

/// The runs of a turn.
#[derive(Default)]
pub(crate) struct TurnRuns {
    here: BTreeMap<RunNumber, LoadedRun>,
    /// How many were taken out and not returned.
    taken_count: usize,
}

impl TurnRuns {
    /// Returns a run that was taken out, or adds one that was made.
    pub(crate) fn put(&mut self, run: LoadedRun) {
        let replaced = self.here.insert(run.number, run);
        assert!(replaced.is_none(), "a turn has each run once");
    }

    /// The record of a run that the turn works on.
    pub(crate) fn record(&self, number: RunNumber) -> Option<Arc<RunRecord>> {
        self.here.get(&number).map(|run| run.record.share())
    }

    /// Whether the turn works on none.
    pub(crate) fn is_empty(&self) -> bool {
        self.here.is_empty() && self.taken_count == 0
    }

    /// All runs of the turn, at its end.
    fn into_runs(self) -> impl Iterator<Item = LoadedRun> {
        assert_eq!(self.taken_count, 0, "whoever takes a run returns it");
        self.here.into_values()
    }
}

/// The run `number`, taken out of the turn.
///
/// # Panics
/// When it is not there: only runs that exist are referred to.
pub(crate) fn load(turn: &mut Turn<'_, '_>, number: RunNumber) -> Outcome<LoadedRun> {
    let run = load_if_kept(turn, number)?;
    Ok(run.expect("a run is kept as long as anything refers to it"))
}

/// The run `number`, taken out of the turn, unless it was forgotten.
pub(crate) fn load_if_kept(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
) -> Outcome<Option<LoadedRun>> {
    let run = match turn.runs().here.remove(&number) {
        Some(run) => run,
        None => match turn.get::<Runs>(&number)? {
            Some(record) => {
                let definition = pinned(turn, record.definition)?;
                LoadedRun::new(number, Some(record.clone()), (record, definition))
            }
            None => return Ok(None),
        },
    };
    turn.runs().taken_count += 1;
    Ok(Some(run))
}

/// Returns a run to the turn.
pub(crate) fn put_back(turn: &mut Turn<'_, '_>, run: LoadedRun) {
    let runs = turn.runs();
    runs.taken_count -= 1;
    runs.put(run);
}

/// Adds an event about the run to its history.
pub(crate) fn note(turn: &mut Turn<'_, '_>, number: RunNumber, kind: EventKind) -> Outcome<()> {
    let mut run = load(turn, number)?;
    run.note_run(kind);
    put_back(turn, run);
    Ok(())
}

/// The record of a run as the turn knows it.
pub(crate) fn record(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
) -> Result<Option<Arc<RunRecord>>, StoreError> {
    match turn.runs().record(number) {
        Some(record) => Ok(Some(record)),
        None => turn.get::<Runs>(&number),
    }
}

/// Writes the runs that the turn worked on: their history, their rows and what follows them.
pub(crate) fn write_all(turn: &mut Turn<'_, '_>) -> Outcome<()> {
    let mut runs: Vec<LoadedRun> = std::mem::take(turn.runs()).into_runs().collect();
    for run in &mut runs {
        run.derive_status();
        let events = std::mem::take(&mut run.events);
        history::write(turn, run, events)?;
    }
    for run in &runs {
        index::update(turn, run.number, (run.before.as_ref(), &run.record))?;
    }
    for run in runs {
        run.write(turn);
    }
    Ok(())
}

impl LoadedRun {
    /// A run with nothing of it looked up, `before` being what was there before the turn.
    pub(super) fn new(
        number: RunNumber,
        before: Option<Arc<RunRecord>>,
        (record, definition): (Arc<RunRecord>, Arc<DefinitionRecord>),
    ) -> Self {
        Self {
            number,
            record: Draft::of(record),
            definition,
            before,
            activations: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Names an activation of the run.
    pub(crate) fn at(&self, activation: &Activation) -> ActivationRef {
        ActivationRef {
            run: self.number,
            activation: activation.number,
        }
    }

    /// Takes the activation `number` out to be changed, if it is under way: it is put back or left.
    pub(crate) fn take(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: u32,
    ) -> Result<Option<Draft<Activation>>, StoreError> {
        let Some(loaded) = self.look_up(turn, number)? else {
            return Ok(None);
        };
        match std::mem::replace(&mut loaded.now, Now::Taken) {
            Now::Here(activation) => Ok(Some(activation)),
            Now::Left => {
                loaded.now = Now::Left;
                Ok(None)
            }
            Now::Taken => panic!("an activation is taken once"),
        }
    }

    /// The activation `number`, if it is under way.
    pub(crate) fn activation(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: u32,
    ) -> Result<Option<&Activation>, StoreError> {
        let loaded = self.look_up(turn, number)?;
        Ok(loaded.and_then(|loaded| match &loaded.now {
            Now::Here(activation) => Some(&**activation),
            Now::Left => None,
            Now::Taken => panic!("an activation that was taken is with whoever took it"),
        }))
    }

    fn look_up(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: u32,
    ) -> Result<Option<&mut LoadedActivation>, StoreError> {
        let position = self.activations.iter().position(|one| one.number == number);
        if let Some(position) = position {
            return Ok(Some(&mut self.activations[position]));
        }
        let Some(activation) = turn.get::<Activations>(&(self.number, number))? else {
            return Ok(None);
        };
        self.activations.push(LoadedActivation {
            number,
            before: Some(activation.clone()),
            now: Now::Here(Draft::of(activation)),
        });
        Ok(self.activations.last_mut())
    }

    /// The numbers of the steps that are under way and not taken out, in the order in which they were entered.
    pub(crate) fn active(&mut self, turn: &mut Turn<'_, '_>) -> Result<Vec<u32>, StoreError> {
        let is_known = |one: &&LoadedActivation| !matches!(one.now, Now::Left);
        let known_count = self.activations.iter().filter(is_known).count();
        if known_count < self.record.active_count as usize {
            for ((_, number), _) in turn.list::<Activations>(&self.number, usize::MAX)? {
                self.look_up(turn, number)?;
            }
        }
        let here = self.activations.iter();
        let here = here.filter(|one| matches!(one.now, Now::Here(_)));
        let mut numbers: Vec<u32> = here.map(|one| one.number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// A new activation of `step`, executing, with the run's input; taken out.
    pub(crate) fn activate(&mut self, now_ms: u64, step: StepIndex) -> Draft<Activation> {
        self.record.activations_count += 1;
        self.record.active_count += 1;
        let activation = Activation {
            number: self.record.activations_count,
            step,
            attempt: 1,
            polls_count: 0,
            started_at_ms: now_ms,
            input: self.record.input,
            state: ActivationState::Executing,
        };
        self.activations.push(LoadedActivation {
            number: activation.number,
            before: None,
            now: Now::Taken,
        });
        Draft::of(Arc::new(activation))
    }

    /// Puts back what was taken out.
    pub(crate) fn put_back(&mut self, activation: Draft<Activation>) {
        let loaded = self.taken(activation.number);
        loaded.now = Now::Here(activation);
    }

    /// The step of an activation that was taken out is left.
    pub(crate) fn leave(&mut self, activation: &Activation) {
        self.taken(activation.number).now = Now::Left;
        self.record.active_count -= 1;
    }

    fn taken(&mut self, number: u32) -> &mut LoadedActivation {
        let mut taken = self.activations.iter_mut();
        let taken = taken.find(|one| one.number == number && matches!(one.now, Now::Taken));
        taken.expect("only what was taken out is put back or left")
    }

    /// Adds an event about the run to its history.
    pub(crate) fn note_run(&mut self, kind: EventKind) {
        self.events.push(Event {
            step: None,
            activation: None,
            kind,
        });
    }

    /// Adds an event about an active step to the run's history.
    pub(crate) fn note(&mut self, activation: &Activation, kind: EventKind) {
        self.events.push(Event {
            step: Some(activation.step),
            activation: Some(activation.number),
            kind,
        });
    }

    /// As [`LoadedRun::note`], about the activation `number`, which may have ended.
    pub(crate) fn note_of(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: u32,
        kind: EventKind,
    ) -> Result<(), StoreError> {
        let step = self.activation(turn, number)?.map(|active| active.step);
        self.events.push(Event {
            step,
            activation: step.map(|_| number),
            kind,
        });
        Ok(())
    }

    /// Stores a payload with the run.
    pub(crate) fn store_payload(&mut self, turn: &mut Turn<'_, '_>, payload: Json) -> PayloadRef {
        let reference = PayloadRef {
            owner: PayloadOwner::Run(self.number),
            position: self.record.payloads_count,
        };
        self.record.payloads_count += 1;
        turn.put::<Payloads>(&reference, payload);
        reference
    }

    /// What the run waited for came from outside: from here it may take as many steps again (W16).
    pub(crate) fn end_wait(&mut self) {
        self.record.steps_since_wait = 0;
        self.record.has_waited = true;
    }

    /// The status of an open run follows from what it waits for (W21).
    fn derive_status(&mut self) {
        if !self.record.status.is_open() {
            return;
        }
        let is_executing = |one: &LoadedActivation| match &one.now {
            Now::Here(activation) => activation.state.is_executing(),
            Now::Taken | Now::Left => false,
        };
        let status = if self.record.activations_count == 0 {
            RunStatus::Pending
        } else if self.record.continuation.is_some() || self.activations.iter().any(is_executing) {
            RunStatus::Running
        } else {
            RunStatus::Waiting
        };
        if self.record.status != status {
            self.record.status = status;
        }
    }

    /// Writes what the turn changed.
    fn write(self, turn: &mut Turn<'_, '_>) {
        for LoadedActivation {
            number,
            before,
            now,
        } in self.activations
        {
            let key = (self.number, number);
            match (now, before) {
                (Now::Here(activation), Some(before)) if activation.is(&before) => {}
                (Now::Here(activation), _) => turn.put::<Activations>(&key, activation),
                (Now::Left, Some(_)) => turn.delete::<Activations>(&key),
                (Now::Left, None) => {}
                (Now::Taken, _) => panic!("an activation that is taken out is put back or left"),
            }
        }
        if let Some(before) = &self.before {
            assert!(
                before.status.may_become(self.record.status),
                "a run's status goes forward"
            );
            if self.record.is(before) {
                return;
            }
        }
        turn.put::<Runs>(&self.number, self.record);
    }
}
