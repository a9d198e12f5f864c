//! The trigger driver: starts runs from stream records (W41).
//!
//! Whether a record is JSON and whether an input matches its schema is decided here, outside
//! `apply`, because the results must not depend on a library's version. The command names the
//! trigger's position and the exact records, so that two leaders cannot fire them twice.

use super::Driver;
use super::backoff::Backoff;
use super::deferred::Deferred;
use crate::error::Error;
use crate::limits::{TRIGGER_FIRINGS_MAX, TRIGGER_REFUSALS_MAX, TRIGGERS_IN_FLIGHT_MAX};
use crate::schemas::{self, Schema};
use flotilla_dsl::payload;
use flotilla_engine::json::Json;
use flotilla_engine::limits::PAYLOAD_BYTES_MAX;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, DueCursor, InputJudge, SchemaOf, TriggerFiring};
use flotilla_engine::{Command, FireTrigger, TriggerKey};
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeSet;
use tokio::time::{Instant, sleep_until};

/// Fires what is due, a few triggers at a time and independently of each other, longest-waiting
/// records first; then sleeps until a batch is due or a stream grows.
pub(super) async fn drive(driver: &Driver) {
    let alarm = &driver.wakeups.triggers;
    let mut cursor = DueCursor::default();
    let mut busy: BTreeSet<TriggerKey> = BTreeSet::new();
    let mut deferred = Deferred::default();
    let mut firings = FuturesUnordered::new();
    loop {
        if let Some(due_ms) = alarm.look() {
            cursor.lower(due_ms);
        }
        let now_ms = driver.now_ms();
        deferred.forget_until(Instant::now());
        let count_max = TRIGGERS_IN_FLIGHT_MAX + deferred.len();
        let due = driver
            .read(|reader| cursor.due_triggers(reader, now_ms, count_max))
            .await;
        for key in due.triggers {
            let has_room = busy.len() < TRIGGERS_IN_FLIGHT_MAX && !deferred.contains(&key);
            if has_room && busy.insert(key.clone()) {
                firings.push(fire(driver, key));
            }
        }
        tokio::select! {
            // At the maximum in flight, only a completion makes room.
            () = alarm.sleep(now_ms, due.next_due_ms), if busy.len() < TRIGGERS_IN_FLIGHT_MAX => {}
            () = until(deferred.next_try()) => {}
            Some((key, fired)) = firings.next() => {
                busy.remove(&key);
                if fired == FiringResult::Never {
                    deferred.add(key);
                }
            }
        }
    }
}

async fn until(next_try: Option<Instant>) {
    match next_try {
        Some(next_try) => sleep_until(next_try).await,
        None => std::future::pending().await,
    }
}

/// The result of firing a due trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FiringResult {
    /// Everything that was read is fired. If there is more, the trigger is still due.
    Done,
    /// It was refused repeatedly, and not temporarily: for example, its schema does not compile
    /// here.
    Never,
}

/// Fires a trigger once, retrying while that is refused temporarily.
async fn fire(driver: &Driver, key: TriggerKey) -> (TriggerKey, FiringResult) {
    let mut backoff = Backoff::default();
    let mut errors_count = 0;
    loop {
        match try_fire(driver, &key).await {
            Ok(true) => return (key, FiringResult::Done),
            Ok(false) => {
                // The trigger was just stopped. If it is still listed as due, do not reread it in a
                // tight loop.
                backoff.wait().await;
                return (key, FiringResult::Done);
            }
            Err(error) => {
                let (namespace, workflow, _) = &key;
                errors_count += u32::from(!error.may_succeed_later());
                if errors_count == TRIGGER_REFUSALS_MAX {
                    tracing::warn!(%error, %namespace, %workflow, "a trigger cannot be fired");
                    return (key, FiringResult::Never);
                }
                tracing::debug!(%error, %namespace, %workflow, "a trigger was not fired");
                backoff.wait().await;
            }
        }
    }
}

/// Returns whether there was anything to fire.
async fn try_fire(driver: &Driver, key: &TriggerKey) -> Result<bool, Error> {
    let firings = read(driver, key).await?;
    let Some(first) = firings.first() else {
        return Ok(false);
    };
    let schemas = &driver.context.schemas;
    let schema = schemas.obtain(first.definition, SchemaOf::Input, first.schema.as_deref());
    let judge = Judge(schema.await?);
    let commands = judge_all(driver, firings, judge).await?;
    if commands.is_empty() {
        return Ok(false);
    }
    driver.submit_all(commands).await.map(|()| true)
}

/// What a trigger has to fire, by partition; read on a blocking thread.
async fn read(driver: &Driver, key: &TriggerKey) -> Result<Vec<TriggerFiring>, Error> {
    let (key, now_ms) = (key.clone(), driver.now_ms());
    let read =
        move |reader: &dyn Reader| view::trigger_firings(reader, &key, now_ms, TRIGGER_FIRINGS_MAX);
    let replica = driver.context.replica.clone();
    let read = move || replica.view(|view| read(view));
    Ok(driver.run_blocking(read).await???)
}

/// The commands with their verdicts, made on a blocking thread because payloads can be large.
async fn judge_all(
    driver: &Driver,
    firings: Vec<TriggerFiring>,
    judge: Judge,
) -> Result<Vec<Command<FireTrigger>>, Error> {
    let command = move |firing: TriggerFiring| {
        let body = firing.command(&judge)?;
        Some(Command::new(firing.namespace, body))
    };
    let judge_all = move || firings.into_iter().filter_map(command).collect();
    driver.run_blocking(judge_all).await
}

/// Validates records and inputs with the libraries.
struct Judge(Schema);

impl InputJudge for Judge {
    fn is_json(&self, bytes: &[u8]) -> bool {
        bytes.len() <= PAYLOAD_BYTES_MAX && payload::text(bytes).is_ok()
    }

    fn refusal(&self, input: &Json) -> Option<String> {
        let schema = self.0.as_ref()?;
        let violation = schemas::judge(schema, input).err()?;
        Some(violation.to_string())
    }
}
