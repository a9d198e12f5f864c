//! Renders plan events for callers: the manual's names and ours (W30–W38).

use super::event::Attributes;
use super::event_type::EventType;
use crate::tables::PlanEvent;

/// The type of a plan event (W23).
pub(super) fn event_type(event: &PlanEvent) -> EventType {
    match event {
        PlanEvent::ExecutorStart { .. } => EventType::PlanExecutorStart,
        PlanEvent::ExecutorSuccess { .. } => EventType::PlanExecutorSuccess,
        PlanEvent::ExecutorOutcome { .. } => EventType::PlanExecutorOutcome,
        PlanEvent::ExecutorRetry { .. } => EventType::PlanExecutorRetry,
        PlanEvent::ExecutorExhausted { .. } => EventType::PlanExecutorExhausted,
        PlanEvent::BreakerSkip { .. } => EventType::PlanBreakerSkip,
        PlanEvent::BreakerOpened { .. } => EventType::PlanBreakerOpened,
        PlanEvent::BreakerClosed { .. } => EventType::PlanBreakerClosed,
        PlanEvent::RateLimited { .. } => EventType::PlanRateLimited,
        PlanEvent::CacheHit { .. } => EventType::PlanCacheHit,
        PlanEvent::Fallback { .. } => EventType::PlanFallback,
    }
}

/// The executor; else the key, the outcome or the action run that the event is about.
pub(super) fn detail(event: &PlanEvent) -> String {
    match event {
        PlanEvent::ExecutorStart { executor, .. }
        | PlanEvent::ExecutorSuccess { executor }
        | PlanEvent::ExecutorOutcome { executor, .. }
        | PlanEvent::ExecutorRetry { executor, .. }
        | PlanEvent::ExecutorExhausted { executor, .. }
        | PlanEvent::BreakerSkip { executor, .. }
        | PlanEvent::BreakerOpened { executor, .. }
        | PlanEvent::BreakerClosed { executor }
        | PlanEvent::RateLimited { executor, .. } => executor.to_string(),
        PlanEvent::CacheHit { key } => key.clone(),
        PlanEvent::Fallback { outcome } => outcome.to_string(),
    }
}

/// The further attributes of an event.
pub(super) fn attributes(event: &PlanEvent) -> Attributes {
    let none = Attributes::default();
    match event {
        PlanEvent::ExecutorStart {
            attempt, is_probe, ..
        } => {
            let attempt = none.number("attempt", u64::from(*attempt));
            if *is_probe {
                attempt.raw("probe", "true")
            } else {
                attempt
            }
        }
        PlanEvent::ExecutorOutcome { outcome, .. } => none.text("outcome", outcome.as_str()),
        PlanEvent::ExecutorRetry {
            attempt, due_ms, ..
        } => none
            .number("attempt", u64::from(*attempt))
            .number("due_at_ms", *due_ms),
        PlanEvent::ExecutorExhausted { attempts, code, .. } => none
            .number("attempts", u64::from(*attempts))
            .text("code", code),
        PlanEvent::BreakerSkip { until_ms, .. } => match until_ms {
            Some(until_ms) => none.number("half_open_at_ms", *until_ms),
            None => none,
        },
        PlanEvent::BreakerOpened { until_ms, .. } => none.number("half_open_at_ms", *until_ms),
        PlanEvent::RateLimited { until_ms, .. } => none.number("available_at_ms", *until_ms),
        PlanEvent::ExecutorSuccess { .. }
        | PlanEvent::BreakerClosed { .. }
        | PlanEvent::CacheHit { .. }
        | PlanEvent::Fallback { .. } => none,
    }
}
