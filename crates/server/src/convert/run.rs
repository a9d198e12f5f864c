//! Converts runs to messages.

use super::{json, scope};
use bytes::Bytes;
use flotilla_api::v1;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::ids::AttributeName;
use flotilla_engine::json::quote;
use flotilla_engine::view::{CurrentStep, RunRow, RunSummary, RunView, StepView, WaitingFor};
use flotilla_engine::{AttributeValue, CompensationProgress, Phase, RunStatus};
use std::collections::BTreeMap;

/// Converts a run.
pub(crate) fn message(view: RunView) -> v1::Run {
    let steps = steps(&view);
    let waiting_for = view.waiting_for();
    let RunRow {
        run_id,
        workflow,
        version,
        revision,
        status: run_status,
        terminal,
        triggered_by,
        started_at_ms,
        completed_at_ms,
    } = view.row;
    v1::Run {
        run_id: run_id.to_string(),
        workflow: workflow.to_string(),
        version: version.to_string(),
        revision,
        status: status(run_status).into(),
        terminal,
        detail: view.detail,
        error: view.error.as_ref().map(json),
        scopes: view.scopes.map(scope::message),
        current_steps: view.current_steps.iter().map(current_step).collect(),
        current_step_count: u32::try_from(view.current_steps_count).unwrap_or(u32::MAX),
        input: json(&view.input),
        metadata: view.metadata.as_ref().map(json),
        output: view.output.as_ref().map(json),
        state: view.state.as_ref().map(json),
        steps,
        search_attributes: attributes(&view.search_attributes),
        parent_run_id: view.parent.map(|parent| parent.to_string()),
        started_at_ms,
        completed_at_ms,
        history_event_count: view.events_count,
        triggered_by: triggered_by.to_owned(),
        idempotency_key: view.idempotency_key.map(|key| key.to_string()),
        starts_at_ms: view.starts_at_ms,
        began_at_ms: view.began_at_ms,
        signature: view.signature,
        target: view.target,
        locks: view.locks,
        retried_from: view.retried_from.map(|run_id| run_id.to_string()),
        retried_from_step: view.retried_from_step.map(|step| step.to_string()),
        waiting_for: waiting_for
            .map_or(v1::WaitingFor::Unspecified, waiting)
            .into(),
        phase: phase(view.phase).into(),
        compensation: compensation(view.compensation).into(),
        run_attempt: view.attempts.attempt,
        previous_attempt: view.attempts.previous.map(|id| id.to_string()),
        next_attempt: view.attempts.next.map(|id| id.to_string()),
        latest_attempt: view.attempts.latest.map(|id| id.to_string()),
        redacted: false,
    }
}

/// Converts a run to a list row.
pub(crate) fn row(row: RunRow) -> v1::RunRow {
    v1::RunRow {
        run_id: row.run_id.to_string(),
        workflow: row.workflow.to_string(),
        version: row.version.to_string(),
        revision: row.revision,
        status: status(row.status).into(),
        terminal: row.terminal,
        triggered_by: row.triggered_by.to_owned(),
        started_at_ms: row.started_at_ms,
        completed_at_ms: row.completed_at_ms,
    }
}

/// A run's status after its event `seq`.
pub(crate) fn status_change(summary: RunSummary) -> v1::RunStatusChange {
    v1::RunStatusChange {
        seq: summary.events_count,
        status: status(summary.status).into(),
        terminal: summary.terminal,
        detail: summary.detail,
        output: summary.output.as_ref().map(json),
        redacted: false,
    }
}

/// The status that a request filters by; `None` for any.
pub(crate) fn wanted_status(wanted: v1::RunStatus) -> Option<RunStatus> {
    RunStatus::ALL
        .into_iter()
        .find(|candidate| status(*candidate) == wanted)
}

fn status(run_status: RunStatus) -> v1::RunStatus {
    match run_status {
        RunStatus::Pending => v1::RunStatus::Pending,
        RunStatus::Running => v1::RunStatus::Running,
        RunStatus::Waiting => v1::RunStatus::Waiting,
        RunStatus::Ended(TerminalStatus::Completed) => v1::RunStatus::Completed,
        RunStatus::Ended(TerminalStatus::Failed) => v1::RunStatus::Failed,
        RunStatus::Ended(TerminalStatus::Cancelled) => v1::RunStatus::Cancelled,
        RunStatus::Ended(TerminalStatus::TimedOut) => v1::RunStatus::TimedOut,
    }
}

fn current_step(step: &CurrentStep) -> v1::CurrentStep {
    let (step_status, waiting_for, deadline_at_ms) = match step.waiting_for {
        None => (v1::RunStatus::Running, v1::WaitingFor::Unspecified, None),
        Some((waiting_for, deadline_at_ms)) => {
            (v1::RunStatus::Waiting, waiting(waiting_for), deadline_at_ms)
        }
    };
    v1::CurrentStep {
        step: step.step.to_string(),
        status: step_status.into(),
        attempt: step.attempt,
        waiting_for: waiting_for.into(),
        deadline_at_ms,
        scope: step.scope.clone(),
        visit: step.visit,
        kind: step.kind.to_owned(),
    }
}

fn compensation(progress: CompensationProgress) -> v1::Compensation {
    match progress {
        CompensationProgress::None => v1::Compensation::None,
        CompensationProgress::Running => v1::Compensation::Running,
        CompensationProgress::Done => v1::Compensation::Done,
        CompensationProgress::Partial => v1::Compensation::Partial,
    }
}

