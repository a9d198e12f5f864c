//! What a program learns about its task.

use super::result_files::ResultFiles;
use bytes::Bytes;
use flotilla_client::ActionContext;
use std::fmt;
use tokio::process::Command;

/// One attempt, as the program sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    /// The input, for stdin.
    pub(super) input: Bytes,
    /// The workflow run, or the action run of a stand-alone action run.
    pub(super) run_id: String,
    pub(super) action: String,
    pub(super) attempt: u32,
    pub(super) task_id: String,
    pub(super) task_token: String,
    pub(super) report_url: String,
    /// The span of the program's work, if the step is traced.
    pub(super) traceparent: Option<String>,
}

impl Task {
    /// Builds it from the SDK's context.
    pub(super) fn new(context: &ActionContext) -> Self {
        let run_id = context.run_id().unwrap_or_else(|| context.action_run_id());
        Self {
            input: context.input().clone(),
            run_id: run_id.to_owned(),
            action: context.action_name().to_owned(),
            attempt: context.attempt(),
            task_id: context.task_id().to_owned(),
            task_token: context.task_token().to_owned(),
            report_url: context.report_url().to_owned(),
            traceparent: context.traceparent().map(ToOwned::to_owned),
        }
    }

    /// Sets the environment variables of A8 and A10.
    pub(super) fn set_variables(&self, command: &mut Command, files: &ResultFiles) {
        command
            .env("FLO_RUN_ID", &self.run_id)
            .env("FLO_ACTION", &self.action)
            .env("FLO_ATTEMPT", self.attempt.to_string())
            .env("FLO_TASK_ID", &self.task_id)
            .env("FLO_TASK_TOKEN", &self.task_token)
            .env("FLO_REPORT_URL", &self.report_url)
            .env("FLO_OUTCOME_FILE", files.outcome.path())
            .env("FLO_STATE_PATCH", files.state_patch.path())
            .env("FLO_USAGE", files.usage.path())
            .env("FLO_DELAY_FILE", files.delay.path());
        match &self.traceparent {
            Some(traceparent) => command.env("TRACEPARENT", traceparent),
            // The worker's own span is not the task's.
            None => command.env_remove("TRACEPARENT"),
        };
    }
}

/// For the person who stops the worker.
impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.action, self.task_id)
    }
}
