//! Gives records to a consumer, and waits for them (A31).
//!
//! A take costs a log entry only if there are records for it. Consumers of one group on one node
//! take turns, so that one record does not make all of them propose.

use super::name;
use super::read::limit;
use crate::access::CallContext;
use crate::convert;
use crate::deadline::WaitBounds;
use crate::errors::Refusal;
use crate::gateway::{Freshness, GroupGateway};
use crate::limits::WAIT_MS_MAX;
use crate::request;
use crate::watch;
use flotilla_api::v1;
use flotilla_engine::ids::{ConsumerName, GroupName, Namespace, StreamName};
use flotilla_engine::limits::READ_RECORDS_MAX;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, DeliveredView};
use flotilla_engine::{Command, GroupRef, TakeId, TakeRecords};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How long a take waits if it does not say. In milliseconds.
const BLOCK_MS_DEFAULT: u64 = 30_000;
/// How long a take waits before it reads again, if other consumers took what it saw.
const RETRY_DELAY: Duration = Duration::from_millis(50);

type GroupKey = (Namespace, StreamName, GroupName);

/// The order in which consumers on this node take records, per group.
#[derive(Default)]
pub(super) struct Turns {
    // A std mutex: it is never held across an await.
    groups: Mutex<BTreeMap<GroupKey, Weak<tokio::sync::Mutex<()>>>>,
}

impl Turns {
    /// The lock of one group's consumers.
    fn of(&self, key: &GroupKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = groups.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        groups.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        groups.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }
}

/// A consumer that wants records.
struct Taker<'a> {
    context: &'a CallContext,
    namespace: Namespace,
    body: TakeRecords,
    deadline: Instant,
}

/// Serves `TakeRecords`.
pub(super) async fn take(
    (context, turns): (&CallContext, &Turns),
    request: v1::TakeRecordsRequest,
    wait_bounds: WaitBounds,
) -> Result<v1::TakeRecordsResponse, Refusal> {
    let block_ms = request.block_ms.unwrap_or(BLOCK_MS_DEFAULT);
    request::within("block_ms", block_ms, 0..=WAIT_MS_MAX)?;
    let wait = wait_bounds.wait(Duration::from_millis(block_ms));
    let taker = Taker {
        context,
        namespace: request::namespace(&request.namespace)?,
        // Records that arrive at the very end of the wait can still be taken.
        deadline: wait_bounds.given.unwrap_or(wait.read_deadline),
        body: TakeRecords {
            group: name::group(request.stream, request.group)?,
            consumer: request::name("consumer", ConsumerName::new(request.consumer))?,
            incarnation: request.incarnation,
            take: TakeId(request.take_id),
            count_max: count(limit(request.limit)?),
        },
    };
    taker.gateway().catch_up(wait_bounds.deadline).await?;
    let mut given = taker.given().await?;
    if given.is_empty() {
        given = taker.wait(turns, wait.until).await?;
    }
    Ok(v1::TakeRecordsResponse {
        deliveries: given.into_iter().map(convert::group::delivery).collect(),
    })
}

fn count(limit: usize) -> u32 {
    u32::try_from(limit.min(READ_RECORDS_MAX)).expect("a small number")
}

impl Taker<'_> {
    /// Waits until there are records, and takes them.
    async fn wait(&self, turns: &Turns, until: Instant) -> Result<Vec<DeliveredView>, Refusal> {
        let GroupRef { stream, group } = &self.body.group;
        let key = (self.namespace.clone(), stream.clone(), group.clone());
        let of_stream = (self.namespace.clone(), stream.clone());
        let watchers = &self.context.watchers;
        let mut appended = watchers.streams.watch(&self.namespace, of_stream)?;
        let mut ready = watchers.groups.watch(&self.namespace, key.clone())?;
        let turn = turns.of(&key);
        loop {
            if self.has_records()? {
                // A call that does not wait for records still waits for its turn, as for any log
                // entry.
                let turn = tokio::select! {
                    biased;
                    turn = turn.lock() => turn,
                    () = sleep_until(self.deadline) => return Ok(Vec::new()),
                    refusal = watch::interrupted(self.context) => return Err(refusal),
                };
                // The previous consumer may have taken them.
                if self.has_records()? {
                    let given = self.take().await?;
                    drop(turn);
                    if !given.is_empty() {
                        return Ok(given);
                    }
                    sleep(RETRY_DELAY).await;
                    if until > Instant::now() {
                        continue;
                    }
                }
            }
            if until <= Instant::now() {
                return Ok(Vec::new());
            }
            tokio::select! {
                () = appended.notified() => {}
                () = ready.notified() => {}
                () = sleep_until(until) => {}
                refusal = watch::interrupted(self.context) => return Err(refusal),
            }
        }
    }

    fn gateway(&self) -> GroupGateway<'_> {
        self.context.gateway.of(&self.namespace)
    }

    fn has_records(&self) -> Result<bool, Refusal> {
        let gateway = self.gateway();
        let now_ms = gateway.replica().now_ms();
        gateway.read_here(|reader: &dyn Reader| {
            view::has_records(reader, &self.namespace, &self.body, now_ms)
        })
    }

    /// Takes the available records. This node has applied the take when this returns.
    async fn take(&self) -> Result<Vec<DeliveredView>, Refusal> {
        let gateway = self.gateway();
        // The take id makes a retry safe.
        let body = self.body.clone();
        let command = Command::new(self.namespace.clone(), body);
        let taken = gateway.submit(command, self.deadline).await?;
        if taken.count == 0 {
            return Ok(Vec::new());
        }
        gateway.catch_up(self.deadline).await?;
        self.given().await
    }

    /// The take's open deliveries, as far as this node has applied it.
    async fn given(&self) -> Result<Vec<DeliveredView>, Refusal> {
        let (namespace, body) = (self.namespace.clone(), self.body.clone());
        let scan = move |reader: &dyn Reader| view::delivery(reader, &namespace, &body);
        let gateway = self.gateway();
        gateway.scan(Freshness::Stale, self.deadline, scan).await
    }
}
