//! Delivering a signal (W19).

use super::advance::advance_after_wait;
use super::create::{check_open, find};
use super::kept_signals::{self, NewTakenSignal};
use super::outcome::name;
use super::scope_search::{self, NamedScope};
use super::step_timer::end_waiting;
use crate::ids::{Namespace, RunId, ScopePathText, SignalId, SignalType};
use crate::json::Json;
use crate::limits::{SIGNAL_IDS_MAX, SIGNALS_KEPT_BYTES_MAX, SIGNALS_KEPT_MAX};
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::SignalAccepted;
use crate::store::StoreError;
use crate::tables::{
    ActivationState, EventKind, SignalIdPlaces, SignalIds, SignalRecord, SignalsWaiting,
    TakenSignal, TargetResult, Work,
};
use crate::turn::{ActivationRef, LoadedRun, Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use serde::{Deserialize, Serialize};

/// Delivers a typed signal to a run; a signal that no step waits for is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRun {
    /// The run.
    pub run_id: RunId,
    /// The signal's type.
    pub signal_type: SignalType,
    /// What the waiting step gets as its output.
    pub payload: Json,
    /// The scope that it is for; `None` for any.
    pub scope: Option<ScopePathText>,
    /// The caller's id: a second signal with it is a no-op.
    pub signal_id: Option<SignalId>,
}

impl SignalRun {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<SignalAccepted> {
        if self.signal_type.is_reserved() {
            let reserved = Undeliverable::SignalTypeReserved(self.signal_type.clone());
            return Err(Rejection::from(reserved).into());
        }
        let mut run = find(turn, namespace, &self.run_id)?;
        // A repeated id is answered before the run's end may refuse it (W19).
        if self.is_repeated(turn, &run)? {
            turn.put_back_run(run);
            return Ok(SignalAccepted {
                is_repeated: true,
                is_kept: false,
            });
        }
        quota::check(turn, namespace, &[(QuotaDimension::SignalsPerMinute, 1)])?;
        quota::spend(turn, namespace, (QuotaDimension::SignalsPerMinute, 1))?;
        check_open(&run)?;
        self.check_not_retrying(&run)?;
        let to = match &self.scope {
            Some(text) => Some(scope_search::find(turn, &mut run, text)?),
            None => None,
        };
        run.record.signals.received_count += 1;
        if let Some(id) = &self.signal_id {
            remember(turn, &mut run, id)?;
        }
        let payload = run.store_payload(turn, self.payload.clone());
        let kind = EventKind::SignalReceived {
            signal_type: self.signal_type.clone(),
            id: self.signal_id.clone(),
            payload,
        };
        run.note_run(kind);
        let bytes = u32::try_from(self.payload.as_str().len()).expect("a payload is bounded");
        run.record.signals.add(bytes);
        let signal = SignalRecord { payload, bytes };
        let activation = self.waiting_activation(turn, &mut run, to.as_ref())?;
        let to = to.map(|scope| scope.path).unwrap_or_default();
        match activation {
            Some(activation) => {
                let taken = TakenSignal {
                    to,
                    signal_type: self.signal_type.clone(),
                    signal,
                };
                self.satisfy(turn, run, activation, taken)?;
            }
            None => {
                let place = run.record.signals.received_count;
                let key = (run.number, to, self.signal_type.clone(), place);
                turn.put::<SignalsWaiting>(&key, signal);
                self.check_kept(&run)?;
                turn.put_back_run(run);
            }
        }
        Ok(SignalAccepted {
            is_repeated: false,
            is_kept: activation.is_none(),
        })
    }

    /// Whether the run, or an attempt at it before this one, has received the signal already.
    fn is_repeated(&self, turn: &mut Turn<'_, '_>, run: &LoadedRun) -> TurnResult<bool> {
        let Some(id) = &self.signal_id else {
            return Ok(false);
        };
        let first = run.record.first_attempt(run.number);
        if turn.get::<SignalIds>(&(first, id.clone()))?.is_some() {
            return Ok(true);
        }
        let mut attempt = Some((run.number, run.record.chain));
        while let Some((number, chain)) = attempt.filter(|(number, _)| *number != first) {
            if turn.get::<SignalIds>(&(number, id.clone()))?.is_some() {
                return Ok(true);
            }
            let Some(previous) = chain.and_then(|chain| chain.previous) else {
                break;
            };
            let record = turn.run_record(previous)?;
            attempt = record.map(|run| (previous, run.chain));
        }
        Ok(false)
    }

    /// Checks that no other attempt will follow the one that is open: a signal that it keeps would be lost (W77).
    fn check_not_retrying(&self, run: &LoadedRun) -> Result<(), Rejection> {
        let end = run.record.fixed_end.as_ref();
        match end.is_some_and(|end| end.is_retried) {
            true => Err(Undeliverable::RunRetrying(self.run_id.clone()).into()),
            false => Ok(()),
        }
    }

    /// Checks that the run does not keep too many signals.
    fn check_kept(&self, run: &LoadedRun) -> Result<(), Rejection> {
        let counts = &run.record.signals;
        if counts.kept_count > SIGNALS_KEPT_MAX || counts.kept_bytes > SIGNALS_KEPT_BYTES_MAX {
            return Err(Undeliverable::SignalLimitExceeded(self.run_id.clone()).into());
        }
        Ok(())
    }

    /// The activation that waits for this type in the scope, the first to be entered if there are several.
    fn waiting_activation(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        to: Option<&NamedScope>,
    ) -> TurnResult<Option<u64>> {
        for number in run.active(turn)? {
            let Some(active) = run.activation(turn, number)? else {
                continue;
            };
            let is_addressed = to.is_none_or(|to| to.number == Some(active.scope));
            if let ActivationState::Signal(wait) = &active.state
                && is_addressed
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
        activation: u64,
        taken: TakenSignal,
    ) -> TurnResult<()> {
        let number = run.number;
        let active = run.take(turn, activation)?;
        let mut active = active.expect("the step that waits was found in this turn");
        let place = run.record.signals.received_count;
        let payload = taken.signal.payload;
        let new = NewTakenSignal {
            scope: active.scope,
            place,
            taken,
        };
        kept_signals::take(turn, &mut run, new)?;
        self.check_kept(&run)?;
        end_waiting(turn, &run, &mut active);
        let kind = EventKind::SignalMatched {
            signal_type: self.signal_type.clone(),
        };
        run.note(&active, kind);
        run.put_back(active);
        turn.put_back_run(run);
        let target_result = TargetResult {
            output: Some(payload),
            ..TargetResult::of_engine(name::of(name::SUCCESS))
        };
        let work = Work::FinishStep {
            activation,
            target_result,
        };
        let at = ActivationRef {
            run: number,
            activation,
        };
        advance_after_wait(turn, at, work)
    }
}

/// Remembers a signal's id, and forgets the oldest id at the limit.
fn remember(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, id: &SignalId) -> Result<(), StoreError> {
    let place = run.record.signals.ids_count;
    run.record.signals.ids_count += 1;
    turn.put::<SignalIds>(&(run.number, id.clone()), place);
    turn.put::<SignalIdPlaces>(&(run.number, place), id.clone());
    let Some(oldest) = place.checked_sub(SIGNAL_IDS_MAX) else {
        return Ok(());
    };
    let forgotten = turn.get::<SignalIdPlaces>(&(run.number, oldest))?;
    let forgotten = forgotten.expect("an id is remembered until as many newer ones have come");
    turn.delete::<SignalIds>(&(run.number, (*forgotten).clone()));
    turn.delete::<SignalIdPlaces>(&(run.number, oldest));
    Ok(())
}
