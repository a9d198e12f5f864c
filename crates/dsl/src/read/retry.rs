//! The `retry` blocks of steps and executors (W12, W71, E401).

use super::{
    Bounds, Context, Field, Fields, Reported,
    backoff::{self, DelayDefaults, DelayFields},
    context::Visible,
    duration, expression,
    poll::ATTEMPTS,
};
use crate::tree::Kind;
use crate::{Code, Finding};
use flotilla_engine::{
    definition::{Backoff, BackoffKind, Expression, RetryDelays, RetryPolicy, Setting, StepRetry},
    ids::OutcomeName,
    limits::{NAME_BYTES_MAX, RETRY_DELAYS_MAX, RETRY_NAMES_MAX},
};

const ATTEMPTS_DEFAULT: u32 = 3;
const DELAYS: DelayDefaults = DelayDefaults {
    initial_ms: 1_000,
    max_ms: 30_000,
    is_max_raised: true,
};

/// Reads the `retry` block of an executor.
pub(super) fn of_executor<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<RetryPolicy, Reported> {
    let mut fields = field.fields(context)?;
    let policy = PolicyFields::take(&mut fields, context);
    let known = fields.finish(context);
    let policy = policy.read(context);
    known.and(policy)
}

/// Reads the `retry` of a run step: a block, or `false` for none (W71).
pub(super) fn setting<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Setting<StepRetry>, Reported> {
    match field.node.kind {
        Kind::Bool(false) => Ok(Setting::Disabled),
        _ => of_call(field, context).map(Setting::Own),
    }
}

/// Reads the `retry` of a block step: a block, or `false` for none.
pub(super) fn of_block<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Option<StepRetry>, Reported> {
    if let Kind::Bool(false) = field.node.kind {
        return Ok(None);
    }
    let fields = field.fields(context)?;
    of_step(fields, context).map(Some)
}

/// Reads the `retry` block of a step that calls something.
pub(super) fn of_call<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<StepRetry, Reported> {
    let mut fields = field.fields(context)?;
    let keep_state = fields.take("keep_state", context);
    let keep_state = keep_state.map(|field| field.boolean(context)).transpose();
    let retry = of_step(fields, context);
    Ok(StepRetry {
        keep_state: keep_state?.unwrap_or_default(),
        ..retry?
    })
}

/// Reads the rest of the `retry` block of a step.
fn of_step<'doc>(
    mut fields: Fields<'doc>,
    context: &mut Context<'doc>,
) -> Result<StepRetry, Reported> {
    let policy = PolicyFields::take(&mut fields, context);
    let on = fields.take("on", context);
    let errors = fields.take("non_retryable_errors", context);
    let when = fields.take("when", context);
    let known = fields.finish(context);
    let policy = policy.read(context);
    let on = on.map(|field| outcomes(&field, context)).transpose();
    let errors = errors.map(|field| codes(&field, context)).transpose();
    let when = when.map(|field| condition(&field, context)).transpose();
    known?;
    Ok(StepRetry {
        policy: policy?,
        on: on?,
        non_retryable_errors: errors?.unwrap_or_default(),
        when: when?,
        keep_state: false,
    })
}

/// How a compensation without a `retry` is tried again (W82).
pub(super) fn of_compensation() -> StepRetry {
    StepRetry {
        policy: RetryPolicy {
            max_attempts: ATTEMPTS_DEFAULT,
            delays: RetryDelays::Backoff(Backoff {
                kind: BackoffKind::Exponential,
                initial_delay_ms: DELAYS.initial_ms,
                max_delay_ms: DELAYS.max_ms,
                coefficient_percent: backoff::COEFFICIENT_PERCENT_DEFAULT,
            }),
            within_ms: None,
        },
        on: None,
        non_retryable_errors: Vec::new(),
        when: None,
        keep_state: false,
    }
}

