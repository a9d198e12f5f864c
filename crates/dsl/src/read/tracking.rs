//! The `tracking` of steps and executors (W38, W75).

use super::{Context, Field, Reported, duration, field::or_default};
use flotilla_engine::definition::Tracking;

/// Reads a `tracking` block; `default_ms` is the timeout of a block that gives none.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    default_ms: Option<u64>,
    context: &mut Context<'doc>,
) -> Result<Tracking, Reported> {
    let mut fields = field.fields(context)?;
    let mode = fields.take("mode", context);
    let timeout = fields.take("timeout", context);
    let timeout_ms = fields.take("timeout_ms", context);
    let known = fields.finish(context);
    let is_async = or_default(mode, false, |field| {
        field.word(&[("sync", false), ("async", true)], context)
    });
    if let (Some(field), Ok(false)) = (timeout.as_ref().or(timeout_ms.as_ref()), &is_async) {
        let hint = "leave it out, or set `mode: async`";
        field.warn_without_effect("with `mode: sync`", hint, context);
    }
    let timeout_ms = duration::of_wait(timeout.as_ref(), timeout_ms.as_ref(), 1, context);
    known?;
    let (is_async, timeout_ms) = (is_async?, timeout_ms?.or(default_ms));
    Ok(match is_async {
        true => Tracking::Async { timeout_ms },
        false => Tracking::Sync,
    })
}
