//! The executors of a plan (W31–W34, W38).

use super::{Bounds, Context, Field, Reported, field::or_default, retry, target, tracking};
use crate::{Code, Finding, quote::quote};
use flotilla_engine::{
    definition::{Breaker, Executor, ExecutorExtensions, RateLimit, Tracking},
    ids::ExecutorName,
    limits::EXECUTORS_MAX,
};
use std::collections::BTreeSet;

const PRIORITY_DEFAULT: i32 = 100;
const FAILURE_THRESHOLD_DEFAULT: u32 = 5;
const COOLDOWN_MS_DEFAULT: u64 = 30_000;
const HALF_OPEN_CALLS_MAX_DEFAULT: u32 = 3;
const TRACKING_TIMEOUT_MS_DEFAULT: u64 = 300_000;

/// Reads a plan's executors, whose names must differ (E106).
pub(super) fn read_all<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<Executor>, Reported> {
    let mut names = BTreeSet::new();
    let items = field.items_at_most(EXECUTORS_MAX, context)?;
    let results: Vec<Result<Executor, Reported>> = items
        .iter()
        .map(|item| read(item, &mut names, context))
        .collect();
    results.into_iter().collect()
}

fn read<'doc>(
    field: &Field<'doc>,
    names: &mut BTreeSet<&'doc str>,
    context: &mut Context<'doc>,
) -> Result<Executor, Reported> {
    let mut fields = field.fields(context)?;
    let name = fields
        .require(&["name"], context)
        .and_then(|field| name(&field, names, context));
    let action = fields
        .require(&["action", "run"], context)
        .and_then(|field| target::read_action(&field, context));
    let priority = fields.take("priority", context);
    let retry = fields.take("retry", context);
    let breaker = fields.take("breaker", context);
    let rate_limit = fields.take("rate_limit", context);
    let tracking = fields.take("tracking", context);
    let known = fields.finish(context);

    let priorities = Bounds::new(i64::from(i32::MIN), i64::from(i32::MAX), Code::E100);
    let priority = or_default(priority, PRIORITY_DEFAULT, |field| {
        field.whole(priorities, context)
    });
    let retry = retry
        .map(|field| retry::of_executor(&field, context))
        .transpose();
    let breaker = breaker
        .map(|field| breaker_block(&field, context))
        .transpose();
    let rate_limit = rate_limit
        .map(|field| rate_limit_block(&field, context))
        .transpose();
    let tracking = or_default(tracking, Tracking::Sync, |field| {
        tracking::read(&field, Some(TRACKING_TIMEOUT_MS_DEFAULT), context)
    });
    known?;
    Ok(Executor {
        name: name?,
        action: action?,
        priority: priority?,
        retry: retry?,
        breaker: breaker?,
        rate_limit: rate_limit?,
        tracking: tracking?,
        extensions: ExecutorExtensions::default(),
    })
}

fn name<'doc>(
    field: &Field<'doc>,
    names: &mut BTreeSet<&'doc str>,
    context: &mut Context<'doc>,
) -> Result<ExecutorName, Reported> {
    let text = field.string(context)?;
    if !names.insert(text) {
        let message = format!("duplicate executor {} in its plan", quote(text));
        return Err(context.error(Finding::new(Code::E106, field.span(), message)));
    }
    field.name(ExecutorName::new, context)
}

fn breaker_block<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Breaker, Reported> {
    let mut fields = field.fields(context)?;
    let threshold = fields.take("failure_threshold", context);
    let cooldown = fields.take("cooldown_ms", context);
    let calls = fields.take("half_open_max_calls", context);
    let known = fields.finish(context);
    let counts = Bounds::count(1, Code::E402);
    let failure_threshold = or_default(threshold, FAILURE_THRESHOLD_DEFAULT, |field| {
        field.whole(counts, context)
    });
    let cooldown_ms = or_default(cooldown, COOLDOWN_MS_DEFAULT, |field| {
        field.whole(Bounds::duration(0, Code::E402), context)
    });
    let half_open_max_calls = or_default(calls, HALF_OPEN_CALLS_MAX_DEFAULT, |field| {
        field.whole(counts, context)
    });
    known?;
    Ok(Breaker {
        failure_threshold: failure_threshold?,
        cooldown_ms: cooldown_ms?,
        half_open_max_calls: half_open_max_calls?,
    })
}

fn rate_limit_block<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<RateLimit, Reported> {
    let mut fields = field.fields(context)?;
    let limits =
        ["max_per_second", "max_per_minute", "max_per_hour"].map(|key| fields.take(key, context));
    let known = fields.finish(context);
    if limits.iter().all(Option::is_none) {
        let message = format!("{} limits nothing", field.place);
        let finding = Finding::new(Code::E403, field.key_span, message);
        context.warn(finding.hint("add `max_per_second`, `max_per_minute` or `max_per_hour`"));
    }
    let [second, minute, hour] = limits.map(|limit| {
        limit
            .map(|field| field.whole(Bounds::count(1, Code::E100), context))
            .transpose()
    });
    known?;
    Ok(RateLimit {
        max_per_second: second?,
        max_per_minute: minute?,
        max_per_hour: hour?,
    })
}
