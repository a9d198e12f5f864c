//! The `waitForSignal` block (W19).

use super::{Bounds, Context, Field, Reported, graph::Outline, transitions};
use crate::{Code, Finding, quote::quote};
use flotilla_engine::{definition::WaitStep, ids::SignalType};

/// Reads the block; expiry is an edge of the graph like any transition.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    outline: &mut Outline<'doc>,
    context: &mut Context<'doc>,
) -> Result<WaitStep, Reported> {
    let mut fields = field.fields(context)?;
    let signal_type = fields
        .require(&["type"], context)
        .and_then(|field| field.name(SignalType::new, context));
    let timeout = fields.take("timeoutMs", context);
    if timeout.is_none() {
        let message = format!(
            "step {} waits without a timeout, possibly forever",
            quote(&outline.name)
        );
        context.warn(Finding::new(Code::E503, field.key_span, message).hint("add `timeoutMs`"));
    }
    let timeout_ms = timeout
        .map(|field| field.whole(Bounds::duration(1, Code::E100), context))
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
