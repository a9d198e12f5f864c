//! Calls beside that of a step's target: its `fallback` (W72, E519).

use super::{
    Context, Field, Reported, context::Visible, retry, target, template, timeouts::TimeoutFields,
};
use crate::{Code, Finding};
use flotilla_engine::definition::{Call, Setting};

/// Reads the `fallback` of a step.
pub(super) fn fallback<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Call, Reported> {
    let mut fields = field.fields(context)?;
    let run = fields.require(&["run"], context);
    let input = fields.take_any(&["inputMapping", "input"], context);
    let retry = fields.take("retry", context);
    let timeouts = TimeoutFields::take(&mut fields, context);
    let is_nested = fields.has("fallback");
    let known = if is_nested {
        let message = format!(
            "expected {} to have no `fallback`, since it is one",
            field.place
        );
        Err(context.error(Finding::new(Code::E519, field.key_span, message)))
    } else {
        fields.finish(context)
    };
    let target = run.and_then(|run| target::read(&run, context));
    let input = input
        .map(|field| context.seeing(Visible::Error, |context| template::read(&field, context)))
        .transpose();
    let retry = retry
        .map(|field| retry::setting(&field, context))
        .transpose();
    let timeouts = timeouts.of_call(target.as_ref().ok(), context);
    known?;
    Ok(Call {
        target: target?,
        input: input?,
        retry: retry?.unwrap_or(Setting::Disabled),
        timeouts: timeouts?.map_or(Setting::Disabled, Setting::Own),
    })
}
