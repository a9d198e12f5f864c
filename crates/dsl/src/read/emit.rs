//! The `emit` block (W62).

use super::{Context, Field, Reported, template};
use flotilla_engine::{definition::EmitStep, ids::StreamName};

/// Reads the block.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<EmitStep, Reported> {
    let mut fields = field.fields(context)?;
    let stream = fields.require(&["stream"], context);
    let key = fields.take("key", context);
    let payload = fields.require(&["payload"], context);
    let known = fields.finish(context);
    let stream = stream.and_then(|field| {
        let name = field.name(StreamName::new, context)?;
        context.emitted.push((name.clone(), field.span()));
        Ok(name)
    });
    let key = key
        .map(|field| template::value(&field, context))
        .transpose();
    let payload = payload.and_then(|field| template::value(&field, context));
    known?;
    Ok(EmitStep {
        stream: stream?,
        key: key?,
        payload: payload?,
    })
}
