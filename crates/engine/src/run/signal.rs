//! Delivering a signal (W19).

use super::advance::{Settled, Work, advance};
use super::enter::signal_timer;
use super::open::{find, store_payload};
use super::outcome::name;
use crate::definition::{StepKind, WaitStep};
use crate::ids::{Namespace, RunId, RunNumber, SignalId, SignalType};
use crate::json::Json;
use crate::limits::SIGNALS_MAX;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::tables::{
    Activation, ActivationState, Event, EventKind, PayloadRef, RunRecord, Runs, SignalIds,
    SignalRecord, SignalsWaiting,
};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        let (number, run) = find(turn, namespace, &self.run_id)?;
        // A repeated id is answered before the run's end may refuse it (W19).
        if self.is_repeated(turn, number)? {
            return Ok(Reply::SignalAccepted { is_repeated: true });
        }
        let mut run = Arc::unwrap_or_clone(run);
        if !run.status.is_open() {
            let status = run.status.name().to_owned();
            return Err(Rejection::RunEnded {
                run_id: self.run_id.clone(),
                status,
            }
            .into());
        }
        if run.signals_count >= SIGNALS_MAX {
            return Err(Rejection::SignalsTooMany(self.run_id.clone()).into());
        }
        run.signals_count += 1;
        if let Some(id) = &self.signal_id {
            turn.put::<SignalIds>(&(number, id.clone()), run.signals_count);
        }
        let payload = store_payload(turn, number, &mut run, self.payload.clone());
        let kind = EventKind::SignalReceived {
            signal_type: self.signal_type.clone(),
            id: self.signal_id.clone(),
            payload,
        };
        turn.event(number, Event { step: None, kind });
        match self.waiting_step(turn, &run)? {
            Some(active) => self.satisfy(turn, (number, run), &active, payload)?,
            None => {
                let key = (number, self.signal_type.clone(), run.signals_count);
                turn.put::<SignalsWaiting>(&key, SignalRecord { payload });
                turn.put::<Runs>(&number, run);
            }
        }
        Ok(Reply::SignalAccepted { is_repeated: false })
    }

    fn is_repeated(&self, turn: &mut Turn<'_, '_>, number: RunNumber) -> Outcome<bool> {
        let Some(id) = &self.signal_id else {
            return Ok(false);
        };
        Ok(turn.get::<SignalIds>(&(number, id.clone()))?.is_some())
    }

    /// The first active step that waits for this type.
    fn waiting_step(
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
        (number, run): (RunNumber, RunRecord),
        active: &Activation,
        payload: PayloadRef,
    ) -> Outcome<()> {
        turn.put::<Runs>(&number, run);
        if let ActivationState::Signal {
            deadline_ms: Some(due_ms),
        } = active.state
        {
            turn.clear_timer(signal_timer(number, active.number, due_ms));
        }
        let kind = EventKind::SignalMatched {
            signal_type: self.signal_type.clone(),
        };
        turn.event(
            number,
            Event {
                step: Some(active.step),
                kind,
            },
        );
        let settled = Settled {
            outcome: name::of(name::SUCCESS),
            output: Some(payload),
            is_retryable: false,
        };
        advance(
            turn,
            Work::Settle {
                run: number,
                activation: active.number,
                settled,
            },
        )
    }
}
