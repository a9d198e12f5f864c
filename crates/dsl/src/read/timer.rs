//! The `wait` block (W59).

use super::{Context, Field, Reported, duration, template};
use flotilla_engine::definition::TimerStep;

/// Reads the block: exactly one of `duration`, `duration_ms` and `until`.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<TimerStep, Reported> {
    let mut fields = field.fields(context)?;
    let text = fields.take("duration", context);
    let ms = fields.take_any(&["duration_ms", "durationMs"], context);
    let until = fields.take("until", context);
    let known = fields.finish(context);
    let step = match (text, ms, until) {
        (text @ Some(_), ms @ None, None) | (text @ None, ms @ Some(_), None) => {
            let ms = duration::of_wait(text.as_ref(), ms.as_ref(), 0, context);
            ms.map(|ms| TimerStep::Duration {
                ms: ms.expect("one of the keys is there"),
            })
        }
        (None, None, Some(until)) => template::value(&until, context).map(TimerStep::Until),
        (text, ms, until) => {
            let count = [text, ms, until].into_iter().flatten().count();
            let message = format!(
                "expected {} to have one of `duration`, `duration_ms` and `until`, but it has {}",
                field.place,
                if count == 0 { "no such key" } else { "several" }
            );
            Err(context.malformed(field.span(), message))
        }
    };
    known?;
    step
}
