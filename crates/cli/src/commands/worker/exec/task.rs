//! What a program is told of its task.

use bytes::Bytes;
use flotilla_client::ActionContext;
use std::path::Path;
use tokio::process::Command;

/// A node serves HTTP two ports above its clients, unless it was told otherwise.
const HTTP_PORT_OFFSET: u16 = 2;

/// One attempt, as the program sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    /// Goes to stdin.
    pub(super) input: Bytes,
    /// The workflow run; the action run, when the action was invoked by itself.
    pub(super) run_id: String,
    pub(super) action: String,
    pub(super) attempt: u32,
    pub(super) task_id: String,
    pub(super) task_token: String,
    pub(super) report_url: String,
}

impl Task {
    /// Takes over what the SDK knows of the task.
    pub(super) fn new(context: &ActionContext, report_url: &ReportUrl) -> Self {
        let run_id = context.run_id().unwrap_or_else(|| context.action_run_id());
        Self {
            input: context.input().clone(),
            run_id: run_id.to_owned(),
            action: context.action_name().to_owned(),
            attempt: context.attempt(),
            task_id: context.task_id().to_owned(),
            task_token: context.task_token().to_owned(),
            report_url: report_url.for_token(context.task_token()),
        }
    }

    /// Sets the variables that A8 and A10 name.
    pub(super) fn set_variables(&self, command: &mut Command, outcome_file: &Path) {
        command
            .env("FLO_RUN_ID", &self.run_id)
            .env("FLO_ACTION", &self.action)
            .env("FLO_ATTEMPT", self.attempt.to_string())
            .env("FLO_TASK_ID", &self.task_id)
            .env("FLO_TASK_TOKEN", &self.task_token)
            .env("FLO_REPORT_URL", &self.report_url)
            .env("FLO_OUTCOME_FILE", outcome_file);
    }
}

/// Where the outcome of an accepted task is reported over HTTP (W38).
#[derive(Debug)]
pub(super) struct ReportUrl {
    base: String,
}

impl ReportUrl {
    /// At the node that the worker was given first.
    pub(super) fn of(endpoints: &[String]) -> Self {
        let endpoint = endpoints.first().map_or("127.0.0.1:9000", String::as_str);
        let (host, port) = endpoint.rsplit_once(':').unwrap_or((endpoint, ""));
        let port: u16 = port.parse().unwrap_or(9000);
        Self {
            base: format!("http://{host}:{}", port.saturating_add(HTTP_PORT_OFFSET)),
        }
    }

    fn for_token(&self, task_token: &str) -> String {
        format!("{}/v1/tasks/{task_token}/report", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_go_to_the_http_port_of_the_first_endpoint() {
        let url = ReportUrl::of(&["10.0.0.1:9010".to_owned(), "b:1".to_owned()]);
        assert_eq!(
            url.for_token("t-1"),
            "http://10.0.0.1:9012/v1/tasks/t-1/report"
        );
    }
}
