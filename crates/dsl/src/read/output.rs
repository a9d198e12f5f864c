//! The `output` of a step and of the workflow (W67).

use super::{Context, Field, Reported, context::Visible, metadata, template};
use crate::tree::Kind;
use flotilla_engine::definition::OutputRules;

/// Reads the output of a workflow: a mapping, or, if it has no other keys, `extract` and `schema`.
pub(super) fn of_run<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<OutputRules, Reported> {
    if let Kind::Mapping(entries) = &field.node.kind
        && !entries.is_empty()
        && entries
            .iter()
            .all(|entry| ["extract", "schema"].contains(&&*entry.key))
    {
        return read(field, context);
    }
    Ok(OutputRules {
        extract: Some(template::read(field, context)?),
        schema: None,
    })
}

/// Reads the block.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<OutputRules, Reported> {
    let mut fields = field.fields(context)?;
    let extract = fields.take("extract", context);
    let schema = fields.take("schema", context);
    let known = fields.finish(context);
    if extract.is_none() && schema.is_none() && known.is_ok() {
        let message = format!("expected {} to have `extract` or `schema`", field.place);
        return Err(context.malformed(field.span(), message));
    }
    let extract = extract
        .map(|field| context.seeing(Visible::Result, |context| template::read(&field, context)));
    let schema = schema.map(|field| metadata::json_schema(&field, context));
    known?;
    Ok(OutputRules {
        extract: extract.transpose()?,
        schema: schema.transpose()?,
    })
}
