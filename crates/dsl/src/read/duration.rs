//! Durations: a text, or whole milliseconds in a key that says so (W79).

use super::{Bounds, Context, Field, Reported};
use crate::{Code, Finding, duration, tree::Kind};
use flotilla_engine::limits::WAIT_MS_MAX;

/// Reads a duration from either of its keys; at least `min_ms`. `None` if neither is there.
pub(super) fn either<'doc>(
    text: Option<&Field<'doc>>,
    ms: Option<&Field<'doc>>,
    min_ms: u32,
    context: &mut Context<'doc>,
) -> Result<Option<u64>, Reported> {
    match (text, ms) {
        (None, None) => Ok(None),
        (Some(text), None) => of_text(text, min_ms, context).map(Some),
        (None, Some(ms)) => of_ms(ms, min_ms, context).map(Some),
        (Some(text), Some(ms)) => {
            let message = format!(
                "expected `{}` or `{}`, but both are given",
                text.key, ms.key
            );
            Err(context.malformed(ms.key_span, message))
        }
    }
}

/// Like [`either`], for how long a step waits at most.
pub(super) fn of_wait<'doc>(
    text: Option<&Field<'doc>>,
    ms: Option<&Field<'doc>>,
    min_ms: u32,
    context: &mut Context<'doc>,
) -> Result<Option<u64>, Reported> {
    let wait_ms = either(text, ms, min_ms, context)?;
    if let (Some(ms), Some(field)) = (wait_ms, text.or(ms)) {
        context.note_wait(ms, field.span());
    }
    Ok(wait_ms)
}

/// Reads a duration where one key takes both forms: a text, or whole milliseconds.
pub(super) fn of_either_kind<'doc>(
    field: &Field<'doc>,
    min_ms: u32,
    context: &mut Context<'doc>,
) -> Result<u64, Reported> {
    match field.node.kind {
        Kind::String(_) => of_text(field, min_ms, context),
        _ => of_ms(field, min_ms, context),
    }
}

/// Reads whole milliseconds.
fn of_ms<'doc>(
    field: &Field<'doc>,
    min_ms: u32,
    context: &mut Context<'doc>,
) -> Result<u64, Reported> {
    let ms_max = i64::try_from(WAIT_MS_MAX).expect("a few thousand days");
    field.whole(Bounds::new(i64::from(min_ms), ms_max, Code::E514), context)
}

/// Reads a text.
fn of_text<'doc>(
    field: &Field<'doc>,
    min_ms: u32,
    context: &mut Context<'doc>,
) -> Result<u64, Reported> {
    let ms = match &field.node.kind {
        Kind::String(text) => duration::parse(text),
        Kind::Number(text) if **text == *"0" => Some(0),
        _ => None,
    };
    let Some(ms) = ms else {
        let hint = "use ISO 8601 without months and years (PT15M, P1DT12H), or a short form (15m, 1h30m, 200ms)";
        let finding = field.mismatch_finding(Code::E514, "a duration");
        return Err(context.error(finding.hint(hint)));
    };
    let days = WAIT_MS_MAX / (24 * 60 * 60 * 1_000);
    let bound = match ms {
        _ if ms > WAIT_MS_MAX => format!("at most {days} days"),
        _ if ms < u64::from(min_ms) => format!("at least {min_ms} ms"),
        _ => return Ok(ms),
    };
    let message = format!("expected {} to be {bound}", field.place);
    Err(context.error(Finding::new(Code::E514, field.span(), message)))
}
