//! `flo action invoke`.

use crate::code::Code;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::Session;
use crate::{json_argument, key_value, views};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use flotilla_client::Client;
use flotilla_client::v1::{
    ActionRun, ActionRunStatus, ActionType, GetActionRequest, GetActionRunRequest,
    InvokeActionRequest,
};
use serde::Serialize;
use std::time::Duration;

/// How long one call waits for the end of an action run.
const WAIT: Duration = Duration::from_secs(20);

const EXAMPLES: &str = "\
Examples:
  flo action invoke charge '{\"amount\": 5}' --wait
  flo action invoke charge '{\"amount\": 5}' --async --priority 200 --label region=eu";

/// Run an action once, outside any workflow
///
/// With --wait, prints only the output, and exits with 0 only if the action run completed. With
/// --async, prints only the action run's id. The default is --wait for a WASM action and --async
/// for an action of workers.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Invoke {
    /// Name of the action
    name: String,

    /// Input: JSON, @FILE, or - for stdin [default: {}]
    #[arg(value_name = "INPUT|@FILE|-")]
    input: Option<String>,

    /// Priority, 0 to 255, higher first [default: 10]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=255))]
    priority: Option<u32>,

    /// Delay in milliseconds before a worker may receive the task
    #[arg(long, value_name = "N", default_value_t = 0)]
    delay_ms: u64,

    /// Idempotency key: invocations with the same key give the same action run
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    idempotency_key: Option<String>,

    /// Label that the worker must have; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_value::parse)]
    labels: Vec<(String, String)>,

    /// Wait until the action run ends and print its output
    #[arg(long, conflicts_with = "async")]
    wait: bool,

    /// Print the action run's id without waiting for its end
    #[arg(long)]
    r#async: bool,
}

#[derive(Debug, Serialize)]
struct InvokedView {
    action_run_id: String,
    existing: bool,
}

impl Invoke {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let input = json_argument::read_optional(self.input.as_deref())?;
        let client = session.client()?;
        let is_waiting = self.wait || (!self.r#async && is_wasm(&client, &self.name).await?);
        let request = InvokeActionRequest {
            name: self.name,
            input,
            priority: self.priority,
            delay_ms: self.delay_ms,
            idempotency_key: self.idempotency_key.unwrap_or_default(),
            labels: self.labels.into_iter().collect(),
            ..InvokeActionRequest::default()
        };
        let response = client.invoke_action(request).await?;
        if response.existing {
            session.output.note(&format!(
                "action run {} already exists for this idempotency key",
                response.action_run_id
            ));
        }
        if is_waiting {
            let run = wait(&client, response.action_run_id).await?;
            conclude(&run)?;
            return session
                .output
                .json_text(run.output.as_deref().unwrap_or(b"null"));
        }
        let view = InvokedView {
            action_run_id: response.action_run_id,
            existing: response.existing,
        };
        session
            .output
            .value(&view, |view| view.action_run_id.clone())
    }
}

async fn is_wasm(client: &Client, name: &str) -> Result<bool, Failure> {
    let request = GetActionRequest {
        name: name.to_owned(),
        ..GetActionRequest::default()
    };
    let action = client.get_action(request).await?;
    Ok(action.r#type() == ActionType::Wasm)
}

/// Waits for the end in repeated calls: an action run may wait for a worker for days.
async fn wait(client: &Client, action_run_id: String) -> Result<ActionRun, Failure> {
    let progress = Progress::start(format!("{action_run_id} invoked"));
    let client = client.with_timeout(client.timeout() + WAIT);
    loop {
        let request = GetActionRunRequest {
            action_run_id: action_run_id.clone(),
            wait_ms: u64::try_from(WAIT.as_millis()).unwrap_or_default(),
            ..GetActionRunRequest::default()
        };
        let run = client.get_action_run(request).await?;
        if is_over(run.status()) {
            return Ok(run);
        }
        progress.say(format!("{action_run_id} {}", views::name(run.status())));
    }
}

fn is_over(status: ActionRunStatus) -> bool {
    match status {
        ActionRunStatus::Completed
        | ActionRunStatus::Failed
        | ActionRunStatus::Cancelled
        | ActionRunStatus::TimedOut => true,
        ActionRunStatus::Unspecified | ActionRunStatus::Pending | ActionRunStatus::Running => false,
    }
}

fn conclude(run: &ActionRun) -> Result<(), Failure> {
    if run.status() == ActionRunStatus::Completed {
        return Ok(());
    }
    let ActionRun {
        action_run_id,
        action,
        ..
    } = run;
    let mut message = format!(
        "expected action run {action_run_id} of {action} to complete, but it ended {}",
        views::name(run.status())
    );
    message.extend(run.error_message.iter().map(|error| format!(": {error}")));
    Err(
        Failure::new(Code::ActionRunNotCompleted, message).with_hint(format!(
            "flo action status {action_run_id} shows the details"
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::expect;

    #[test]
    fn an_invocation_has_the_published_fields() {
        let view = InvokedView {
            action_run_id: "arun-4".to_owned(),
            existing: false,
        };
        expect![[r#"{"action_run_id":"arun-4","existing":false}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }

    #[test]
    fn only_an_action_run_that_completed_is_a_success() {
        let run = |status: ActionRunStatus| ActionRun {
            action_run_id: "arun-4".to_owned(),
            action: "charge".to_owned(),
            status: status.into(),
            error_message: Some("card refused".to_owned()),
            ..ActionRun::default()
        };
        assert_eq!(conclude(&run(ActionRunStatus::Completed)), Ok(()));
        let failure = conclude(&run(ActionRunStatus::Failed)).expect_err("failed");
        expect![[r#"
            error: expected action run arun-4 of charge to complete, but it ended failed: card refused
            hint: flo action status arun-4 shows the details
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }
}
