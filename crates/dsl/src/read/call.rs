//! Calls beside that of a step's target: its `fallback` (W72), its `compensate` (W82) and its `onCancel` (W81, E519).

use super::{
    Context, Field, Fields, Reported, context::Visible, field::or_default, retry, target, template,
    timeouts::TimeoutFields,
};
use crate::{Code, Finding};
use flotilla_engine::definition::{Call, Compensation, Setting};

/// A `fallback`, with its own compensation.
pub(super) struct Fallback {
    pub(super) call: Call,
    pub(super) compensation: Option<Compensation>,
}

/// Reads the `fallback` of a step.
pub(super) fn fallback<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Fallback, Reported> {
    let mut fields = field.fields(context)?;
    let compensate = fields.take("compensate", context);
    let kind = Kind {
        visible: Visible::Error,
        refused: &["fallback", "onCancel"],
        patches_state: true,
    };
    let call = call(field, fields, kind, context);
    let compensation = compensate
        .map(|field| compensation(&field, context))
        .transpose();
    let call = call?;
    Ok(Fallback {
        call: Call {
            retry: match call.retry {
                Setting::Default => Setting::Disabled,
                own => own,
            },
            ..call
        },
        compensation: compensation?,
    })
}

/// Reads the `compensate` of a step or of a fallback.
pub(super) fn compensation<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Compensation, Reported> {
    if context.names.is_of_handler(context.block()) {
        let hint = "leave it out: compensations are executed before handlers";
        field.warn_without_effect("in a handler", hint, context);
    }
    let mut fields = field.fields(context)?;
    let on = fields.take("on", context);
    let kind = Kind {
        visible: Visible::Output,
        refused: &["fallback", "compensate", "onCancel"],
        patches_state: false,
    };
    let call = call(field, fields, kind, context);
    let of_attempted = or_default(on, false, |field| {
        field.word(&[("completed", false), ("attempted", true)], context)
    });
    let call = call?;
    Ok(Compensation {
        call: Call {
            retry: match call.retry {
                Setting::Default => Setting::Own(retry::of_compensation()),
                own => own,
            },
            ..call
        },
        of_attempted: of_attempted?,
    })
}

/// Reads the `onCancel` of a step.
pub(super) fn on_cancel<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Call, Reported> {
    let fields = field.fields(context)?;
    let kind = Kind {
        visible: Visible::Run,
        refused: &["fallback", "compensate", "onCancel"],
        patches_state: false,
    };
    let call = call(field, fields, kind, context)?;
    Ok(Call {
        retry: match call.retry {
            Setting::Default => Setting::Disabled,
            own => own,
        },
        ..call
    })
}

/// A kind of call.
struct Kind {
    /// What its mapping sees.
    visible: Visible,
    /// The keys of steps that it cannot have (E519).
    refused: &'static [&'static str],
    /// Whether it can patch the state of the run (W66).
    patches_state: bool,
}

/// Reads what fallbacks and compensations have in common.
fn call<'doc>(
    field: &Field<'doc>,
    mut fields: Fields<'doc>,
    kind: Kind,
    context: &mut Context<'doc>,
) -> Result<Call, Reported> {
    let run = fields.require(&["run"], context);
    let input = fields.take_any(&["inputMapping", "input"], context);
    let retry = fields.take("retry", context);
    let timeouts = TimeoutFields::take(&mut fields, context);
    let mut refused = kind.refused.iter();
    let known = match refused.find(|key| fields.has(key)) {
        Some(key) => {
            let message = format!("expected {} to have no `{key}`", field.place);
            let finding = Finding::new(Code::E519, field.key_span, message);
            let hint = "a fallback, a compensation or a handler of a step is a single call";
            Err(context.error(finding.hint(hint)))
        }
        None => fields.finish(context),
    };
    let target = run.and_then(|run| target::read(&run, context));
    let input = input
        .map(|field| context.seeing(kind.visible, |context| template::read(&field, context)))
        .transpose();
    let retry = retry
        .map(|field| match kind.patches_state {
            true => retry::setting(&field, context),
            false => Ok(retry::of_block(&field, context)?.map_or(Setting::Disabled, Setting::Own)),
        })
        .transpose();
    let timeouts = timeouts.of_call(target.as_ref().ok(), context);
    known?;
    Ok(Call {
        target: target?,
        input: input?,
        retry: retry?.unwrap_or_default(),
        timeouts: timeouts?.map_or(Setting::Disabled, Setting::Own),
    })
}
