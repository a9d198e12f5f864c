//! Converts plans to messages.

use flotilla_api::v1;
use flotilla_engine::definition::{RateWindow, Selection};
use flotilla_engine::ids::WorkflowName;
use flotilla_engine::view::{BreakerStatus, ExecutorView, PlanView};

/// Converts a plan's state.
pub(crate) fn message(workflow: &WorkflowName, view: PlanView) -> v1::PlanStatus {
    v1::PlanStatus {
        workflow: workflow.to_string(),
        plan: view.name.to_string(),
        selection: selection(view.selection).to_owned(),
        executors: view.executors.into_iter().map(executor).collect(),
        cached_result_count: view.cache.map_or(0, |cache| cache.results_count),
    }
}

/// The selection's name in definitions.
fn selection(selection: Selection) -> &'static str {
    match selection {
        Selection::StaticOrder => "static-order",
        Selection::RoundRobin => "round-robin",
        Selection::Random => "random",
        Selection::HealthWeighted => "health-weighted",
    }
}

fn executor(view: ExecutorView) -> v1::ExecutorStatus {
    let remaining = |window: RateWindow| {
        let rate = view.rates.iter().find(|rate| rate.window == window);
        rate.map(|rate| rate.calls_remaining)
    };
    let mut message = v1::ExecutorStatus {
        health_millionths: view.health.map(|health| health.score),
        sample_count: view.health.map_or(0, |health| health.samples_count),
        remaining_per_second: remaining(RateWindow::Second),
        remaining_per_minute: remaining(RateWindow::Minute),
        remaining_per_hour: remaining(RateWindow::Hour),
        name: view.name.to_string(),
        action: view.action.to_string(),
        priority: view.priority,
        ..v1::ExecutorStatus::default()
    };
    if let Some(breaker) = view.breaker {
        message.set_breaker(match breaker.status {
            BreakerStatus::Closed => v1::BreakerState::Closed,
            BreakerStatus::Open => v1::BreakerState::Open,
            BreakerStatus::HalfOpen => v1::BreakerState::HalfOpen,
        });
        message.consecutive_failure_count = breaker.failures_count;
        message.breaker_half_open_at_ms = breaker.open_until_ms;
        message.open_probe_count = breaker.open_probe_count;
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::{ActionName, ExecutorName, PlanName};
    use flotilla_engine::view::{BreakerView, RateView};

    #[test]
    fn what_the_definition_does_not_set_is_absent() {
        let bare = ExecutorView {
            name: ExecutorName::new("primary").unwrap(),
            action: ActionName::new("charge").unwrap(),
            priority: -5,
            health: None,
            breaker: None,
            rates: vec![RateView {
                window: RateWindow::Minute,
                calls_max: 10,
                calls_remaining: 0,
            }],
        };
        let guarded = ExecutorView {
            breaker: Some(BreakerView {
                status: BreakerStatus::Open,
                failures_count: 0,
                failure_threshold: 5,
                open_until_ms: Some(9),
                open_probe_count: 0,
                probes_max: 1,
            }),
            ..bare.clone()
        };
        let view = PlanView {
            name: PlanName::new("pay").unwrap(),
            selection: Selection::HealthWeighted,
            executors: vec![bare, guarded],
            cache: None,
        };
        let status = message(&WorkflowName::new("order").unwrap(), view);
        assert_eq!(status.selection, "health-weighted");
        let [bare, guarded] = &status.executors[..] else {
            panic!("expected two executors, but they are {status:?}");
        };
        assert_eq!(bare.breaker(), v1::BreakerState::Unspecified);
        assert_eq!((bare.priority, bare.health_millionths), (-5, None));
        let rates = (bare.remaining_per_second, bare.remaining_per_minute);
        assert_eq!(rates, (None, Some(0)));
        assert_eq!(guarded.breaker(), v1::BreakerState::Open);
        assert_eq!(guarded.breaker_half_open_at_ms, Some(9));
    }
}
