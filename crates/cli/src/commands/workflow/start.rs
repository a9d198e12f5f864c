//! `flo workflow start`.

use super::wait;
use crate::failure::Failure;
use crate::output::Format;
use crate::session::Session;
use crate::{json_argument, period};
use clap::Args;
use flotilla_client::Client;
use flotilla_client::v1::{GetRunRequest, StartRunRequest, StartRunResponse};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  flo workflow start order '{\"id\": 7}'
  flo workflow start order @order.json --idempotency-key order-7 --wait
  flo workflow start order @order.json --wait --wait-timeout 30s";

/// Start a run and print its id
///
/// With --wait, tell the run's id on stderr, block until the run has ended and print its output
/// instead; the exit code is then 0 only for a run that completed, and 3 otherwise. The wait lasts as
/// long as the run: --timeout is for single calls, --wait-timeout bounds the wait.
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

    /// How long to wait at most; then the exit code is 4, and the run goes on [default: to the end]
    #[arg(long, value_name = "TIME", value_parser = period::parse, requires = "wait")]
    wait_timeout: Option<Duration>,
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
        let input = request.input.clone();
        let view = StartedView::from(client.start_run(request).await?);
        let output = session.output;
        if self.wait || view.existing {
            output.note(&view.note());
        }
        // Only a person is told: nobody else need ask.
        let is_asked = view.existing && output.format() == Format::Text;
        if is_asked && has_other_input(&client, &view.run_id, &input).await {
            output.note("the run goes by its own input, which differs from the one given now");
        }
        if !self.wait {
            return output.value(&view, |view| view.run_id.clone());
        }
        let result = wait::until_end(&client, &view.run_id, self.wait_timeout).await?;
        output.json_text(&result)
    }
}

/// Whether a run that was there before has another input. Where that cannot be told, nothing is said:
/// the start itself has its answer.
async fn has_other_input(client: &Client, run_id: &str, input: &[u8]) -> bool {
    let request = GetRunRequest {
        run_id: run_id.to_owned(),
        ..GetRunRequest::default()
    };
    let Ok(run) = client.get_run(request).await else {
        return false;
    };
    value_of(&run.input) != value_of(input)
}

/// The input's value; that of no input is an empty object.
fn value_of(input: &[u8]) -> Option<Value> {
    serde_json::from_slice(if input.is_empty() { b"{}" } else { input }).ok()
}

impl StartedView {
    /// Which run it is, and whether it is one that was there before (W20).
    fn note(&self) -> String {
        let run_id = &self.run_id;
        if self.existing {
            format!("run {run_id} exists already for this idempotency key")
        } else {
            format!("run {run_id} started")
        }
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
    fn inputs_are_compared_by_value() {
        assert_eq!(value_of(b""), value_of(b"{ }"));
        assert_eq!(
            value_of(br#"{"a":1,"b":2}"#),
            value_of(br#"{"b": 2, "a": 1}"#)
        );
        assert_ne!(value_of(br#"{"a":1}"#), value_of(br#"{"a":2}"#));
    }

    #[test]
    fn a_started_run_has_exactly_the_published_fields() {
        let view = StartedView::from(StartRunResponse {
            run_id: "wfrun-1".to_owned(),
            workflow: "order".to_owned(),
            version: "1.0.0".to_owned(),
            revision: 1,
            existing: false,
            end: None,
        });
        expect![[r#"{"run_id":"wfrun-1","workflow":"order","version":"1.0.0","revision":1,"existing":false}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
        assert_eq!(view.note(), "run wfrun-1 started");
        let existing = StartedView {
            existing: true,
            ..view
        };
        assert_eq!(
            existing.note(),
            "run wfrun-1 exists already for this idempotency key"
        );
    }
}
