//! An action run.

use super::{json, name, or_dash};
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// An action run in a list.
#[derive(Debug, Serialize)]
pub(crate) struct ActionRunRow {
    action_run_id: String,
    action: String,
    status: String,
    outcome: Option<String>,
    attempts: u32,
    error_code: Option<String>,
    error_message: Option<String>,
    worker_id: Option<String>,
    priority: u32,
    labels: BTreeMap<String, String>,
    run_id: Option<String>,
    step: Option<String>,
    created_at_ms: u64,
    started_at_ms: Option<u64>,
    completed_at_ms: Option<u64>,
    available_at_ms: Option<u64>,
    lease_expires_at_ms: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

/// An action run with its input and output.
#[derive(Debug, Serialize)]
pub(crate) struct ActionRunView {
    #[serde(flatten)]
    row: ActionRunRow,
    input: Value,
    output: Value,
}

impl From<v1::ActionRun> for ActionRunRow {
    fn from(run: v1::ActionRun) -> Self {
        Self {
            status: name(run.status()),
            action_run_id: run.action_run_id,
            action: run.action,
            outcome: run.outcome,
            attempts: run.attempts,
            error_code: run.error_code,
            error_message: run.error_message,
            worker_id: run.worker_id,
            priority: run.priority,
            labels: run.labels,
            run_id: run.run_id,
            step: run.step,
            created_at_ms: run.created_at_ms,
            started_at_ms: run.started_at_ms,
            completed_at_ms: run.completed_at_ms,
            available_at_ms: run.available_at_ms,
            lease_expires_at_ms: run.lease_expires_at_ms,
            redacted: run.redacted,
        }
    }
}

impl From<v1::ActionRun> for ActionRunView {
    fn from(run: v1::ActionRun) -> Self {
        Self {
            input: json::value(&run.input),
            output: json::optional_value(run.output.as_deref()),
            row: run.into(),
        }
    }
}

impl Row for ActionRunRow {
    const HEADINGS: &'static [&'static str] = &[
        "ACTION RUN",
        "STATUS",
        "OUTCOME",
        "ATTEMPTS",
        "RUN",
        "STEP",
        "WORKER",
        "CREATED",
        "ERROR",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.action_run_id.clone(),
            self.status.clone(),
            or_dash(self.outcome.as_deref()),
            self.attempts.to_string(),
            or_dash(self.run_id.as_deref()),
            or_dash(self.step.as_deref()),
            or_dash(self.worker_id.as_deref()),
            time::show(self.created_at_ms),
            or_dash(self.error_message.as_deref()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn run() -> v1::ActionRun {
        v1::ActionRun {
            action_run_id: "arun-4".to_owned(),
            action: "charge".to_owned(),
            status: v1::ActionRunStatus::Failed.into(),
            outcome: Some("failure".to_owned()),
            input: r#"{"amount":5}"#.into(),
            attempts: 4,
            error_message: Some("card refused".to_owned()),
            priority: 10,
            created_at_ms: 5,
            ..v1::ActionRun::default()
        }
    }

    #[test]
    fn an_action_run_has_the_published_fields() {
        let view = ActionRunView::from(run());
        expect![[r#"{"action_run_id":"arun-4","action":"charge","status":"failed","outcome":"failure","attempts":4,"error_code":null,"error_message":"card refused","worker_id":null,"priority":10,"labels":{},"run_id":null,"step":null,"created_at_ms":5,"started_at_ms":null,"completed_at_ms":null,"available_at_ms":null,"lease_expires_at_ms":null,"input":{"amount":5},"output":null}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }

    #[test]
    fn a_row_leaves_out_input_and_output() {
        let text = serde_json::to_string(&ActionRunRow::from(run())).expect("printable");
        assert!(
            !text.contains("\"input\"") && !text.contains("\"output\""),
            "{text}"
        );
    }
}
