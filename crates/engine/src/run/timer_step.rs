//! Steps that wait for a time (W59).

use super::failure::failed;
use super::outcome::name;
use super::render::{self, DataContext, Mapped};
use super::step_timer::wake_timer;
use crate::definition::{Template, TimerStep};
use crate::expression::Timestamp;
use crate::json::{self, Json};
use crate::limits::WAIT_MS_MAX;
use crate::message::cut;
use crate::store::StoreError;
use crate::tables::{Activation, ActivationState, EventKind, TargetResult};
use crate::turn::{LoadedRun, Turn};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The code of a time that cannot be waited for.
const BAD_TIME: &str = "bad_time";

/// Begins to wait; returns what the step ends with if there is nothing to wait for.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Activation,
    step: &TimerStep,
) -> Result<Option<TargetResult>, StoreError> {
    let due_ms = match step {
        TimerStep::Duration { ms } => Ok(turn.now_ms().saturating_add(*ms)),
        TimerStep::Until(template) => until(turn, run, active, template)?,
    };
    let due_ms = match due_ms {
        Ok(due_ms) => due_ms,
        Err(ended) => return Ok(Some(ended)),
    };
    if due_ms <= turn.now_ms() {
        return Ok(Some(ended(turn, run, active)));
    }
    turn.set_timer(wake_timer(run.at(active), due_ms));
    run.note(active, EventKind::WaitStarted { until_ms: due_ms });
    active.state = ActivationState::Timer { due_ms };
    Ok(None)
}

/// What a step ends with that has waited until now.
pub(super) fn ended(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> TargetResult {
    let waited_ms = turn.now_ms().saturating_sub(active.started_at_ms);
    let output = Json::from_checked(format!("{{\"waited_ms\":{waited_ms}}}"));
    TargetResult {
        output: Some(run.store_payload(turn, output)),
        ..TargetResult::of_engine(name::of(name::SUCCESS))
    }
}

/// The time that a value names, in milliseconds; the error is what the step ends with.
fn until(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    template: &Template,
) -> Result<Result<u64, TargetResult>, StoreError> {
    let text = match render::text(turn, run, DataContext::of(active.scope), template)? {
        Ok(text) => text,
        Err(refused) => {
            let (code, message) = (refused.code(Mapped::Time), refused.message(Mapped::Time));
            let message = cut(&format!("until: {message}"));
            return Ok(Err(failed(turn, run, code, message)));
        }
    };
    let latest_ms = turn.now_ms().saturating_add(WAIT_MS_MAX);
    Ok(match time_ms(&text) {
        Some(due_ms) if due_ms <= latest_ms => Ok(due_ms),
        Some(_) => {
            let (days, text) = (WAIT_MS_MAX / DAY_MS, text.as_str());
            let message =
                format!("expected `until` to be at most {days} days ahead, but it is {text}");
            Err(failed(turn, run, BAD_TIME, cut(&message)))
        }
        None => {
            let text = text.as_str();
            let message = format!(
                "expected `until` to be a time in RFC 3339 or whole milliseconds since the Unix epoch, but it is {text}"
            );
            Err(failed(turn, run, BAD_TIME, cut(&message)))
        }
    })
}

/// A time in milliseconds since the Unix epoch; 0 for an earlier one.
fn time_ms(value: &Json) -> Option<u64> {
    let ms = match json::as_string(value.as_str()) {
        Some(text) => Timestamp::parse(&text).ok()?.to_millis(),
        None => value.as_str().parse().ok()?,
    };
    Some(u64::try_from(ms).unwrap_or(0))
}
