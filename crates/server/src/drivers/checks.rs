//! Verdicts on children's inputs (W4): a schema library's answer must not depend on its version
//! inside `apply`, so the leader asks it here and the log carries the verdict.

use super::{Driver, RETRY_DELAY};
use flotilla_dsl::schema::InputSchema;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::view::{self, ChildInputCheck};
use flotilla_engine::{Body, Command, DecideChildInput, InputVerdict};
use std::collections::BTreeSet;
use tokio::time::sleep;

/// Checks that are read from the state at once.
const BATCH_CHECKS_MAX: usize = 1_000;

/// Makes the checks that were left open, then those that come.
pub(super) async fn drive(driver: &Driver) {
    let mut open: BTreeSet<(RunNumber, u32)> = driver
        .context
        .gateway
        .read_here(|reader| view::child_input_checks(reader, BATCH_CHECKS_MAX))
        .unwrap_or_default()
        .into_iter()
        .collect();
    loop {
        for check in open {
            make(driver, check).await;
        }
        open = driver.signals.checks().await;
    }
}

async fn make(driver: &Driver, (parent, activation): (RunNumber, u32)) {
    let read = driver
        .context
        .gateway
        .read_here(move |reader| view::child_input_check(reader, (parent, activation)));
    let Ok(Some(check)) = read else { return };
    let decision = DecideChildInput {
        parent,
        activation,
        definition: check.definition,
        verdict: judge(&check),
    };
    let command = Command::new(check.namespace, Body::DecideChildInput(decision));
    if let Err(refusal) = driver
        .context
        .gateway
        .submit(command, Driver::deadline())
        .await
    {
        tracing::warn!(%refusal, "a verdict on a child's input was not taken");
        sleep(RETRY_DELAY).await;
        driver.signals.check((parent, activation));
    }
}

fn judge(check: &ChildInputCheck) -> InputVerdict {
    let input: serde_json::Value = match serde_json::from_str(check.input.as_str()) {
        Ok(input) => input,
        Err(error) => {
            return InputVerdict::Invalid {
                detail: error.to_string(),
            };
        }
    };
    let schema = match InputSchema::compile(&check.schema) {
        Ok(schema) => schema,
        Err(error) => {
            return InputVerdict::Invalid {
                detail: error.to_string(),
            };
        }
    };
    match schema.check(&input) {
        Ok(()) => InputVerdict::Valid,
        Err(violation) => InputVerdict::Invalid {
            detail: violation.to_string(),
        },
    }
}
