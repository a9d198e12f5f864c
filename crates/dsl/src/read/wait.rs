//! The `waitForSignal` block (W19).

use super::{Bounds, Context, Field, Reported, graph::Outline, template, transitions};
use crate::{Code, Finding, Span, quote::quote};
use flotilla_engine::definition::{SignalTypeValue, WaitStep};
use flotilla_engine::ids::SignalType;

/// Reads the block; expiry is an edge of the graph like any transition.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    outline: &mut Outline<'doc>,
    context: &mut Context<'doc>,
) -> Result<WaitStep, Reported> {
    let mut fields = field.fields(context)?;
    let signal_type = fields
        .require(&["type"], context)
        .and_then(|field| signal_type(&field, context));
    let timeout = fields.take("timeoutMs", context);
    if timeout.is_none() {
        lint_no_timeout(field.key_span, "timeoutMs", outline, context);
    }
    let timeout_ms = timeout
        .map(|field| {
            let ms = field.whole(Bounds::duration(1, Code::E100), context)?;
            context.note_wait(ms, field.span());
            Ok(ms)
        })
        .transpose();
    let on_timeout = fields.take("onTimeout", context);
    let on_timeout = on_timeout
        .map(|field| transitions::target(&field, outline, context))
        .transpose();
    fields.finish(context)?;
    Ok(WaitStep {
        signal_type: signal_type?,
        timeout_ms: timeout_ms?,
        on_timeout: on_timeout?,
    })
}

/// E503 for a step without a timeout, which is given with `key`.
pub(super) fn lint_no_timeout<'doc>(
    span: Span,
    key: &str,
    outline: &Outline<'doc>,
    context: &mut Context<'doc>,
) {
    let name = quote(&outline.name);
    let message = format!("step {name} waits without a timeout, possibly forever");
    context.warn(Finding::new(Code::E503, span, message).hint(format!("add `{key}`")));
}

/// Reads a type: a name, or a value that gives one when the step is entered (W61a).
fn signal_type<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<SignalTypeValue, Reported> {
    if template::is_computed(field.node) {
        return template::value(field, context).map(SignalTypeValue::Computed);
    }
    let signal_type = field.name(SignalType::new, context)?;
    if signal_type.is_reserved() {
        let message = format!(
            "expected {} to be a type that does not begin with `approval.`, which is reserved",
            field.place
        );
        let finding = Finding::new(Code::E100, field.span(), message);
        return Err(context.error(finding.hint("use an `approval` step, or another type")));
    }
    Ok(SignalTypeValue::Fixed(signal_type))
}
