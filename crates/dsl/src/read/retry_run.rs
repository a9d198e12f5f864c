//! How a run that fails is retried as a whole: `retryRun` (W77).

use super::{Bounds, Context, Field, Reported, duration, field::or_default};
use crate::Code;
use flotilla_engine::definition::RunRetry;
use flotilla_engine::limits::{RUN_ATTEMPTS_DEFAULT, RUN_ATTEMPTS_MAX};

/// The bounds of the number of attempts.
const ATTEMPTS: Bounds = Bounds::new(1, RUN_ATTEMPTS_MAX as i64, Code::E401);

/// Reads a `retryRun`.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<RunRetry, Reported> {
    let mut fields = field.fields(context)?;
    let max_attempts = fields.take("max_attempts", context);
    let initial = fields.take("initial_delay", context);
    let initial_ms = fields.take("initial_delay_ms", context);
    let max = fields.take("max_delay", context);
    let max_ms = fields.take("max_delay_ms", context);
    let on_failure = fields.take("on_failure", context);
    let known = fields.finish(context);
    let max_attempts = or_default(max_attempts, RUN_ATTEMPTS_DEFAULT, |field| {
        field.whole(ATTEMPTS, context)
    });
    let initial_delay_ms = duration::either(initial.as_ref(), initial_ms.as_ref(), 0, context);
    let max_delay_ms = duration::either(max.as_ref(), max_ms.as_ref(), 1, context);
    let on_failure = or_default(on_failure, false, |field| field.boolean(context));
    known?;
    Ok(RunRetry {
        max_attempts: max_attempts?,
        initial_delay_ms: initial_delay_ms?.unwrap_or_default(),
        max_delay_ms: max_delay_ms?,
        on_failure: on_failure?,
    })
}
