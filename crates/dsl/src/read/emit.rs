//! The `emit` block (W62).

use super::{Context, Field, Reported, template};
use crate::{Code, tree::Kind};
use flotilla_engine::definition::{EmitStep, Part, Template};
use flotilla_engine::ids::{PartitionKey, StreamName};

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
    let key = key.map(|field| read_key(&field, context)).transpose();
    let payload = payload.and_then(|field| template::value(&field, context));
    known?;
    Ok(EmitStep {
        stream: stream?,
        key: key?,
        payload: payload?,
    })
}

/// Reads a key; one that is always the same must be one that records can have.
fn read_key<'doc>(field: &Field<'doc>, context: &mut Context<'doc>) -> Result<Template, Reported> {
    let template = template::value(field, context)?;
    if let [Part::Literal(_)] = &template.parts[..] {
        match &field.node.kind {
            Kind::Null => {}
            Kind::String(text) => {
                let key = PartitionKey::new(&**text);
                key.map_err(|error| context.malformed(field.span(), error.to_string()))?;
            }
            _ => return Err(field.mismatch(Code::E100, "a string", context)),
        }
    }
    Ok(template)
}
