//! The trigger driver: starts runs from stream records (W41).
//!
//! Whether a record is JSON and whether an input matches its schema is decided here, outside
//! `apply`, because the results must not depend on a library's version. The command names the
//! trigger's position and the exact records, so that two leaders cannot fire them twice.

use super::Driver;
use super::backoff::Backoff;
use super::deferred::Deferred;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::{
    OBLIGATION_DEADLINE, TRIGGER_FIRINGS_MAX, TRIGGER_REFUSALS_MAX, TRIGGERS_IN_FLIGHT_MAX,
};
use crate::request;
use crate::schemas::{self, Schema};
use flotilla_engine::json::Json;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, DueCursor, InputJudge, SchemaOf, TriggerFiring};
use flotilla_engine::{Body, Command, TriggerKey};
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
    let mut refusals_count = 0;
    loop {
        match try_fire(driver, &key).await {
            Ok(true) => return (key, FiringResult::Done),
            Ok(false) => {
                // The trigger was just stopped. If it is still listed as due, do not reread it in a
                // tight loop.
                backoff.wait().await;
                return (key, FiringResult::Done);
            }
            Err(refusal) => {
                let (namespace, workflow, _) = &key;
                refusals_count += u32::from(!refusal.may_succeed_later());
                if refusals_count == TRIGGER_REFUSALS_MAX {
                    tracing::warn!(%refusal, %namespace, %workflow, "a trigger cannot be fired");
                    return (key, FiringResult::Never);
                }
                tracing::debug!(%refusal, %namespace, %workflow, "a trigger was not fired");
                backoff.wait().await;
            }
        }
    }
}

/// Returns whether there was anything to fire.
async fn try_fire(driver: &Driver, key: &TriggerKey) -> Result<bool, Refusal> {
    let firings = read(driver, key).await?;
    let Some(first) = firings.first() else {
        return Ok(false);
    };
    let schemas = &driver.context.schemas;
    let schema = schemas.obtain(first.definition, SchemaOf::Input, first.schema.as_deref());
    let judge = Judge(schema.await?);
    let commands = judge_all(firings, judge).await?;
    if commands.is_empty() {
        return Ok(false);
    }
    driver.submit_all(commands).await.map(|()| true)
}

/// What a trigger has to fire, by partition; read on a blocking thread.
async fn read(driver: &Driver, key: &TriggerKey) -> Result<Vec<TriggerFiring>, Refusal> {
    let (key, now_ms) = (key.clone(), driver.now_ms());
    let read =
        move |reader: &dyn Reader| view::trigger_firings(reader, &key, now_ms, TRIGGER_FIRINGS_MAX);
    let deadline = Instant::now() + OBLIGATION_DEADLINE;
    let gateway = &driver.context.gateway;
    gateway.scan(Freshness::Stale, deadline, read).await
}

/// The commands with their verdicts, made on a blocking thread because payloads can be large.
async fn judge_all(firings: Vec<TriggerFiring>, judge: Judge) -> Result<Vec<Command>, Refusal> {
    let command = move |firing: TriggerFiring| {
        let body = Body::FireTrigger(firing.command(&judge)?);
        Some(Command::new(firing.namespace, body))
    };
    tokio::task::spawn_blocking(move || firings.into_iter().filter_map(command).collect())
        .await
        .map_err(|error| Refusal::internal(format!("the check of records failed: {error}")))
}

/// Validates records and inputs with the libraries.
struct Judge(Schema);

impl InputJudge for Judge {
    fn is_json(&self, payload: &[u8]) -> bool {
        request::is_json(payload)
    }

    fn refusal(&self, input: &Json) -> Option<String> {
        let schema = self.0.as_ref()?;
        let violation = schemas::judge(schema, input).err()?;
        Some(violation.to_string())
    }
}
