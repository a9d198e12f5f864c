//! The `wait` block (W59).

use super::{Context, Field, Reported, duration, template};
use crate::{Code, tree::Kind};
use flotilla_engine::definition::TimerStep;
use flotilla_engine::expression::Timestamp;

/// Reads a time, a path or an expression.
fn read_until<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<TimerStep, Reported> {
    if !template::is_computed(field.node) && !is_time(&field.node.kind) {
        let expected =
            "a time in RFC 3339, milliseconds since the Unix epoch, a path or an expression";
        let finding = field.mismatch_finding(Code::E100, expected);
        return Err(
            context.error(match template::hint_of(&field.node.kind, context) {
                Some(hint) => finding.hint(hint),
                None => finding.hint("for example 2026-12-24T18:00:00Z"),
            }),
        );
    }
    template::value(field, context).map(TimerStep::Until)
}

/// Whether the engine reads the literal as a time.
fn is_time(literal: &Kind) -> bool {
    match literal {
        Kind::String(text) => Timestamp::parse(text).is_ok(),
        Kind::Number(text) => text.parse::<i64>().is_ok(),
        _ => false,
    }
}

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
        (None, None, Some(until)) => read_until(&until, context),
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
