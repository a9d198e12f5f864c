//! Custom terminals (E501).

use super::{Context, Field, Reported, field::or_default, template};
use crate::{Code, Finding};
use flotilla_engine::{
    definition::{CustomTerminal, TerminalStatus},
    ids::TerminalName,
};

/// Reads a terminal.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    name: Result<TerminalName, Reported>,
    context: &mut Context<'doc>,
) -> Result<CustomTerminal, Reported> {
    let mut fields = field.fields(context)?;
    let status = fields.take("status", context);
    let output = fields.take("output", context);
    let on_error = fields.take("onError", context);
    let compensate = fields.take("compensate", context);
    let known = fields.finish(context);
    let compensates = compensate.map(|field| field.boolean(context)).transpose();
    let runs_handler = or_default(on_error, true, |field| field.boolean(context));
    let statuses = TerminalStatus::ALL.map(|status| (status.name(), status));
    let status = match status {
        Some(status) => status.word_as(&statuses, Code::E501, context),
        None => {
            let message = format!(
                "expected {} to have a `status`, but it is missing",
                field.place
            );
            let finding = Finding::new(Code::E501, field.key_span, message);
            Err(context
                .error(finding.hint("one of `completed`, `failed`, `cancelled`, `timed_out`")))
        }
    };
    let output = output
        .map(|field| template::read(&field, context))
        .transpose();
    known?;
    Ok(CustomTerminal {
        name: name?,
        status: status?,
        output: output?,
        runs_handler: runs_handler?,
        compensates: compensates?,
    })
}
