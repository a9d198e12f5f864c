//! The `switch` block (W60).

use super::{Context, Field, Reported, expression, graph::Outline, transitions};
use crate::{Code, Finding, quote::quote};
use flotilla_engine::definition::{Arm, SwitchStep, Target};
use flotilla_engine::ids::OutcomeName;

/// A switch whose fields are still to be read.
pub(super) struct SwitchFields<'f, 'doc> {
    pub(super) arms: &'f Field<'doc>,
    pub(super) default: Option<&'f Field<'doc>>,
}

/// Reads the arms and the default; each is an edge of the graph like any transition.
pub(super) fn read<'doc>(
    fields: &SwitchFields<'_, 'doc>,
    outline: &mut Outline<'doc>,
    context: &mut Context<'doc>,
) -> Result<SwitchStep, Reported> {
    let items = fields.arms.items(context);
    outline.is_complete &= items.is_ok();
    let mut arms = Vec::new();
    for item in items? {
        arms.push(arm(&item, outline, context));
    }
    if arms.is_empty() {
        let message = format!(
            "expected {} to have an arm, but it is empty",
            fields.arms.place
        );
        let hint = "such as `- {when: \"input.amount > 1000\", goto: review}`";
        let finding = Finding::new(Code::E100, fields.arms.span(), message);
        return Err(context.error(finding.hint(hint)));
    }
    let default = fields
        .default
        .map(|field| transitions::target(field, outline, context));
    let arms: Vec<Arm> = arms.into_iter().collect::<Result<_, _>>()?;
    Ok(SwitchStep {
        arms,
        default: default.transpose()?,
    })
}

fn arm<'doc>(
    item: &Field<'doc>,
    outline: &mut Outline<'doc>,
    context: &mut Context<'doc>,
) -> Result<Arm, Reported> {
    let mut fields = item.fields(context)?;
    let when = fields
        .require(&["when"], context)
        .and_then(|field| expression::read(&field, context));
    let target = fields
        .require(&["goto", "next"], context)
        .and_then(|field| arm_target(&field, outline, context));
    outline.is_complete &= target.is_ok();
    fields.finish(context)?;
    Ok(Arm {
        when: when?,
        target: target?,
    })
}

/// Where an arm leads. The name is the outcome of the switch.
fn arm_target<'doc>(
    field: &Field<'doc>,
    outline: &mut Outline<'doc>,
    context: &mut Context<'doc>,
) -> Result<Target, Reported> {
    let target = transitions::target(field, outline, context)?;
    let name = field.string(context)?;
    if let Err(error) = OutcomeName::new(name) {
        let message = format!(
            "expected the target of `goto` to have a name that can be an outcome, but {} cannot: {error}",
            quote(name)
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(target)
}
