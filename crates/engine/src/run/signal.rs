//! Delivering a signal (W19).

use super::advance::advance_after_wait;
use super::enter::signal_timer;
use super::loaded::{ActivationRef, LoadedRun, put_back};
use super::open::find;
use super::outcome::name;
use crate::definition::StepKind;
use crate::ids::{Namespace, RunId, RunNumber, SignalId, SignalType};
use crate::json::Json;
use crate::limits::SIGNALS_MAX;
use crate::rejection::Rejection;
use crate::reply::SignalAccepted;
use crate::tables::{
    Activation, ActivationState, Awaited, EventKind, PayloadRef, Settled, SignalIds, SignalRecord,
    SignalsWaiting, Work,
};
use crate::turn::{Outcome, Turn};
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
            put_back(turn, run);
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
        run.note_run(kind);
        match self.waiting_activation(turn, &mut run)? {
            Some(activation) => self.satisfy(turn, run, (activation, payload))?,
            None => {
                let key = (run.number, self.signal_type.clone(), position);
                turn.put::<SignalsWaiting>(&key, SignalRecord { payload });
                put_back(turn, run);
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

    /// The activation that waits for this type, the first to be entered if there are several.
    fn waiting_activation(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
    ) -> Outcome<Option<u32>> {
        let definition = run.definition.clone();
        for number in run.active(turn)? {
            let Some(active) = run.activation(turn, number)? else {
                continue;
            };
            let is_waiting = active.state.awaits() == Awaited::Signal;
            if let StepKind::Wait(wait) = &definition.definition.step(active.step).kind
                && is_waiting
                && wait.signal_type == self.signal_type
            {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn satisfy(
        &self,
        turn: &mut Turn<'_, '_>,
        mut run: LoadedRun,
        (activation, payload): (u32, PayloadRef),
    ) -> Outcome<()> {
        let number = run.number;
        let active = run.activation(turn, activation)?;
        if let Some(Activation {
            state:
                ActivationState::Signal {
                    deadline_ms: Some(due_ms),
                },
            ..
        }) = active
        {
            let at = ActivationRef {
                run: number,
                activation,
            };
            turn.clear_timer(signal_timer(at, *due_ms));
        }
        let kind = EventKind::SignalMatched {
            signal_type: self.signal_type.clone(),
        };
        run.note_of(turn, activation, kind)?;
        put_back(turn, run);
        let settled = Settled {
            from: Awaited::Signal,
            outcome: name::of(name::SUCCESS),
            output: Some(payload),
            reason: None,
            is_retryable: false,
        };
        let work = Work::Settle {
            activation,
            settled,
        };
        advance_after_wait(turn, number, work)
    }
}
