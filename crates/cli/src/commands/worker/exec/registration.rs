//! Registration of missing actions (A1, A10).
//!
//! The SDK also registers them, with the server's defaults. This module does so first, with the
//! settings of the command line, and prints the result, because an action's retries multiply those
//! of the step (W13).

use crate::code::Code;
use crate::failure::Failure;
use crate::output::Output;
use crate::period;
use clap::Args;
use flotilla_client::v1::{Action, ActionType, RegisterActionRequest};
use flotilla_client::{Client, ClientError, ErrorKind, new_request_id};
use std::time::Duration;
use tokio::time::sleep;

/// The pause between two attempts to reach the cluster.
const PAUSE: Duration = Duration::from_secs(1);

/// The settings of an action that is not registered yet.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options for actions that are not registered yet")]
pub(super) struct Registration {
    /// Lease in milliseconds, renewed while the program runs; without a renewal for this long,
    /// another worker gets the task [default: 30000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: Option<u64>,

    /// Retries after the first attempt, within each attempt of a step [default: 3]
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,

    /// Delay in milliseconds before the first retry, doubled for each further one [default: 1000]
    #[arg(long, value_name = "N")]
    retry_delay_ms: Option<u64>,
}

impl Registration {
    /// Registers the action unless it exists, and prints a note about the result. Waits for an
    /// unreachable cluster, because a worker may be started first.
    ///
    /// # Errors
    /// What the cluster refuses, and an action that the nodes run: its tasks would not reach this
    /// worker.
    pub(super) async fn register(
        &self,
        client: &Client,
        name: &str,
        output: Output,
    ) -> Result<(), Failure> {
        let request = RegisterActionRequest {
            name: name.to_owned(),
            r#type: ActionType::User.into(),
            timeout_ms: self.timeout_ms,
            max_retries: self.max_retries,
            retry_delay_ms: self.retry_delay_ms,
            only_if_missing: true,
            request_id: new_request_id(),
            ..RegisterActionRequest::default()
        };
        let mut has_told = false;
        let response = loop {
            match client.register_action(request.clone()).await {
                Ok(response) => break response,
                Err(error) if is_passing(&error) => {
                    if !has_told {
                        output.note(&format!("waiting for the cluster: {error}"));
                    }
                    has_told = true;
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        let action = response.action.unwrap_or_default();
        if action.r#type() == ActionType::Wasm {
            return Err(not_for_workers(name));
        }
        if response.changed {
            output.note(&format!("registered action {name:?} ({})", terms(&action)));
        } else if self.differs(&action) {
            output.note(&format!(
                "action {name:?} is already registered and unchanged ({}): \
                 flo action register changes it",
                terms(&action)
            ));
        }
        Ok(())
    }

    /// Whether a requested setting differs from the registered one.
    fn differs(&self, action: &Action) -> bool {
        let is_other =
            |requested: Option<u64>, found| requested.is_some_and(|requested| requested != found);
        is_other(self.timeout_ms, action.timeout_ms)
            || is_other(self.retry_delay_ms, action.retry_delay_ms)
            || is_other(
                self.max_retries.map(u64::from),
                u64::from(action.max_retries),
            )
    }
}

fn not_for_workers(name: &str) -> Failure {
    let message = format!(
        "expected an action of type user, but {name:?} is of type wasm: the nodes run it themselves"
    );
    let hint =
        format!("use another name, or register it again for workers: `flo action register {name}`");
    Failure::new(Code::ActionTypeMismatch, message).with_hint(hint)
}

/// Whether another attempt may succeed.
fn is_passing(error: &ClientError) -> bool {
    match error.kind() {
        ErrorKind::Retryable | ErrorKind::Unknown | ErrorKind::ConnectionFailed => true,
        ErrorKind::NotFound | ErrorKind::Usage | ErrorKind::Refused => false,
    }
}

fn terms(action: &Action) -> String {
    let timeout = period::show_ms(action.timeout_ms);
    match action.max_retries {
        0 => format!("timeout {timeout}, no retries"),
        1 => format!("timeout {timeout}, 1 retry"),
        count => format!("timeout {timeout}, {count} retries"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action() -> Action {
        Action {
            timeout_ms: 30_000,
            max_retries: 3,
            retry_delay_ms: 1_000,
            ..Action::default()
        }
    }

    #[test]
    fn an_action_is_shown_with_its_timeout_and_retries() {
        assert_eq!(terms(&action()), "timeout 30s, 3 retries");
        let once = Action {
            max_retries: 0,
            ..action()
        };
        assert_eq!(terms(&once), "timeout 30s, no retries");
    }

    #[test]
    fn only_what_is_asked_for_can_differ() {
        let registration = |max_retries| Registration {
            timeout_ms: None,
            max_retries,
            retry_delay_ms: Some(1_000),
        };
        assert!(!registration(None).differs(&action()));
        assert!(!registration(Some(3)).differs(&action()));
        assert!(registration(Some(0)).differs(&action()));
    }
}
