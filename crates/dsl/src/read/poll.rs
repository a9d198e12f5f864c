//! The `poll` block (W14, E401).

use super::{
    Bounds, Context, Field, Reported,
    backoff::{self, DelayDefaults, DelayFields},
    field::or_default,
};
use crate::Code;
use flotilla_engine::{definition::PollPolicy, limits};

pub(super) const ATTEMPTS: Bounds = Bounds::new(1, limits::ATTEMPTS_MAX as i64, Code::E401);
const POLL_ATTEMPTS_DEFAULT: u32 = 10;
const POLL_DELAYS: DelayDefaults = DelayDefaults {
    initial_ms: 1_000,
    max_ms: 60_000,
    is_max_raised: false,
};

/// Reads the `poll` block of a step.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<PollPolicy, Reported> {
    let mut fields = field.fields(context)?;
    let initial = fields.take("initialDelayMs", context);
    let attempts = fields.take("maxAttempts", context);
    let delays = DelayFields {
        kind: fields.take("backoff", context),
        initial: fields.take("baseDelayMs", context),
        max: fields.take("maxDelayMs", context),
    };
    let known = fields.finish(context);
    let bounds = Bounds::duration(0, Code::E401);
    let initial_delay = initial
        .as_ref()
        .map(|field| field.whole(bounds, context))
        .transpose();
    let max_attempts = or_default(attempts, POLL_ATTEMPTS_DEFAULT, |field| {
        field.whole(ATTEMPTS, context)
    });
    let backoff = backoff::read(delays, &POLL_DELAYS, context);
    known?;
    let (initial_delay_ms, max_attempts, backoff) =
        (initial_delay?.unwrap_or(0), max_attempts?, backoff?);
    match initial {
        Some(field) if initial_delay_ms > backoff.max_delay_ms => Err(backoff::above_cap(
            &field,
            initial_delay_ms,
            backoff.max_delay_ms,
            context,
        )),
        _ => Ok(PollPolicy {
            initial_delay_ms,
            max_attempts,
            backoff,
        }),
    }
}
