//! Triggers fire (W41).
//!
//! Whether a record is JSON, and what an input schema says of the input that it becomes, is asked here,
//! outside `apply`: the answers must not depend on the version of a library. The command names where the
//! trigger stands and the very records, so that two leaders cannot fire them twice.

use super::Driver;
use super::aside::Aside;
use super::backoff::Backoff;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::{
    OBLIGATION_DEADLINE, TRIGGER_FIRINGS_MAX, TRIGGER_REFUSALS_MAX, TRIGGERS_UNDER_WAY_MAX,
};
use crate::request;
use crate::schemas::{self, Schema};
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, DueCursor, InputJudge, TriggerFiring};
use flotilla_engine::{Body, Command};
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeSet;
use tokio::time::{Instant, sleep_until};

/// Whose trigger.
type TriggerKey = (Namespace, WorkflowName);

/// Fires what is due, a few triggers at a time and each by itself, those first whose records have
/// waited the longest; then sleeps until a batch is to be flushed or a stream grows.
pub(super) async fn drive(driver: &Driver) {
    let alarm = &driver.signals.triggers;
    let mut cursor = DueCursor::default();
    let mut busy: BTreeSet<TriggerKey> = BTreeSet::new();
    let mut aside = Aside::default();
    let mut firings = FuturesUnordered::new();
    loop {
        if let Some(due_ms) = alarm.look() {
            cursor.lower(due_ms);
        }
        let now_ms = driver.now_ms();
        aside.forget_until(Instant::now());
        let count_max = TRIGGERS_UNDER_WAY_MAX + aside.len();
        let due = driver
            .read(|reader| cursor.due_triggers(reader, now_ms, count_max))
            .await;
        for key in due.triggers {
            let has_room = busy.len() < TRIGGERS_UNDER_WAY_MAX && !aside.contains(&key);
            if has_room && busy.insert(key.clone()) {
                firings.push(fire(driver, key));
            }
        }
        tokio::select! {
            // With as many under way as may be, only an end makes room.
            () = alarm.sleep(now_ms, due.next_due_ms), if busy.len() < TRIGGERS_UNDER_WAY_MAX => {}
            () = until(aside.next_try()) => {}
            Some((key, fired)) = firings.next() => {
                busy.remove(&key);
                if fired == Fired::Never {
                    aside.add(key);
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

/// What became of a trigger that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fired {
    /// Nothing is left of what was seen. If there is more, the trigger is still due.
    Done,
    /// It was refused again and again, and not for a while only: a schema that does not compile here, say.
    Never,
}

/// Fires once what a trigger has to fire, however often that is refused for a while.
async fn fire(driver: &Driver, key: TriggerKey) -> (TriggerKey, Fired) {
    let mut backoff = Backoff::default();
    let mut refusals_count = 0;
    loop {
        match try_fire(driver, &key).await {
            Ok(true) => return (key, Fired::Done),
            Ok(false) => {
                // It was stopped just now. Should it be due all the same, it is not looked at as fast
                // as the state can be read.
                backoff.wait().await;
                return (key, Fired::Done);
            }
            Err(refusal) => {
                let (namespace, workflow) = &key;
                refusals_count += u32::from(!refusal.may_succeed_later());
                if refusals_count == TRIGGER_REFUSALS_MAX {
                    tracing::warn!(%refusal, %namespace, %workflow, "a trigger cannot be fired");
                    return (key, Fired::Never);
                }
                tracing::debug!(%refusal, %namespace, %workflow, "a trigger was not fired");
                backoff.wait().await;
            }
        }
    }
}

/// Whether there was anything to fire.
async fn try_fire(driver: &Driver, key: &TriggerKey) -> Result<bool, Refusal> {
    let firings = read(driver, key).await?;
    let Some(first) = firings.first() else {
        return Ok(false);
    };
    let schemas = &driver.context.schemas;
    let schema = schemas.obtain(first.definition, first.schema.as_deref());
    let judge = Judge(schema.await?);
    let commands = judge_all(firings, judge).await?;
    if commands.is_empty() {
        return Ok(false);
    }
    driver.submit_all(commands).await.map(|()| true)
}

/// What a trigger has to fire, by partitions, read on a thread that may block.
async fn read(driver: &Driver, key: &TriggerKey) -> Result<Vec<TriggerFiring>, Refusal> {
    let limits = (driver.now_ms(), TRIGGER_FIRINGS_MAX);
    let key = key.clone();
    let read = move |reader: &dyn Reader| view::trigger_firings(reader, &key, limits);
    let deadline = Instant::now() + OBLIGATION_DEADLINE;
    let gateway = &driver.context.gateway;
    gateway.scan(Freshness::Stale, deadline, read).await
}

/// The commands with their verdicts, made on a thread that may block: payloads can be large.
async fn judge_all(firings: Vec<TriggerFiring>, judge: Judge) -> Result<Vec<Command>, Refusal> {
    let command = move |firing: TriggerFiring| {
        let body = Body::FireTrigger(firing.command(&judge)?);
        Some(Command::new(firing.namespace, body))
    };
    tokio::task::spawn_blocking(move || firings.into_iter().filter_map(command).collect())
        .await
        .map_err(|error| Refusal::internal(format!("the check of records failed: {error}")))
}

/// What libraries say of records and inputs.
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
