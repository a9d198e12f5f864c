//! The `output` of a step (W67).

use super::{Context, Field, Reported, context::Visible, metadata, template};
use crate::tree::Kind;
use flotilla_engine::definition::{StepOutput, Template};

/// Reads the output of a workflow: a mapping, which cannot be confused with the `output` of a step.
pub(super) fn of_run<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    if let Kind::Mapping(entries) = &field.node.kind
        && !entries.is_empty()
        && entries
            .iter()
            .all(|entry| ["extract", "schema"].contains(&&*entry.key))
    {
        let message = format!(
            "expected {} to be a mapping of the run's output, but it has only the keys of a step's `output`",
            field.place
        );
        return Err(context.malformed(field.span(), message));
    }
    template::read(field, context)
}

/// Reads the block.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<StepOutput, Reported> {
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
    Ok(StepOutput {
        extract: extract.transpose()?,
        schema: schema.transpose()?,
    })
}
