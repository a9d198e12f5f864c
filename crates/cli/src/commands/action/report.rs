//! `flo action report`.

use crate::failure::Failure;
use crate::json_argument;
use crate::period;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::ReportTaskRequest;
use serde::Serialize;
use std::time::Duration;

/// Report the outcome of an accepted task
///
/// The step or plan executor of the task must have `tracking: {mode: async}`. An outcome can be
/// reported once, before the report deadline.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo action report \"$FLO_TASK_TOKEN\" --outcome success '{\"payment_id\": \"pay-1\"}'"
)]
pub(crate) struct Report {
    /// Task token that the worker received
    token: String,

    /// Outcome of the task
    #[arg(long, default_value = "success")]
    outcome: String,

    /// Output: JSON, @FILE, or - for stdin [default: null]
    #[arg(value_name = "JSON|@FILE|-")]
    output: Option<String>,

    /// Delay before the next step, retry or poll: 30s, 5m, 2h, at most 366d
    #[arg(long, value_name = "DURATION", value_parser = period::parse)]
    delay: Option<Duration>,

    /// Patch of the run's state: JSON or @FILE; null removes a key
    #[arg(long, value_name = "JSON|@FILE")]
    state_patch: Option<String>,

    /// What the task has used: a JSON object of numbers, or @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    usage: Option<String>,
}

#[derive(Debug, Serialize)]
struct ReportedView {
    outcome: String,
}

impl Report {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ReportTaskRequest {
            task_token: self.token,
            outcome: self.outcome.clone(),
            output: json_argument::read_optional(self.output.as_deref())?,
            delay_ms: self.delay.map_or(0, period::millis),
            state_patch: json_argument::read_optional(self.state_patch.as_deref())?,
            usage: json_argument::read_optional(self.usage.as_deref())?,
            ..ReportTaskRequest::default()
        };
        session.client()?.report_task(request).await?;
        let view = ReportedView {
            outcome: self.outcome,
        };
        session
            .output
            .value(&view, |view| format!("reported {}", view.outcome))
    }
}
