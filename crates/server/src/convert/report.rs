//! Converts the visits of a report to messages.

use super::{json, run};
use flotilla_api::v1;
use flotilla_engine::view::{ReportedAttempt, ReportedStep, UsageView};

/// Converts a visit.
pub(crate) fn step(step: ReportedStep) -> v1::ReportedStep {
    v1::ReportedStep {
        scope: step.scope,
        step: step.step.to_string(),
        visit: step.visit,
        kind: step.kind.to_owned(),
        phase: run::phase(step.phase).into(),
        outcome: step.outcome.map(|outcome| outcome.to_string()),
        input: step.input.as_ref().map(json),
        output: step.output.as_ref().map(json),
        started_at_ms: step.started_at_ms,
        ended_at_ms: step.ended_at_ms,
        attempts: step.attempts.into_iter().map(attempt).collect(),
        attempts_count: step.attempts_count,
        active: step.is_active,
        redacted: false,
    }
}

fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Converts what tasks have used.
pub(crate) fn usage(usage: &UsageView) -> v1::RunUsage {
    let steps = usage.steps.iter();
    v1::RunUsage {
        own: json(&usage.own),
        below: json(&usage.below),
        steps: steps
            .map(|(step, sums)| (step.to_string(), json(sums)))
            .collect(),
    }
}

fn attempt(attempt: ReportedAttempt) -> v1::ReportedAttempt {
    let (code, message) = match attempt.error {
        Some(error) => (given(error.code), given(error.message)),
        None => (None, None),
    };
    v1::ReportedAttempt {
        number: attempt.number,
        started_at_ms: attempt.started_at_ms,
        ended_at_ms: attempt.ended_at_ms,
        outcome: attempt.outcome.map(|outcome| outcome.to_string()),
        code,
        message,
        worker: attempt.worker.map(|worker| worker.to_string()),
        executor: attempt.executor,
        child_run_id: attempt.child.map(|child| child.to_string()),
    }
}
