//! The delays of retries and polls, and their growth (W12, W14, E401).

use super::{Bounds, Context, Field, Reported, field::or_default};
use crate::{Code, Finding};
use flotilla_engine::definition::{Backoff, BackoffKind};

/// The spellings of the kinds, including a short one in published files.
const KINDS: [(&str, BackoffKind); 5] = [
    ("constant", BackoffKind::Constant),
    ("linear", BackoffKind::Linear),
    ("exponential", BackoffKind::Exponential),
    ("exponential_jitter", BackoffKind::ExponentialJitter),
    ("exp_jitter", BackoffKind::ExponentialJitter),
];

/// What an exponential delay is multiplied by each time, in hundredths.
pub(super) const COEFFICIENT_PERCENT_DEFAULT: u16 = 200;

/// The fields of a block that define its delays.
pub(super) struct DelayFields<'doc> {
    pub(super) kind: Option<Field<'doc>>,
    pub(super) initial: Option<Field<'doc>>,
    pub(super) max: Option<Field<'doc>>,
}

/// The defaults of the fields that a block omits (W3).
pub(super) struct DelayDefaults {
    pub(super) initial_ms: u64,
    pub(super) max_ms: u64,
    /// Whether the default cap rises to the initial delay if that is larger.
    pub(super) is_max_raised: bool,
}

/// Reads the fields.
pub(super) fn read<'doc>(
    fields: DelayFields<'doc>,
    defaults: &DelayDefaults,
    context: &mut Context<'doc>,
) -> Result<Backoff, Reported> {
    let kind = or_default(fields.kind, BackoffKind::default(), |field| {
        field.word_folded(&KINDS, context)
    });
    let bounds = Bounds::duration(0, Code::E401);
    let initial = fields
        .initial
        .as_ref()
        .map(|field| field.whole(bounds, context))
        .transpose();
    let max = fields
        .max
        .as_ref()
        .map(|field| field.whole(bounds, context))
        .transpose();
    let (kind, initial, max) = (kind?, initial?, max?);
    let initial_delay_ms = initial.unwrap_or(defaults.initial_ms);
    let raised = if defaults.is_max_raised {
        initial_delay_ms
    } else {
        0
    };
    let max_delay_ms = max.unwrap_or(defaults.max_ms.max(raised));
    if let Some(field) = fields
        .initial
        .or(fields.max)
        .filter(|_| initial_delay_ms > max_delay_ms)
    {
        return Err(above_cap(&field, initial_delay_ms, max_delay_ms, context));
    }
    Ok(Backoff {
        kind,
        initial_delay_ms,
        max_delay_ms,
        coefficient_percent: COEFFICIENT_PERCENT_DEFAULT,
    })
}

/// Reports a delay that is above the cap of its block.
pub(super) fn above_cap<'doc>(
    field: &Field<'doc>,
    delay_ms: u64,
    max_delay_ms: u64,
    context: &mut Context<'doc>,
) -> Reported {
    let message = format!(
        "expected the initial delay to be at most the cap of {max_delay_ms} ms, but it is {delay_ms} ms"
    );
    let finding = Finding::new(Code::E401, field.span(), message);
    context.error(
        finding.hint("raise the cap or lower the delay; a value that is not given has its default"),
    )
}
