//! `flo workflow complete-step`.

use crate::failure::Failure;
use crate::json_argument;
use crate::period;
use crate::session::Session;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use flotilla_client::v1::CompleteStepRequest;
use serde::Serialize;
use std::time::Duration;

/// Complete a step that waits for a report
///
/// The step, or the executor of its plan, has `tracking: {mode: async}`, and a worker has accepted
/// the task. This command reports the outcome without the task token.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow complete-step wfrun-1 settle --output '{\"paid\": true}'\n  \
                  flo workflow complete-step wfrun-1 settle --outcome refused\n  \
                  flo workflow complete-step wfrun-1 settle --failure card_expired --delay 1h"
)]
pub(crate) struct CompleteStep {
    /// Id of the run
    run: String,

    /// Name of the step
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    step: String,

    /// Path of the step's scope, as `flo workflow status` shows it [default: the only one]
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    scope: Option<String>,

    /// Visit to complete, counted in its scope; refused unless it is the current one [default: the current one]
    #[arg(long, value_name = "N")]
    visit: Option<u32>,

    /// Outcome of the step's action
    #[arg(long, value_name = "NAME", default_value = "success")]
    outcome: String,

    /// Output: JSON, @FILE, or - for stdin [default: null]
    #[arg(long, value_name = "JSON|@FILE|-")]
    output: Option<String>,

    /// Report a failure with this code instead; the step may be retried
    #[arg(
        long,
        value_name = "CODE",
        conflicts_with_all = ["outcome", "output"],
        value_parser = NonEmptyStringValueParser::new()
    )]
    failure: Option<String>,

    /// Message of the failure
    #[arg(long, value_name = "TEXT", requires = "failure")]
    message: Option<String>,

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
struct CompletedView {
    run_id: String,
    step: String,
    visit: u32,
    outcome: String,
}

impl CompleteStep {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let outcome = match self.failure {
            Some(_) => String::new(),
            None => self.outcome,
        };
        let request = CompleteStepRequest {
            run_id: self.run.clone(),
            step: self.step,
            scope: self.scope.unwrap_or_default(),
            visit: self.visit,
            outcome: outcome.clone(),
            output: json_argument::read_optional(self.output.as_deref())?,
            failure_code: self.failure.unwrap_or_default(),
            failure_message: self.message.unwrap_or_default(),
            delay_ms: self.delay.map_or(0, period::millis),
            state_patch: json_argument::read_optional(self.state_patch.as_deref())?,
            usage: json_argument::read_optional(self.usage.as_deref())?,
            ..CompleteStepRequest::default()
        };
        let response = session.client()?.complete_step(request).await?;
        let view = CompletedView {
            run_id: self.run,
            step: response.step,
            visit: response.visit,
            outcome: match outcome.is_empty() {
                true => "failure".to_owned(),
                false => outcome,
            },
        };
        session.output.value(&view, CompletedView::text)
    }
}

impl CompletedView {
    fn text(&self) -> String {
        format!(
            "reported {} for step {} of {}",
            self.outcome, self.step, self.run_id
        )
    }
}
