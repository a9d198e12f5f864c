//! The `wait` block (W59).

use super::{Bounds, Context, Field, Reported, template};
use crate::{Code, Finding, duration, tree::Kind};
use flotilla_engine::{definition::TimerStep, limits::WAIT_MS_MAX};

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
        (Some(text), None, None) => duration_ms(&text, context),
        (None, Some(ms), None) => {
            let ms_max = i64::try_from(WAIT_MS_MAX).expect("a few thousand days");
            let ms = ms.whole(Bounds::new(0, ms_max, Code::E514), context);
            ms.map(|ms| TimerStep::Duration { ms })
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

fn duration_ms<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<TimerStep, Reported> {
    let ms = match &field.node.kind {
        Kind::String(text) => duration::parse(text),
        _ => None,
    };
    let Some(ms) = ms else {
        let hint = "use ISO 8601 without months and years (PT15M, P1DT12H), or a short form (15m, 1h30m, 200ms)";
        let finding = field.mismatch_finding(Code::E514, "a duration");
        return Err(context.error(finding.hint(hint)));
    };
    if ms > WAIT_MS_MAX {
        let days = WAIT_MS_MAX / (24 * 60 * 60 * 1_000);
        let message = format!("expected {} to be at most {days} days", field.place);
        return Err(context.error(Finding::new(Code::E514, field.span(), message)));
    }
    Ok(TimerStep::Duration { ms })
}