/// Reads the outcomes that are retried: at least one.
fn outcomes<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<OutcomeName>, Reported> {
    let outcomes = field.names_at_most(RETRY_NAMES_MAX, OutcomeName::new, context)?;
    if outcomes.is_empty() {
        let message = format!(
            "expected {} to name an outcome, but it is empty",
            field.place
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(outcomes)
}

/// Reads codes of errors.
fn codes<'doc>(field: &Field<'doc>, context: &mut Context<'doc>) -> Result<Vec<String>, Reported> {
    let items = field.items_at_most(RETRY_NAMES_MAX, context)?;
    let codes: Vec<_> = items.iter().map(|item| code(item, context)).collect();
    codes.into_iter().collect()
}

fn code<'doc>(field: &Field<'doc>, context: &mut Context<'doc>) -> Result<String, Reported> {
    let code = field.string(context)?;
    if code.is_empty() || code.len() > NAME_BYTES_MAX {
        let message = format!(
            "expected {} to have 1 to {NAME_BYTES_MAX} bytes, but it has {}",
            field.place,
            code.len()
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(code.to_owned())
}

fn condition<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Expression, Reported> {
    context.seeing(Visible::Attempt, |context| expression::read(field, context))
}

/// The fields that say how often and when.
struct PolicyFields<'doc> {
    attempts: Option<Field<'doc>>,
    within: Option<Field<'doc>>,
    kind: Option<Field<'doc>>,
    initial: Option<Field<'doc>>,
    max: Option<Field<'doc>>,
    coefficient: Option<Field<'doc>>,
    listed: Option<Field<'doc>>,
}

impl<'doc> PolicyFields<'doc> {
    fn take(fields: &mut Fields<'doc>, context: &mut Context<'doc>) -> Self {
        Self {
            attempts: fields.take("max_attempts", context),
            within: fields.take("within_ms", context),
            kind: fields.take("backoff", context),
            initial: fields.take("initial_delay_ms", context),
            max: fields.take("max_delay_ms", context),
            coefficient: fields.take("backoff_coefficient", context),
            listed: fields.take("delays", context),
        }
    }

    fn read(self, context: &mut Context<'doc>) -> Result<RetryPolicy, Reported> {
        let attempts = self.attempts.as_ref();
        let max_attempts = attempts.map(|field| field.whole(ATTEMPTS, context));
        let max_attempts = max_attempts.transpose();
        let within_ms = self
            .within
            .as_ref()
            .map(|field| field.whole(Bounds::duration(0, Code::E401), context))
            .transpose();
        let delays = self.delays(context);
        let (max_attempts, delays) = (max_attempts?, delays?);
        let attempts_default = match &delays {
            RetryDelays::Backoff(_) => ATTEMPTS_DEFAULT,
            // Each of them is used.
            RetryDelays::Listed(delays) => u32::try_from(delays.len() + 1).expect("a few delays"),
        };
        Ok(RetryPolicy {
            max_attempts: max_attempts.unwrap_or(attempts_default),
            delays,
            within_ms: within_ms?,
        })
    }

    fn delays(self, context: &mut Context<'doc>) -> Result<RetryDelays, Reported> {
        if let Some(listed) = &self.listed {
            let others = [&self.kind, &self.initial, &self.max, &self.coefficient];
            self.refuse(others, "since `delays` lists the delays", context)?;
            return listed_delays(listed, context).map(RetryDelays::Listed);
        }
        if self.has_none() {
            let others = [&self.initial, &self.max, &self.coefficient];
            self.refuse(others, "since `backoff: none` has no delays", context)?;
            return Ok(RetryDelays::Backoff(Backoff {
                kind: BackoffKind::Constant,
                initial_delay_ms: 0,
                max_delay_ms: 0,
                coefficient_percent: backoff::COEFFICIENT_PERCENT_DEFAULT,
            }));
        }
        let coefficient = self.coefficient.as_ref();
        let percent = coefficient
            .map(|field| coefficient_percent(field, context))
            .transpose();
        let fields = DelayFields {
            kind: self.kind,
            initial: self.initial,
            max: self.max,
        };
        let read = backoff::read(fields, &DELAYS, context);
        let (read, percent) = (read?, percent?);
        let is_exponential = match read.kind {
            BackoffKind::Constant | BackoffKind::Linear => false,
            BackoffKind::Exponential | BackoffKind::ExponentialJitter => true,
        };
        if let (Some(field), false) = (coefficient, is_exponential) {
            let hint = "leave it out, or use `backoff: exponential`";
            field.warn_without_effect("with this `backoff`", hint, context);
        }
        Ok(RetryDelays::Backoff(Backoff {
            coefficient_percent: percent.unwrap_or(read.coefficient_percent),
            ..read
        }))
    }

    fn has_none(&self) -> bool {
        let kind = self.kind.as_ref().map(|field| &field.node.kind);
        matches!(kind, Some(Kind::String(word)) if &**word == "none")
    }

    /// Rejects fields that something else makes meaningless.
    fn refuse<const N: usize>(
        &self,
        fields: [&Option<Field<'doc>>; N],
        why: &str,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        match fields.into_iter().flatten().next() {
            None => Ok(()),
            Some(field) => {
                let message = format!("expected no `{}`, {why}", field.key);
                Err(context.error(Finding::new(Code::E401, field.key_span, message)))
            }
        }
    }
}

/// Reads the coefficient as hundredths: the engine has no floats.
fn coefficient_percent<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<u16, Reported> {
    let Kind::Number(text) = &field.node.kind else {
        return Err(field.mismatch(Code::E100, "a number", context));
    };
    let coefficient = text.parse::<f64>().ok();
    let hundredths = coefficient
        .filter(|coefficient| (1.0..=10.0).contains(coefficient))
        .and_then(|coefficient| format!("{coefficient:.2}").replace('.', "").parse().ok());
    hundredths.ok_or_else(|| field.mismatch(Code::E401, "from 1 to 10", context))
}

/// Reads a list of delays: at least one.
fn listed_delays<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<u64>, Reported> {
    let items = field.items_at_most(RETRY_DELAYS_MAX, context)?;
    if items.is_empty() {
        let message = format!("expected {} to have a delay, but it is empty", field.place);
        return Err(context.error(Finding::new(Code::E401, field.span(), message)));
    }
    let delays: Vec<_> = items
        .iter()
        .map(|item| duration::of_either_kind(item, 0, context))
        .collect();
    delays.into_iter().collect()
}