/// Converts the phase of a run.
pub(crate) fn phase(phase: Option<Phase>) -> v1::RunPhase {
    match phase {
        None => v1::RunPhase::Unspecified,
        Some(Phase::Cancelling) => v1::RunPhase::Cancelling,
        Some(Phase::Compensating) => v1::RunPhase::Compensating,
        Some(Phase::OnError) => v1::RunPhase::OnError,
        Some(Phase::OnCancel) => v1::RunPhase::OnCancel,
        Some(Phase::CheckingOutput) => v1::RunPhase::CheckingOutput,
    }
}

fn waiting(waiting_for: WaitingFor) -> v1::WaitingFor {
    match waiting_for {
        WaitingFor::Signal => v1::WaitingFor::Signal,
        WaitingFor::Action => v1::WaitingFor::Action,
        WaitingFor::Child => v1::WaitingFor::Child,
        WaitingFor::Retry => v1::WaitingFor::Retry,
        WaitingFor::Poll => v1::WaitingFor::Poll,
        WaitingFor::Report => v1::WaitingFor::Report,
        WaitingFor::Branches => v1::WaitingFor::Branches,
        WaitingFor::Check => v1::WaitingFor::Check,
        WaitingFor::Delay => v1::WaitingFor::Delay,
        WaitingFor::Cancelling => v1::WaitingFor::Cancelling,
        WaitingFor::Timer => v1::WaitingFor::Timer,
        WaitingFor::Approval => v1::WaitingFor::Approval,
        WaitingFor::Start => v1::WaitingFor::Start,
        WaitingFor::Concurrency => v1::WaitingFor::Concurrency,
    }
}

/// The steps by name, each with its last activation; for an active step, that is the open one.
fn steps(view: &RunView) -> BTreeMap<String, v1::StepResult> {
    let left = view
        .steps
        .iter()
        .map(|(name, step)| (name.to_string(), left_step(step)));
    let active = view
        .current_steps
        .iter()
        .map(|step| (step.step.to_string(), active_step(step)));
    left.chain(active).collect()
}

fn left_step(step: &StepView) -> v1::StepResult {
    v1::StepResult {
        outcome: Some(step.outcome.clone()),
        output: step.output.as_ref().map(json),
        output_omitted: step.is_output_omitted,
        attempts: step.attempts,
        started_at_ms: step.started_at_ms,
        completed_at_ms: Some(step.completed_at_ms),
    }
}

fn active_step(step: &CurrentStep) -> v1::StepResult {
    v1::StepResult {
        outcome: None,
        output: None,
        output_omitted: false,
        attempts: step.attempt,
        started_at_ms: step.started_at_ms,
        completed_at_ms: None,
    }
}

/// Search attributes as a JSON object (W22).
fn attributes(attributes: &BTreeMap<AttributeName, AttributeValue>) -> Bytes {
    let mut object = String::from("{");
    for (position, (name, value)) in attributes.iter().enumerate() {
        if position > 0 {
            object.push(',');
        }
        quote(name.as_str(), &mut object);
        object.push(':');
        match value {
            AttributeValue::String(text) => quote(text, &mut object),
            AttributeValue::Number(number) => object.push_str(number.as_str()),
            AttributeValue::Timestamp(at_ms) => object.push_str(&at_ms.to_string()),
        }
    }
    object.push('}');
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::StepName;
    use flotilla_engine::json::Json;

    fn step(waiting_for: Option<(WaitingFor, Option<u64>)>) -> CurrentStep {
        CurrentStep {
            scope: "fan/stock".to_owned(),
            step: StepName::new("pay").unwrap(),
            visit: 1,
            kind: "run",
            attempt: 2,
            started_at_ms: 5,
            waiting_for,
        }
    }

    #[test]
    fn every_status_has_a_message_and_leads_back() {
        for run_status in RunStatus::ALL {
            assert_eq!(wanted_status(status(run_status)), Some(run_status));
            let name = format!("RUN_STATUS_{}", run_status.name().to_uppercase());
            assert_eq!(status(run_status).as_str_name(), name);
        }
        assert_eq!(wanted_status(v1::RunStatus::Unspecified), None);
    }

    #[test]
    fn a_step_that_waits_says_for_what_and_until_when() {
        let message = current_step(&step(Some((WaitingFor::Retry, Some(9)))));
        assert_eq!(message.status(), v1::RunStatus::Waiting);
        assert_eq!(message.waiting_for(), v1::WaitingFor::Retry);
        assert_eq!((message.attempt, message.deadline_at_ms), (2, Some(9)));
        assert_eq!(current_step(&step(None)).status(), v1::RunStatus::Running);
    }

    #[test]
    fn attributes_become_one_json_object() {
        let name = |text: &str| AttributeName::new(text).unwrap();
        let values = BTreeMap::from([
            (name("at"), AttributeValue::Timestamp(-3)),
            (name("customer"), AttributeValue::String("a\"b".to_owned())),
            (
                name("total"),
                AttributeValue::Number(Json::from_checked("1.50".to_owned())),
            ),
        ]);
        assert_eq!(
            attributes(&values),
            r#"{"at":-3,"customer":"a\"b","total":1.50}"#
        );
        assert_eq!(attributes(&BTreeMap::new()), "{}");
    }
}
