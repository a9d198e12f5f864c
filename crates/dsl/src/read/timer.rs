//! The `wait` block (W59).

use super::{Context, Field, Reported, duration, path, template};
use crate::{Code, Finding, quote::quote, tree::Kind};
use flotilla_engine::definition::TimerStep;
use flotilla_engine::expression::Timestamp;

/// Reads a time, a path or an expression.
fn read_until<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<TimerStep, Reported> {
    if let Kind::String(text) = &field.node.kind
        && !template::is_computed(field.node)
        && Timestamp::parse(text).is_err()
    {
        let message = format!(
            "expected {} to be a time in RFC 3339, milliseconds since the Unix epoch, a path or an expression, but it is {}",
            field.place,
            quote(text)
        );
        let finding = Finding::new(Code::E100, field.span(), message);
        return Err(context.error(match path::meant_by(text, context) {
            Some(path) => finding.hint(template::path_hint(&path)),
            None => finding.hint("for example 2026-12-24T18:00:00Z"),
        }));
    }
    template::value(field, context).map(TimerStep::Until)
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
