//! `flo workflow start`.

use super::wait;
use crate::failure::Failure;
use crate::json_argument;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{StartRunRequest, StartRunResponse};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo workflow start order '{\"id\": 7}'
  flo workflow start order @order.json --idempotency-key order-7 --wait";

/// Start a run and print its id
///
/// With --wait, block until the run has ended and print its output instead; the exit code is then 0
/// only for a run that completed, and 3 otherwise.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Start {
    /// The workflow's name
    name: String,

    /// The input: JSON, @FILE, or - for stdin [default: {}]
    #[arg(value_name = "INPUT|@FILE|-")]
    input: Option<String>,

    /// The newest revision of this version [default: the latest of any version]
    #[arg(long, default_value = "", hide_default_value = true)]
    version: String,

    /// Starts with the same key are one run
    #[arg(
        long,
        value_name = "KEY",
        default_value = "",
        hide_default_value = true
    )]
    idempotency_key: String,

    /// The run's id [default: the cluster makes one]
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    run_id: String,

    /// Wait for the end and print the output
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Serialize)]
struct StartedView {
    run_id: String,
    workflow: String,
    version: String,
    revision: u32,
    existing: bool,
}

impl Start {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = StartRunRequest {
            workflow: self.name,
            version: self.version,
            input: json_argument::read_optional(self.input.as_deref())?,
            idempotency_key: self.idempotency_key,
            run_id: self.run_id,
            ..StartRunRequest::default()
        };
        let client = session.client()?;
        let started = client.start_run(request).await?;
        if self.wait {
            return wait::until_end(&client, started.run_id, session.output).await;
        }
        let view = StartedView::from(started);
        session.output.value(&view, |view| view.run_id.clone())
    }
}

impl From<StartRunResponse> for StartedView {
    fn from(response: StartRunResponse) -> Self {
        Self {
            run_id: response.run_id,
            workflow: response.workflow,
            version: response.version,
            revision: response.revision,
            existing: response.existing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_started_run_has_exactly_the_published_fields() {
        let view = StartedView::from(StartRunResponse {
            run_id: "wfrun-1".to_owned(),
            workflow: "order".to_owned(),
            version: "1.0.0".to_owned(),
            revision: 1,
            existing: false,
        });
        expect![[r#"{"run_id":"wfrun-1","workflow":"order","version":"1.0.0","revision":1,"existing":false}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
