//! Steps that wait for a signal (W19, W61a).

use super::failure::failed;
use super::kept_signals;
use super::render::{self, BAD_SIGNAL_TYPE, DataContext, Mapped};
use super::step_timer::set_deadline;
use crate::definition::{SignalTypeValue, Template, WaitStep};
use crate::ids::SignalType;
use crate::json::as_string;
use crate::message::cut;
use crate::store::StoreError;
use crate::tables::{Activation, ActivationState, EventKind, SignalWait, TargetResult};
use crate::turn::{LoadedRun, Turn};

/// Begins to wait; returns what the step ends with if its signal is there already.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Activation,
    step: &WaitStep,
) -> Result<Option<TargetResult>, StoreError> {
    let signal_type = match &step.signal_type {
        SignalTypeValue::Fixed(signal_type) => signal_type.clone(),
        SignalTypeValue::Computed(template) => match compute(turn, run, active, template)? {
            Ok(signal_type) => signal_type,
            Err(ended) => return Ok(Some(ended)),
        },
    };
    if let Some(target_result) = kept_signals::take_waiting(turn, run, active, &signal_type)? {
        return Ok(Some(target_result));
    }
    let deadline_at_ms = set_deadline(turn, run.at(active), step.timeout_ms);
    let kind = EventKind::WaitingForSignal {
        signal_type: signal_type.clone(),
        deadline_at_ms,
    };
    run.note(active, kind);
    active.state = ActivationState::Signal(SignalWait {
        signal_type,
        deadline_at_ms,
    });
    Ok(None)
}

/// The type that a value gives; the error is what the step ends with.
fn compute(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    template: &Template,
) -> Result<Result<SignalType, TargetResult>, StoreError> {
    let value = match render::text(turn, run, DataContext::of(active.scope), template)? {
        Ok(value) => value,
        Err(refused) => return Ok(Err(refused.ends_step(turn, run, Mapped::SignalType))),
    };
    let not_text = || {
        format!(
            "expected `type` to be a signal type, but it is {}",
            value.as_str()
        )
    };
    let signal_type = as_string(value.as_str())
        .ok_or_else(not_text)
        .and_then(|text| SignalType::new(text).map_err(|invalid| invalid.to_string()))
        .and_then(|signal_type| match signal_type.is_reserved() {
            true => Err(format!(
                "expected a signal type that does not begin with `approval.`, but it is \"{signal_type}\""
            )),
            false => Ok(signal_type),
        });
    Ok(signal_type.map_err(|message| failed(turn, run, BAD_SIGNAL_TYPE, cut(&message))))
}
