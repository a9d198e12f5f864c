//! A run in a list.

use super::{name, or_dash};
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// A run's row.
#[derive(Debug, Serialize)]
pub(crate) struct RunRow {
    run_id: String,
    workflow: String,
    version: String,
    revision: u32,
    status: String,
    terminal: Option<String>,
    triggered_by: String,
    started_at_ms: u64,
    completed_at_ms: Option<u64>,
}

impl From<v1::RunRow> for RunRow {
    fn from(row: v1::RunRow) -> Self {
        Self {
            status: name(row.status()),
            run_id: row.run_id,
            workflow: row.workflow,
            version: row.version,
            revision: row.revision,
            terminal: row.terminal,
            triggered_by: row.triggered_by,
            started_at_ms: row.started_at_ms,
            completed_at_ms: row.completed_at_ms,
        }
    }
}

impl Row for RunRow {
    const HEADINGS: &'static [&'static str] = &[
        "RUN",
        "WORKFLOW",
        "VERSION",
        "STATUS",
        "TERMINAL",
        "BY",
        "STARTED",
        "COMPLETED",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.run_id.clone(),
            self.workflow.clone(),
            format!("{} r{}", self.version, self.revision),
            self.status.clone(),
            or_dash(self.terminal.as_deref()),
            self.triggered_by.clone(),
            time::show(self.started_at_ms),
            time::show_optional(self.completed_at_ms),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table;
    use expect_test::expect;

    fn row() -> RunRow {
        RunRow::from(v1::RunRow {
            run_id: "wfrun-1".to_owned(),
            workflow: "order".to_owned(),
            version: "1.0.0".to_owned(),
            revision: 2,
            status: v1::RunStatus::TimedOut.into(),
            terminal: Some("flo.TimedOut".to_owned()),
            triggered_by: "api".to_owned(),
            started_at_ms: 1_000,
            completed_at_ms: Some(2_000),
        })
    }

    #[test]
    fn a_row_has_exactly_the_published_fields() {
        expect![[r#"{"run_id":"wfrun-1","workflow":"order","version":"1.0.0","revision":2,"status":"timed_out","terminal":"flo.TimedOut","triggered_by":"api","started_at_ms":1000,"completed_at_ms":2000}"#]]
            .assert_eq(&serde_json::to_string(&row()).expect("printable"));
    }

    #[test]
    fn a_row_is_a_line_of_a_table() {
        expect![[r#"
            RUN      WORKFLOW  VERSION   STATUS     TERMINAL      BY   STARTED                   COMPLETED
            wfrun-1  order     1.0.0 r2  timed_out  flo.TimedOut  api  1970-01-01T00:00:01.000Z  1970-01-01T00:00:02.000Z"#]]
        .assert_eq(&table(&[row()]));
    }
}
