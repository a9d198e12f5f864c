//! Delivering a signal (W19).

use super::advance::{Settled, advance};
use super::enter::signal_timer;
use super::loaded::ActiveStep;
use super::open::find;
use super::outcome::name;
use crate::definition::{StepKind, WaitStep};
use crate::ids::{Namespace, RunId, RunNumber, SignalId, SignalType};
use crate::json::Json;
use crate::limits::SIGNALS_MAX;
use crate::rejection::Rejection;
use crate::reply::SignalAccepted;
use crate::tables::{
    Activation, ActivationState, EventKind, PayloadRef, RunRecord, SignalIds, SignalRecord,
    SignalsWaiting,
};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;
use serde::{Deserialize, Serialize};

/// Delivers a typed event to a run; a signal that no step waits for yet is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRun {
    /// The run.
    pub run_id: RunId,
    /// The signal's type.
    pub signal_type: SignalType,
    /// What the waiting step gets as its output.
    pub payload: Json,
    /// The caller's id: a second signal with it is a no-op.
    pub signal_id: Option<SignalId>,
}

impl SignalRun {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<SignalAccepted> {
        let mut run = find(turn, namespace, &self.run_id)?;
        // A repeated id is answered before the run's end may refuse it (W19).
        if self.is_repeated(turn, run.number)? {
            return Ok(SignalAccepted { is_repeated: true });
        }
        let status = run.record.status;
        if !status.is_open() {
            let status = status.name().to_owned();
            return Err(Rejection::RunEnded {
                run_id: self.run_id.clone(),
                status,
            }
            .into());
        }
        if run.record.signals_count >= SIGNALS_MAX {
            return Err(Rejection::SignalsTooMany(self.run_id.clone()).into());
        }
        run.record.signals_count += 1;
        let position = run.record.signals_count;
        if let Some(id) = &self.signal_id {
            turn.put::<SignalIds>(&(run.number, id.clone()), position);
        }
        let payload = run.store_payload(turn, self.payload.clone());
        let kind = EventKind::SignalReceived {
            signal_type: self.signal_type.clone(),
            id: self.signal_id.clone(),
            payload,
        };
        run.note(turn, None, kind);
        match self.waiting_activation(turn, &run.record)? {
            Some(activation) => self.satisfy(turn, ActiveStep { run, activation }, payload)?,
            None => {
                let key = (run.number, self.signal_type.clone(), position);
                turn.put::<SignalsWaiting>(&key, SignalRecord { payload });
                run.put(turn);
            }
        }
        Ok(SignalAccepted { is_repeated: false })
    }

    fn is_repeated(&self, turn: &mut Turn<'_, '_>, number: RunNumber) -> Outcome<bool> {
        let Some(id) = &self.signal_id else {
            return Ok(false);
        };
        Ok(turn.get::<SignalIds>(&(number, id.clone()))?.is_some())
    }

    /// The first activation that waits for this type.
    fn waiting_activation(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &RunRecord,
    ) -> Outcome<Option<Activation>> {
        let definition = pinned(turn, run.definition)?;
        let waits = |active: &&Activation| match &definition.definition.step(active.step).kind {
            StepKind::Wait(WaitStep { signal_type, .. }) => *signal_type == self.signal_type,
            StepKind::Run(_) => false,
        };
        Ok(run.active.iter().find(waits).cloned())
    }

    fn satisfy(
        &self,
        turn: &mut Turn<'_, '_>,
        waiting: ActiveStep,
        payload: PayloadRef,
    ) -> Outcome<()> {
        let at = waiting.at();
        if let ActivationState::Signal {
            deadline_ms: Some(due_ms),
        } = waiting.activation.state
        {
            turn.clear_timer(signal_timer(at, due_ms));
        }
        let kind = EventKind::SignalMatched {
            signal_type: self.signal_type.clone(),
        };
        waiting.note(turn, kind);
        waiting.put(turn);
        let settled = Settled {
            outcome: name::of(name::SUCCESS),
            output: Some(payload),
            reason: None,
            is_retryable: false,
        };
        advance(turn, at.settle(settled))
    }
}
