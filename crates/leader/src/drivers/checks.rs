//! The driver of checks: validates the inputs of child runs (W4) and the outputs of steps (W67), and
//! compiles the locks of runs (W85). A library's result must not depend on its version inside `apply`,
//! so the leader calls the library and the log carries the verdict.

use super::Driver;
use super::backoff::Backoff;
use super::wakeups::Check;
use crate::error::Error;
use crate::limits::{CHECKS_IN_FLIGHT_MAX, CHECKS_PAGE_MAX};
use flotilla_dsl::expression::compile_lock;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::view::{self, SchemaCheck};
use flotilla_engine::{Command, DecideLocks, DecideSchemaCheck, LocksVerdict, SchemaVerdict};
use futures::stream::{self, FuturesUnordered, StreamExt};
use std::collections::BTreeSet;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckResult {
    /// No run waits for its verdict.
    Done,
    /// Its verdict is rejected permanently, for example because the run is quarantined (design rule
    /// 10). The check stays in the state until the run is released.
    Refused(Check),
}

/// Makes the open checks of the state, then those that arrive.
pub(super) async fn drive(driver: &Driver) {
    make_left_open(driver).await;
    let mut under_way = FuturesUnordered::new();
    loop {
        let room = CHECKS_IN_FLIGHT_MAX - under_way.len();
        tokio::select! {
            checks = driver.wakeups.checks(room), if room > 0 => {
                under_way.extend(checks.into_iter().map(|check| make(driver, check)));
            }
            Some(_) = under_way.next() => {}
        }
    }
}

/// Makes the checks that are in the state, page by page: finished ones leave the state, rejected
/// ones are skipped. Checks that arrive meanwhile come as hints as well.
async fn make_left_open(driver: &Driver) {
    let mut refused = BTreeSet::new();
    loop {
        let page = read_page(driver, &refused).await;
        let is_last = page.len() < CHECKS_PAGE_MAX;
        let made: Vec<CheckResult> = stream::iter(page)
            .map(|check| make(driver, check))
            .buffer_unordered(CHECKS_IN_FLIGHT_MAX)
            .collect()
            .await;
        refused.extend(made.into_iter().filter_map(|made| match made {
            CheckResult::Done => None,
            CheckResult::Refused(check) => Some(check),
        }));
        if is_last {
            return;
        }
    }
}

/// The first open checks that have not been rejected.
async fn read_page(driver: &Driver, refused: &BTreeSet<Check>) -> Vec<Check> {
    let limit = CHECKS_PAGE_MAX + refused.len();
    let open = driver
        .read(|reader| view::schema_checks(reader, limit))
        .await
        .into_iter();
    open.filter(|check| !refused.contains(check)).collect()
}

/// Makes one check and retries while its verdict is refused temporarily.
async fn make(driver: &Driver, check: Check) -> CheckResult {
    let mut backoff = Backoff::default();
    loop {
        match try_make(driver, check).await {
            Ok(()) => return CheckResult::Done,
            Err(error) if error.may_succeed_later() => {
                tracing::debug!(%error, "a verdict on a value was not accepted yet");
                backoff.wait().await;
            }
            Err(error) => {
                let (run, _) = check;
                tracing::info!(run = run.0, %error, "a verdict on a value was rejected");
                return CheckResult::Refused(check);
            }
        }
    }
}

async fn try_make(driver: &Driver, (run, activation): Check) -> Result<(), Error> {
    if activation == view::LOCKS_CHECK {
        return compile_locks(driver, run).await;
    }
    let check = driver.read_once(|reader| view::schema_check(reader, run, activation))?;
    let Some(check) = check else { return Ok(()) };
    let verdict = judge(driver, &check).await?;
    let decision = DecideSchemaCheck {
        run,
        activation,
        attempt: check.attempt,
        definition: check.definition,
        verdict,
    };
    let submitted = driver.submit(Command::new(check.namespace, decision));
    submitted.await.map(drop)
}

/// Compiles the locks of a run.
async fn compile_locks(driver: &Driver, run: RunNumber) -> Result<(), Error> {
    let check = driver.read_once(|reader| view::locks_check(reader, run))?;
    let Some(check) = check else { return Ok(()) };
    let locks = check.patterns.iter().map(|pattern| compile_lock(pattern));
    let verdict = match locks.collect() {
        Ok(locks) => LocksVerdict::Compiled(locks),
        Err(detail) => LocksVerdict::Invalid { detail },
    };
    let decision = DecideLocks { run, verdict };
    let submitted = driver.submit(Command::new(check.namespace, decision));
    submitted.await.map(drop)
}

async fn judge(driver: &Driver, check: &SchemaCheck) -> Result<SchemaVerdict, Error> {
    let violation = match violation(driver, check).await {
        Ok(violation) => violation,
        Err(error) if error.may_succeed_later() => return Err(error),
        // The library failed: it would fail again, and the step would wait for ever.
        Err(error) => Some(error.to_string()),
    };
    Ok(match violation {
        None => SchemaVerdict::Valid,
        Some(detail) => SchemaVerdict::Invalid { detail },
    })
}

async fn violation(driver: &Driver, check: &SchemaCheck) -> Result<Option<String>, Error> {
    let schemas = &driver.context.schemas;
    let schema = schemas
        .obtain(check.definition, check.of, Some(&check.schema))
        .await?;
    let Some(schema) = schema else {
        return Ok(None);
    };
    let checked = schemas.check(schema, check.value.clone()).await?;
    Ok(checked.err().map(|violation| violation.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;
    use flotilla_engine::ids::WorkflowName;
    use flotilla_engine::json::Json;
    use flotilla_engine::{Body, CreateDefinition, StartRun};
    use futures::future::join_all;

    const CHILD: &str = r#"
kind: Workflow
name: child
version: "1.0.0"
input: {type: object}
start:
  waitForSignal: {type: go, timeoutMs: 600000}
  transitions: {success: flo.Completed}
"#;

    const PARENT: &str = r#"
kind: Workflow
name: parent
version: "1.0.0"
start:
  run: "@workflow/child"
  transitions: {success: flo.Completed}
"#;

    #[tokio::test(flavor = "multi_thread")]
    async fn checks_that_were_left_open_are_all_made_when_they_are_more_than_a_page() {
        let node = StillNode::start().await;
        for source in [CHILD, PARENT] {
            let create = CreateDefinition {
                definition: flotilla_dsl::parse(source).definition.unwrap(),
                source: source.to_owned(),
                make_latest: true,
            };
            node.submit(Body::CreateDefinition(Box::new(create))).await;
        }
        let start = || {
            Body::StartRun(StartRun::new(
                WorkflowName::new("parent").unwrap(),
                Json::null(),
            ))
        };
        join_all((0..=CHECKS_PAGE_MAX).map(|_| node.submit(start()))).await;
        let open = || node.read(|reader| view::schema_checks(reader, usize::MAX));
        assert_eq!(open().len(), CHECKS_PAGE_MAX + 1);
        make_left_open(&node.driver()).await;
        assert_eq!(open(), []);
    }
}
