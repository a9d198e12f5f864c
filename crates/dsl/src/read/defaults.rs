//! The `defaults` of a definition: settings of run steps that have none (W71).

use super::{Context, Field, Reported, retry, timeouts};
use flotilla_engine::definition::StepDefaults;

/// Reads the block.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<StepDefaults, Reported> {
    let mut fields = field.fields(context)?;
    let retry = fields.take("retry", context);
    let timeouts = fields.take("timeouts", context);
    let known = fields.finish(context);
    let retry = retry
        .map(|field| retry::of_call(&field, context))
        .transpose();
    let timeouts = timeouts
        .map(|field| timeouts::read(&field, None, context))
        .transpose();
    known?;
    Ok(StepDefaults {
        retry: retry?,
        timeouts: timeouts?,
    })
}
