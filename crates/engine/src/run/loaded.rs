//! Runs and their active steps as a turn works on them.

use super::advance::Work;
use crate::definition::StepIndex;
use crate::ids::RunNumber;
use crate::json::Json;
use crate::store::StoreError;
use crate::tables::{
    Activation, Event, EventKind, PayloadOwner, PayloadRef, Payloads, RunRecord, Runs,
};
use crate::turn::{Draft, Turn};

/// A run that a turn has loaded: its record is changed here, then put back.
pub(crate) struct Loaded {
    pub(crate) number: RunNumber,
    pub(crate) record: Draft<RunRecord>,
}

/// Names an activation of a run.
#[derive(Clone, Copy)]
pub(crate) struct ActivationRef {
    pub(crate) run: RunNumber,
    pub(crate) activation: u32,
}

/// An active step of a loaded run: its activation is changed here, then put back with the run.
pub(crate) struct ActiveStep {
    pub(crate) run: Loaded,
    pub(crate) activation: Activation,
}

/// The run `number`.
///
/// # Panics
/// When it is not there: only runs that exist are referred to.
pub(crate) fn load(turn: &mut Turn<'_, '_>, number: RunNumber) -> Result<Loaded, StoreError> {
    let run = load_if_kept(turn, number)?;
    Ok(run.expect("a run is kept as long as anything refers to it"))
}

/// The run `number`, unless it was forgotten.
pub(super) fn load_if_kept(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
) -> Result<Option<Loaded>, StoreError> {
    let record = turn.draft::<Runs>(&number)?;
    Ok(record.map(|record| Loaded { number, record }))
}

impl Loaded {
    /// Writes the record as it is now.
    pub(crate) fn put(self, turn: &mut Turn<'_, '_>) {
        turn.put::<Runs>(&self.number, self.record);
    }

    /// Adds an event to the run's history.
    pub(crate) fn note(
        &self,
        turn: &mut Turn<'_, '_>,
        step: impl Into<Option<StepIndex>>,
        kind: EventKind,
    ) {
        let step = step.into();
        turn.event(self.number, Event { step, kind });
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

    /// The active step of `activation`, if it is under way.
    pub(crate) fn active_step(self, activation: u32) -> Option<ActiveStep> {
        let activation = self.record.activation(activation)?.clone();
        Some(ActiveStep {
            run: self,
            activation,
        })
    }
}

impl ActiveStep {
    /// The active step that `at` names; `None` when the run has left it.
    pub(crate) fn load(
        turn: &mut Turn<'_, '_>,
        at: ActivationRef,
    ) -> Result<Option<Self>, StoreError> {
        Ok(load(turn, at.run)?.active_step(at.activation))
    }

    /// Names its activation.
    pub(crate) fn at(&self) -> ActivationRef {
        ActivationRef {
            run: self.run.number,
            activation: self.activation.number,
        }
    }

    /// Adds an event about the step to the run's history.
    pub(crate) fn note(&self, turn: &mut Turn<'_, '_>, kind: EventKind) {
        self.run.note(turn, self.activation.step, kind);
    }

    /// Writes the run with the activation as it is now.
    pub(crate) fn put(self, turn: &mut Turn<'_, '_>) {
        let Self {
            mut run,
            activation,
        } = self;
        if let Some(active) = run.record.activation_mut(activation.number) {
            *active = activation;
        }
        run.put(turn);
    }
}

impl ActivationRef {
    /// The work of settling the activation.
    pub(crate) fn settle(self, settled: super::Settled) -> Work {
        Work::Settle {
            run: self.run,
            activation: self.activation,
            settled,
        }
    }

    /// The work of invoking its step's target.
    pub(crate) fn execute(self) -> Work {
        Work::Execute {
            run: self.run,
            activation: self.activation,
        }
    }
}
