//! A plan (W30–W37).

use super::{Bounds, Context, Field, Fields, Reported, cache, executor, field::or_default};
use crate::{
    Code, Finding,
    tree::{Kind, compact},
};
use flotilla_engine::{
    definition::{
        ErrorClasses, Executor, Fallback, FallbackCondition, Health, Plan, PlanExtensions,
        Selection,
    },
    ids::{ErrorCode, PlanName},
};

const SELECTIONS: [(&str, Selection); 4] = [
    ("static-order", Selection::StaticOrder),
    ("round-robin", Selection::RoundRobin),
    ("random", Selection::Random),
    ("health-weighted", Selection::HealthWeighted),
];
const CONDITIONS: [(&str, FallbackCondition); 2] = [
    ("exhausted", FallbackCondition::Exhausted),
    ("any_error", FallbackCondition::AnyError),
];

const HEALTH_WINDOW_MS_DEFAULT: u64 = 300_000;
const HEALTH_DECAY_MILLIONTHS_DEFAULT: u32 = 900_000;
const HEALTH_SAMPLES_MIN_DEFAULT: u32 = 10;

/// Reads a plan.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    name: Result<PlanName, Reported>,
    context: &mut Context<'doc>,
) -> Result<Plan, Reported> {
    let mut fields = field.fields(context)?;
    let selection = fields.take("selection", context);
    let executors = executors(&mut fields, context);
    let health = fields.take("health", context);
    let cache = fields.take("cache", context);
    let fallback = fields.take("fallback", context);
    let errors = fields.take("errors", context);
    let known = fields.finish(context);

    let selection_span = selection.as_ref().map(Field::span);
    let selection = or_default(selection, Selection::default(), |field| {
        field.word_folded(&SELECTIONS, context)
    });
    let weighted = match (&selection, selection_span, &health) {
        (Ok(Selection::HealthWeighted), Some(span), None) => {
            let message = format!(
                "expected {} to have `health`, since its selection is `health-weighted`",
                field.place
            );
            Err(context.error(
                Finding::new(Code::E405, span, message).hint("`health: {}` uses the defaults"),
            ))
        }
        _ => Ok(()),
    };
    if let (Some(_), Some(index)) = (&fallback, context.names.plan(field.key)) {
        context.names.note_fallback(index);
    }
    let health = health
        .map(|field| health_block(&field, context))
        .transpose();
    let cache = cache.map(|field| cache::read(&field, context)).transpose();
    let fallback = fallback
        .map(|field| fallback_block(&field, context))
        .transpose();
    let errors = errors
        .map(|field| error_classes(&field, context))
        .transpose();
    known.and(weighted)?;
    Ok(Plan {
        name: name?,
        selection: selection?,
        executors: executors?,
        health: health?,
        cache: cache?,
        fallback: fallback?,
        errors: errors?,
        extensions: PlanExtensions::default(),
    })
}

fn executors<'doc>(
    fields: &mut Fields<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<Executor>, Reported> {
    let field = fields.take("executors", context);
    let is_empty = field.as_ref().is_none_or(|field| match &field.node.kind {
        Kind::Null => true,
        Kind::Sequence(items) => items.is_empty(),
        _ => false,
    });
    match field {
        Some(field) if !is_empty => executor::read_all(&field, context),
        _ => {
            let message = format!(
                "expected {} to have at least one executor, but the list is empty",
                fields.place()
            );
            Err(context.error(Finding::new(Code::E104, fields.span, message)))
        }
    }
}

fn health_block<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Health, Reported> {
    let mut fields = field.fields(context)?;
    let window = fields.take("window_ms", context);
    let decay = fields.take("decay", context);
    let samples = fields.take("min_samples", context);
    let known = fields.finish(context);
    let window_ms = or_default(window, HEALTH_WINDOW_MS_DEFAULT, |field| {
        field.whole(Bounds::duration(1, Code::E405), context)
    });
    let decay_millionths = or_default(decay, HEALTH_DECAY_MILLIONTHS_DEFAULT, |field| {
        decay_millionths(&field, context)
    });
    let min_samples = or_default(samples, HEALTH_SAMPLES_MIN_DEFAULT, |field| {
        field.whole(Bounds::count(1, Code::E405), context)
    });
    known?;
    Ok(Health {
        window_ms: window_ms?,
        decay_millionths: decay_millionths?,
        min_samples: min_samples?,
    })
}

/// A decay in (0, 1], in millionths: the engine has no floats.
fn decay_millionths<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<u32, Reported> {
    let Kind::Number(text) = &field.node.kind else {
        return Err(field.mismatch(Code::E100, "a number", context));
    };
    let decay = text
        .parse::<f64>()
        .ok()
        .filter(|decay| (0.0..=1.0).contains(decay));
    let millionths = decay.and_then(|decay| format!("{decay:.6}").replace('.', "").parse().ok());
    millionths
        .filter(|millionths| *millionths > 0)
        .ok_or_else(|| {
            field.mismatch(
                Code::E405,
                "above 0 and at most 1, with at most 6 decimals",
                context,
            )
        })
}

fn fallback_block<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Fallback, Reported> {
    let mut fields = field.fields(context)?;
    let value = fields.require(&["value"], context);
    let condition = fields.take("condition", context);
    let known = fields.finish(context);
    let value = value.and_then(|field| field.json(None, context).map(|node| compact(&node)));
    let condition = or_default(condition, FallbackCondition::default(), |field| {
        field.word(&CONDITIONS, context)
    });
    known?;
    Ok(Fallback {
        value: value?,
        condition: condition?,
    })
}

fn error_classes<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<ErrorClasses, Reported> {
    let mut fields = field.fields(context)?;
    let retryable = fields.take("retryable", context);
    let fatal = fields.take("fatal", context);
    let known = fields.finish(context);
    let retryable = retryable
        .map(|field| field.names(ErrorCode::new, context))
        .transpose();
    let fatal = or_default(fatal, Vec::new(), |field| {
        field.names(ErrorCode::new, context)
    });
    known?;
    Ok(ErrorClasses {
        retryable: retryable?,
        fatal: fatal?,
    })
}
