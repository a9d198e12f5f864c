//! Retry policies and timeouts.

use super::*;

pub(super) fn retry() -> RetryPolicy {
    RetryPolicy {
        max_attempts: 3,
        delays: RetryDelays::Backoff(backoff(BackoffKind::ExponentialJitter)),
        within_ms: Some(60_000),
    }
}

pub(crate) fn cause() -> FailureCause {
    FailureCause {
        code: Some("fraud".to_owned()),
        timeout: Some(StepTimeout::Total),
    }
}

pub(crate) fn timeouts() -> Timeouts {
    Timeouts {
        attempt_ms: Some(1_000),
        total_ms: Some(60_000),
        queue_ms: Some(500),
        heartbeat_ms: None,
    }
}

pub(super) fn step_retry() -> StepRetry {
    StepRetry {
        policy: retry(),
        on: Some(vec![outcome()]),
        non_retryable_errors: vec!["fraud".to_owned()],
        when: Some(expression()),
        keep_state: true,
    }
}

pub(super) fn listed_retry() -> StepRetry {
    StepRetry {
        policy: RetryPolicy {
            delays: RetryDelays::Listed(vec![10, 20]),
            ..retry()
        },
        on: None,
        non_retryable_errors: Vec::new(),
        when: None,
        keep_state: false,
    }
}

pub(super) fn backoff(kind: BackoffKind) -> Backoff {
    Backoff {
        kind,
        initial_delay_ms: 100,
        max_delay_ms: 30_000,
        coefficient_percent: 200,
    }
}
