//! A run, as `flo workflow status` prints it.

use super::{json, name};
use flotilla_client::{PublishedName, v1};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A run.
#[derive(Debug, Serialize)]
pub(crate) struct RunView {
    run_id: String,
    workflow: String,
    version: String,
    revision: u32,
    signature: String,
    status: String,
    terminal: Option<String>,
    detail: Option<String>,
    error: Value,
    current_steps: Vec<CurrentStepView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_step_count: Option<u32>,
    scopes: Option<ScopeView>,
    input: Value,
    metadata: Value,
    target: Option<String>,
    locks: Vec<String>,
    retried_from: Option<String>,
    retried_from_step: Option<String>,
    output: Value,
    state: Value,
    steps: BTreeMap<String, StepView>,
    search_attributes: Value,
    waiting_for: Option<String>,
    phase: Option<String>,
    compensation: Option<String>,
    triggered_by: String,
    idempotency_key: Option<String>,
    parent_run_id: Option<String>,
    run_attempt: u32,
    previous_attempt: Option<String>,
    next_attempt: Option<String>,
    latest_attempt: Option<String>,
    started_at_ms: u64,
    starts_at_ms: Option<u64>,
    began_at_ms: Option<u64>,
    completed_at_ms: Option<u64>,
    history_event_count: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

#[derive(Debug, Serialize)]
struct ScopeView {
    path: String,
    kind: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<ScopeView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<u32>,
}

#[derive(Debug, Serialize)]
struct CurrentStepView {
    scope: String,
    step: String,
    visit: u32,
    kind: String,
    status: String,
    attempt: u32,
    waiting_for: Option<String>,
    deadline_at_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct StepView {
    outcome: Option<String>,
    output: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_omitted: Option<bool>,
    attempts: u32,
    started_at_ms: u64,
    completed_at_ms: Option<u64>,
}

impl From<v1::Run> for RunView {
    fn from(run: v1::Run) -> Self {
        let status = name(run.status());
        let waiting_for = run.waiting_for().published_name();
        let phase = run.phase().published_name();
        let compensation = run.compensation().published_name();
        let search_attributes = match json::value(&run.search_attributes) {
            attributes @ Value::Object(_) => attributes,
            _ => Value::Object(serde_json::Map::new()),
        };
        Self {
            status,
            waiting_for,
            phase,
            compensation,
            search_attributes,
            run_id: run.run_id,
            workflow: run.workflow,
            version: run.version,
            revision: run.revision,
            signature: run.signature,
            terminal: run.terminal,
            detail: run.detail,
            error: json::optional_value(run.error.as_deref()),
            scopes: run.scopes.map(Into::into),
            current_step_count: cut_from(run.current_step_count, run.current_steps.len()),
            current_steps: run.current_steps.into_iter().map(Into::into).collect(),
            input: json::value(&run.input),
            metadata: json::optional_value(run.metadata.as_deref()),
            target: run.target,
            locks: run.locks,
            retried_from: run.retried_from,
            retried_from_step: run.retried_from_step,
            output: json::optional_value(run.output.as_deref()),
            state: json::optional_value(run.state.as_deref()),
            steps: run
                .steps
                .into_iter()
                .map(|(name, step)| (name, step.into()))
                .collect(),
            triggered_by: run.triggered_by,
            idempotency_key: run.idempotency_key,
            parent_run_id: run.parent_run_id,
            run_attempt: run.run_attempt,
            previous_attempt: run.previous_attempt,
            next_attempt: run.next_attempt,
            latest_attempt: run.latest_attempt,
            started_at_ms: run.started_at_ms,
            starts_at_ms: run.starts_at_ms,
            began_at_ms: run.began_at_ms,
            completed_at_ms: run.completed_at_ms,
            history_event_count: run.history_event_count,
            redacted: run.redacted,
        }
    }
}

/// The number of items, if fewer are shown.
fn cut_from(count: u32, shown: usize) -> Option<u32> {
    Some(count).filter(|count| usize::try_from(*count).is_ok_and(|count| count > shown))
}

impl RunView {
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The run in one line.
    pub(crate) fn summary(&self) -> String {
        let Self {
            run_id,
            workflow,
            version,
            status,
            ..
        } = self;
        let run = format!("{run_id}  {workflow} {version}  {status}");
        match &self.detail {
            Some(detail) => format!("{run}: {detail}"),
            None if self.redacted => {
                format!("{run} (payloads hidden: permission `run.payloads` is missing)")
            }
            None => run,
        }
    }
}

impl From<v1::Scope> for ScopeView {
    fn from(scope: v1::Scope) -> Self {
        Self {
            kind: name(scope.kind()),
            status: name(scope.status()),
            path: scope.path,
            outcome: scope.outcome,
            done: scope.done,
            total: scope.total,
            failed: scope.failed,
            omitted: Some(scope.omitted).filter(|count| *count > 0),
            scopes: scope.scopes.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<v1::CurrentStep> for CurrentStepView {
    fn from(step: v1::CurrentStep) -> Self {
        Self {
            status: name(step.status()),
            waiting_for: step.waiting_for().published_name(),
            scope: step.scope,
            step: step.step,
            visit: step.visit,
            kind: step.kind,
            attempt: step.attempt,
            deadline_at_ms: step.deadline_at_ms,
        }
    }
}

impl From<v1::StepResult> for StepView {
    fn from(step: v1::StepResult) -> Self {
        Self {
            outcome: step.outcome,
            output: json::optional_value(step.output.as_deref()),
            output_omitted: step.output_omitted.then_some(true),
            attempts: step.attempts,
            started_at_ms: step.started_at_ms,
            completed_at_ms: step.completed_at_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn waiting_step() -> v1::CurrentStep {
        v1::CurrentStep {
            step: "approval".to_owned(),
            status: v1::RunStatus::Waiting.into(),
            attempt: 1,
            waiting_for: v1::WaitingFor::Signal.into(),
            deadline_at_ms: Some(90_000),
            scope: String::new(),
            visit: 1,
            kind: "wait_for_signal".to_owned(),
        }
    }

    fn charged() -> v1::StepResult {
        v1::StepResult {
            outcome: Some("success".to_owned()),
            output: Some(r#"{"paid":true}"#.into()),
            attempts: 2,
            started_at_ms: 1_000,
            completed_at_ms: Some(2_000),
            output_omitted: false,
        }
    }

    fn waiting_run() -> v1::Run {
        v1::Run {
            run_id: "wfrun-1".to_owned(),
            workflow: "order".to_owned(),
            version: "1.0.0".to_owned(),
            revision: 1,
            status: v1::RunStatus::Waiting.into(),
            current_steps: vec![waiting_step()],
            input: r#"{"id":7}"#.into(),
            steps: BTreeMap::from([("charge".to_owned(), charged())]),
            triggered_by: "api".to_owned(),
            state: Some(r#"{"total":7}"#.into()),
            started_at_ms: 1_000,
            history_event_count: 6,
            ..v1::Run::default()
        }
    }

    #[test]
    fn a_waiting_run_has_exactly_the_published_fields() {
        let text = serde_json::to_string_pretty(&RunView::from(waiting_run())).expect("printable");
        expect![[r#"
            {
              "run_id": "wfrun-1",
              "workflow": "order",
              "version": "1.0.0",
              "revision": 1,
              "signature": "",
              "status": "waiting",
              "terminal": null,
              "detail": null,
              "error": null,
              "current_steps": [
                {
                  "scope": "",
                  "step": "approval",
                  "visit": 1,
                  "kind": "wait_for_signal",
                  "status": "waiting",
                  "attempt": 1,
                  "waiting_for": "signal",
                  "deadline_at_ms": 90000
                }
              ],
              "scopes": null,
              "input": {
                "id": 7
              },
              "metadata": null,
              "target": null,
              "locks": [],
              "retried_from": null,
              "retried_from_step": null,
              "output": null,
              "state": {
                "total": 7
              },
              "steps": {
                "charge": {
                  "outcome": "success",
                  "output": {
                    "paid": true
                  },
                  "attempts": 2,
                  "started_at_ms": 1000,
                  "completed_at_ms": 2000
                }
              },
              "search_attributes": {},
              "waiting_for": null,
              "phase": null,
              "compensation": null,
              "triggered_by": "api",
              "idempotency_key": null,
              "parent_run_id": null,
              "run_attempt": 0,
              "previous_attempt": null,
              "next_attempt": null,
              "latest_attempt": null,
              "started_at_ms": 1000,
              "starts_at_ms": null,
              "began_at_ms": null,
              "completed_at_ms": null,
              "history_event_count": 6
            }"#]]
        .assert_eq(&text);
    }

    #[test]
    fn what_is_left_out_of_a_run_is_marked() {
        let step = v1::StepResult {
            output: None,
            output_omitted: true,
            ..charged()
        };
        let run = v1::Run {
            steps: BTreeMap::from([("charge".to_owned(), step)]),
            current_step_count: 700,
            scopes: Some(v1::Scope {
                omitted: 3,
                ..v1::Scope::default()
            }),
            ..waiting_run()
        };
        let shown = serde_json::to_value(RunView::from(run)).expect("printable");
        assert_eq!(shown["steps"]["charge"]["output"], Value::Null);
        assert_eq!(shown["steps"]["charge"]["output_omitted"], true);
        assert_eq!(shown["current_step_count"], 700);
        assert_eq!(shown["scopes"]["omitted"], 3);
    }
}
